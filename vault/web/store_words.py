"""Labels of the enumerations of the MemStore in the reader's language, and icons and colours of packs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.actor import Actor
from vault.store.catalogue import CatalogueOrder
from vault.store.contracts import ContractView
from vault.store.subscriptions import SubscriptionView
from vault.vocabulary import ContractState, Delivery, PackState, PackTopic, QuotaPeriod, ReportReason

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
    CatalogueOrder.BEST: _("Best match"),
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
PERIODS_BEGUN: dict[QuotaPeriod, Promise] = {
    QuotaPeriod.DAY: _("Reads today"),
    QuotaPeriod.MONTH: _("Reads this month"),
    QuotaPeriod.YEAR: _("Reads this year"),
}
CONTRACT_STATES: dict[ContractState, Promise] = {
    ContractState.REQUESTED: _("being installed"),
    ContractState.ACTIVE: _("active"),
    ContractState.EXPIRED: _("expired"),
    ContractState.REVOKED: _("revoked by the publisher"),
    ContractState.ENDED: _("ended by the subscriber"),
}
CONTRACT_MARKS: dict[ContractState, str] = {
    ContractState.REQUESTED: "state-running",
    ContractState.ACTIVE: "state-activated",
    ContractState.EXPIRED: "state-expired",
    ContractState.REVOKED: "state-failed",
    ContractState.ENDED: "state-archived",
}
REPORT_REASONS: dict[ReportReason, Promise] = {
    ReportReason.PERSONAL_DATA: _("personal data or secrets"),
    ReportReason.HARMFUL: _("harmful, or orders to agents"),
    ReportReason.WRONG: _("wrong statements"),
    ReportReason.RIGHTS: _("rights of others"),
    ReportReason.OTHER: _("something else"),
}
DELIVERIES: dict[Delivery, Promise] = {
    Delivery.PULL: _("I compare them first"),
    Delivery.PUSH: _("They are installed by themselves"),
}


@dataclass(frozen=True)
class ShownAgreement:
    """One side of a contract. reads: the heading of `used`; percent: used share of the quota, 0 without a quota."""

    view: SubscriptionView | ContractView
    state: Promise
    mark: str
    period: Promise
    reads: Promise
    percent: int

    @property
    def is_live(self) -> bool:
        return self.view.state in {ContractState.REQUESTED, ContractState.ACTIVE}

    @property
    def is_active(self) -> bool:
        return self.view.state is ContractState.ACTIVE


@dataclass(frozen=True)
class ShownListing:
    """A publication as a card. is_own: published by the reader's organisation; subscription: its live one, or None."""

    row: "Listing"
    icon: str
    colour: int
    topic: str
    languages: str
    is_own: bool
    subscription: SubscriptionView | None = None


def language_name(code: str) -> str:
    """Return the name of a language in that language; the code if it is unknown here."""
    return LANGUAGES.get(code, code)


def languages_name(codes: list[str]) -> str:
    return ", ".join(language_name(code) for code in codes)


def topic_icon(topic: PackTopic) -> str:
    return ICONS[topic]


def topic_colour(topic: PackTopic) -> int:
    """Return the number of a topic's colour, 1 to COLOURS."""
    return list(PackTopic).index(topic) % COLOURS + 1


def make_shown_listing(actor: Actor, row: "Listing", subscription: SubscriptionView | None = None) -> ShownListing:
    topic = PackTopic(row.topic)
    return ShownListing(
        row=row,
        icon=topic_icon(topic),
        colour=topic_colour(topic),
        topic=str(TOPICS[topic]),
        languages=languages_name(row.languages),
        is_own=row.publisher_id == actor.tenant_id,
        subscription=subscription,
    )


def make_shown_agreement(view: SubscriptionView | ContractView) -> ShownAgreement:
    period, quota = QuotaPeriod(view.row.period), view.row.quota
    return ShownAgreement(
        view=view,
        state=CONTRACT_STATES[view.state],
        mark=CONTRACT_MARKS[view.state],
        period=PERIODS[period],
        reads=PERIODS_BEGUN[period],
        percent=min(view.used * 100 // quota, 100) if quota else 0,
    )
