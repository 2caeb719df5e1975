"""Personal data on its way into memory: the one place where it is flagged, redacted or refused.

It runs before a write takes its locks. What is redacted is replaced before anything is sealed, indexed, hashed or
answered, so that the original is nowhere.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from governance.actor import Actor
from governance.errors import FieldError, PiiRefused, PiiUnavailable
from governance.privacy.detecting import detector, pii_action
from governance.privacy.pii.detector import DetectorFailed
from governance.privacy.pii.spans import Span, redacted
from governance.vocabulary import PiiAction, PiiKind
from vault.cubes.drafts import CubeDraft
from vault.cubes.texts import Place, Texts, places_in, without
from vault.vocabulary import MessageRole, PiiField, ReviewStatus, Sensitivity, Source

SECONDS = 20.0  # for all drafts of one call; a thousand usual ones take a fraction of one
EVERYWHERE = frozenset(PiiField)
UNCHECKED = Place(PiiField.CONTENT, 0, Span(PiiKind.UNCHECKED, 0, 0, "detector_failed"))


@dataclass(frozen=True)
class Finding:
    """What is kept of a place beside its version. `detector`: the version of what found it."""

    place: Place
    detector: str
    status: ReviewStatus = ReviewStatus.OPEN


@dataclass(frozen=True)
class Screened:
    """Texts as they may be stored, and what is to be kept beside them."""

    texts: Texts
    findings: tuple[Finding, ...] = ()
    redacted: int = 0


class Screen:
    """Screens the texts of one call. `pii_action` is asked once for each namespace and sensitivity."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self._deadline = time.monotonic() + SECONDS
        self._actions: dict[tuple[str | None, str], PiiAction] = {}

    def draft(self, draft: CubeDraft, namespace_path: str | None) -> tuple[CubeDraft, Screened]:
        """`draft` as it may be stored. Raises PiiRefused; PiiUnavailable."""
        action = self._action(namespace_path, draft.sensitivity)
        if action is PiiAction.REFUSE and draft.source is Source.CHAT and draft.speaker == MessageRole.ASSISTANT:
            action = PiiAction.REDACT  # the answer is our own: to refuse it would lose the question too
        texts = Texts(draft.content, draft.title, draft.metadata, draft.tags, draft.speaker)
        screened = self._screened(action, texts, EVERYWHERE)
        if not screened.redacted:
            return draft, screened
        clean = screened.texts
        return (
            replace(
                draft,
                content=clean.content,
                title=clean.title,
                metadata=clean.metadata,
                tags=clean.tags,
                speaker=clean.speaker,
            ),
            screened,
        )

    def texts(self, texts: Texts, fields: Iterable[PiiField], *, namespace_path: str, sensitivity: str) -> Screened:
        """`texts` with just `fields` looked at. Raises PiiRefused; PiiUnavailable."""
        return self._screened(self._action(namespace_path, sensitivity), texts, fields)

    def _action(self, namespace_path: str | None, sensitivity: str) -> PiiAction:
        asked = (namespace_path, sensitivity)
        if asked not in self._actions:
            self._actions[asked] = pii_action(actor=self.actor, namespace_path=namespace_path, sensitivity=sensitivity)
        return self._actions[asked]

    def _screened(self, action: PiiAction, texts: Texts, fields: Iterable[PiiField]) -> Screened:
        if action is PiiAction.ALLOW:
            return Screened(texts)
        try:
            places = self._places(texts, fields)
        except DetectorFailed as failure:
            if action is not PiiAction.FLAG:
                raise PiiUnavailable("Nothing was stored: what it holds could not be checked.") from failure
            return Screened(texts, (Finding(UNCHECKED, detector().version),))
        if action is PiiAction.FLAG or not places:
            return Screened(texts, tuple(Finding(place, detector().version) for place in places))
        if action is PiiAction.REFUSE:
            raise PiiRefused("Take the personal data out and send it again.", errors=_refusals(places))
        return Screened(without(texts, places), redacted=len(places))

    def _places(self, texts: Texts, fields: Iterable[PiiField]) -> list[Place]:
        if time.monotonic() > self._deadline:
            raise DetectorFailed("the call is too large")
        return places_in(detector(), texts, fields)


def drafts_screened(*, actor: Actor, drafts: Sequence[CubeDraft]) -> list[CubeDraft]:
    """The drafts as they may be kept until a job stores them. Raises PiiRefused; PiiUnavailable."""
    screen = Screen(actor)
    return [screen.draft(draft, draft.namespace)[0] for draft in drafts]


def title_screened(*, actor: Actor, title: str, derived: bool = False) -> str:
    """The title of a conversation as it may be kept; there is nowhere to flag what it holds.

    `derived`: it was taken from a question, so that what is flagged there is left out here: redacting the question
    would not reach it. Raises PiiRefused; PiiUnavailable, but not for a derived one: that is empty then.
    """
    action = pii_action(actor=actor, namespace_path=None, sensitivity=Sensitivity.INTERNAL)
    if action is PiiAction.ALLOW or (action is PiiAction.FLAG and not derived):
        return title
    try:
        spans = detector().find(title)
    except DetectorFailed as failure:
        if derived:
            return ""
        raise PiiUnavailable from failure
    if spans and action is PiiAction.REFUSE and not derived:
        raise PiiRefused(errors=_refusals([Place(PiiField.TITLE, 0, span) for span in spans]))
    return redacted(title, spans)


def _refusals(places: Sequence[Place]) -> list[FieldError]:
    """Kinds and places, never values. The path of a metadata value is not told: a name in it may be one."""
    return [
        FieldError(str(place.part), f"holds {place.span.kind} at {place.span.start}-{place.span.end}")
        for place in places
    ]
