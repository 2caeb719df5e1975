"""Labels of the enumerations of the product in the reader's language."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from governance.vocabulary import PiiKind
from vault.listing.endings import EndingKind
from vault.vocabulary import Layer, Refusal, ReviewKind, ReviewStatus, SemanticType, Sensitivity, Source, State

if TYPE_CHECKING:
    from vault.models import Cube

SEMANTIC_TYPES: dict[SemanticType, Promise] = {
    SemanticType.FACT: _("fact"),
    SemanticType.PREFERENCE: _("preference"),
    SemanticType.EVENT: _("event"),
    SemanticType.GOAL: _("goal"),
    SemanticType.PROFILE: _("profile"),
    SemanticType.SKILL: _("skill"),
    SemanticType.STYLE: _("style"),
    SemanticType.INSIGHT: _("insight"),
    SemanticType.SUMMARY: _("summary"),
    SemanticType.TOOL_TRACE: _("tool trace"),
    SemanticType.DIALOGUE: _("dialogue"),
    SemanticType.DOCUMENT: _("document"),
}
SENSITIVITIES: dict[Sensitivity, Promise] = {
    Sensitivity.PUBLIC: _("public"),
    Sensitivity.INTERNAL: _("internal"),
    Sensitivity.CONFIDENTIAL: _("confidential"),
    Sensitivity.RESTRICTED: _("restricted"),
}
SOURCES: dict[Source, Promise] = {
    Source.CHAT: _("chat"),
    Source.API: _("API"),
    Source.IMPORT: _("import"),
    Source.PACK: _("pack"),
    Source.SYSTEM: _("system"),
}
LAYERS: dict[Layer, Promise] = {
    Layer.SHORT_TERM: _("short term"),
    Layer.MID_TERM: _("mid term"),
    Layer.LONG_TERM: _("long term"),
}
SHORT_LAYERS: dict[Layer, Promise] = {
    Layer.SHORT_TERM: _("Short"),
    Layer.MID_TERM: _("Mid"),
    Layer.LONG_TERM: _("Long"),
}
STATES: dict[State, Promise] = {
    State.GENERATED: _("generated"),
    State.ACTIVATED: _("activated"),
    State.MERGED: _("merged"),
    State.ARCHIVED: _("archived"),
    State.EXPIRED: _("expired"),
}
ENDINGS: dict[EndingKind, Promise] = {
    EndingKind.DELETED: _("deleted"),
    EndingKind.EXPIRED: STATES[State.EXPIRED],
    EndingKind.ARCHIVED: STATES[State.ARCHIVED],
}
PII_KINDS: dict[PiiKind, Promise] = {
    PiiKind.EMAIL: _("mail address"),
    PiiKind.PHONE: _("phone number"),
    PiiKind.CARD: _("payment card"),
    PiiKind.IBAN: _("bank account"),
    PiiKind.NATIONAL_ID: _("national identity number"),
    PiiKind.NETWORK_ADDRESS: _("network address"),
    PiiKind.SECRET: _("key or password"),
    PiiKind.UNCHECKED: _("could not be checked"),
}
REVIEW_STATUSES: dict[ReviewStatus, Promise] = {
    ReviewStatus.OPEN: _("open"),
    ReviewStatus.ACCEPTED: _("redacted"),
    ReviewStatus.REJECTED: _("no personal data"),
    ReviewStatus.SUPERSEDED: _("asked again for a newer version"),
}
REVIEW_KINDS: dict[ReviewKind, Promise] = {
    ReviewKind.PII: _("Personal data"),
    ReviewKind.SOURCE_WITHDRAWN: _("Source removed"),
    ReviewKind.CONFLICT: _("Contradiction"),
    ReviewKind.FEEDBACK: _("Feedback"),
    ReviewKind.FUSION: _("Duplicate"),
    ReviewKind.QUARANTINE: _("Quarantine"),
    ReviewKind.SYNC: _("Changed here and elsewhere"),
    ReviewKind.PACK_SUPERSEDES: _("A pack has a newer statement"),
    ReviewKind.PACK_CONTRADICTS: _("A pack contradicts"),
    ReviewKind.PACK_CONFIRMS: _("A pack confirms"),
}
REFUSALS = {
    Refusal.QUOTA: _("The contract of this pack allows no more reads in this period."),
    Refusal.PURPOSE: _("The contract of this pack is for other purposes."),
    Refusal.EXPIRED: _("The contract of this pack has expired."),
    Refusal.REVOKED: _("The publisher has revoked the contract of this pack."),
    Refusal.ENDED: _("The contract of this pack has ended."),
}
RELATIONS: dict[ReviewKind, Promise] = {
    ReviewKind.PACK_SUPERSEDES: _("A pack states something newer that contradicts this memory."),
    ReviewKind.PACK_CONTRADICTS: _("A pack contradicts this memory, which is the newer statement."),
    ReviewKind.PACK_CONFIRMS: _("A pack confirms this memory. Its trust can rise."),
}

FIELD_NAMES: dict[str, Promise] = {
    "content": _("Content"),
    "title": _("Title"),
    "tags": _("Tags"),
    "namespace": _("Namespace"),
    "semantic_type": _("Type"),
    "sensitivity": _("Sensitivity"),
    "access_level": _("Access level"),
    "importance": _("Importance"),
    "priority": _("Priority"),
    "event_time": _("Happened"),
    "valid_from": _("True from"),
    "valid_to": _("True until"),
    "expires_at": _("Expires"),
    "reason": _("Reason"),
    "version": _("Version"),
    "correction": _("Right text"),
}


@dataclass(frozen=True)
class Labels:
    """The labels of one cube's fields, in the reader's language."""

    semantic_type: str
    sensitivity: str
    source: str
    layer: str
    short_layer: str
    state: str


def make_labels(cube: "Cube") -> Labels:
    return _translate_labels(get_language(), cube.semantic_type, cube.sensitivity, cube.source, cube.layer, cube.state)


@lru_cache(maxsize=1024)
def _translate_labels(
    _language: str, semantic_type: str, sensitivity: str, source: str, layer: str, state: str
) -> Labels:
    """Translate the labels. Cached by values, since many rows share them."""
    return Labels(
        semantic_type=str(SEMANTIC_TYPES[SemanticType(semantic_type)]),
        sensitivity=str(SENSITIVITIES[Sensitivity(sensitivity)]),
        source=str(SOURCES[Source(source)]),
        layer=str(LAYERS[Layer(layer)]),
        short_layer=str(SHORT_LAYERS[Layer(layer)]),
        state=str(STATES[State(state)]),
    )


def recurrence_words() -> str:
    """Return the words for an event that comes again, with places for its rule and its next day."""
    return gettext("%(again)s, next on %(day)s")


def event_words(*, is_ahead: bool) -> str:
    """Return the words for the day of an event, with a place for it."""
    return gettext("happens %(day)s") if is_ahead else gettext("happened %(day)s")
