"""The closed sets of the MemStore in the reader's language, and how a pack is drawn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from vault.store.catalogue import CatalogueOrder
from vault.vocabulary import PackState, PackTopic, QuotaPeriod

if TYPE_CHECKING:
    from vault.models import Listing

TOPICS: dict[PackTopic, Promise] = {
    PackTopic.FAMILY: _("Family"),
    PackTopic.HEALTH: _("Health"),
    PackTopic.HOME: _("Home"),
    PackTopic.FOOD: _("Food"),
    PackTopic.WORK: _("Work"),
    PackTopic.TRAVEL: _("Travel"),
    PackTopic.LEARNING: _("Learning"),
    PackTopic.TECHNOLOGY: _("Technology"),
    PackTopic.OTHER: _("Other"),
}
ICONS: dict[PackTopic, str] = {
    PackTopic.FAMILY: "users",
    PackTopic.HEALTH: "stethoscope",
    PackTopic.HOME: "home",
    PackTopic.FOOD: "tools-kitchen-2",
    PackTopic.WORK: "briefcase",
    PackTopic.TRAVEL: "world",
    PackTopic.LEARNING: "school",
    PackTopic.TECHNOLOGY: "code",
    PackTopic.OTHER: "package",
}
COLOURS = 5  # of the marks in store.css
LANGUAGES = {"en": "English", "zh": "中文", "de": "Deutsch", "fr": "Français", "es": "Español", "ja": "日本語"}
ORDERS: dict[CatalogueOrder, Promise] = {
    CatalogueOrder.USED: _("Most used"),
    CatalogueOrder.RATED: _("Best rated"),
    CatalogueOrder.NEWEST: _("Newest"),
}
PACK_STATES: dict[PackState, Promise] = {
    PackState.SCANNING: _("being checked"),
    PackState.BLOCKED: _("blocked by findings"),
    PackState.READY: _("ready"),
    PackState.DEPRECATED: _("deprecated"),
    PackState.YANKED: _("yanked"),
}
PACK_MARKS: dict[PackState, str] = {
    PackState.SCANNING: "state-running",
    PackState.BLOCKED: "state-failed",
    PackState.READY: "state-activated",
    PackState.DEPRECATED: "state-waiting",
    PackState.YANKED: "state-expired",
}
PERIODS: dict[QuotaPeriod, Promise] = {
    QuotaPeriod.DAY: _("a day"),
    QuotaPeriod.MONTH: _("a month"),
    QuotaPeriod.YEAR: _("a year"),
}


@dataclass(frozen=True)
class ShownListing:
    """A publication as a card. is_own: published by the reader's organisation."""

    row: "Listing"
    icon: str
    colour: int
    topic: str
    languages: str
    is_own: bool


def language_name(code: str) -> str:
    """The language in its own words; the code where it has none here."""
    return LANGUAGES.get(code, code)


def languages_named(codes: list[str]) -> str:
    return ", ".join(language_name(code) for code in codes)


def icon_of(topic: PackTopic) -> str:
    return ICONS[topic]


def colour_of(topic: PackTopic) -> int:
    """The number of a mark's colour, 1 to COLOURS."""
    return list(PackTopic).index(topic) % COLOURS + 1
