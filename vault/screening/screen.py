"""Personal data on its way into memory: the one place where it is flagged, redacted or refused.

It runs before a write takes its locks. What is redacted is replaced before anything is sealed, indexed, hashed or
answered, so that the original is nowhere.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from governance.actor import Actor
from governance.errors import FieldError, PiiRefused, PiiUnavailable
from governance.policies.rules import PiiRule
from governance.policies.selectors import pii_rule
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiAction, PiiKind
from vault.content.drafts import CubeDraft
from vault.namespaces.selectors import private_path_get
from vault.screening.texts import NOTE_PARTS, Place, Texts, moved, note_texts, places_in, without
from vault.vocabulary import MessageRole, PiiField, ReviewStatus, Sensitivity, Source

SECONDS = 20.0  # of processor time for all drafts of one call; a thousand usual ones take a fraction of one
EVERYWHERE = frozenset(PiiField)
UNCHECKED = Place(PiiField.CONTENT, 0, Span(PiiKind.UNCHECKED, 0, 0, "detector_failed"))


def texts_of(draft: CubeDraft) -> Texts:
    return Texts(draft.content, draft.title, draft.metadata, draft.tags, draft.speaker)


class RuleOf(Protocol):
    """The rule for personal data in one place, and its policy."""

    def __call__(self, *, actor: Actor, namespace_path: str, sensitivity: str) -> PiiRule: ...


@dataclass(frozen=True)
class Finding:
    """A stored finding. `detector`: the version of the detector."""

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
    """Screens the texts of one call. `rule_of` is asked once for each namespace and sensitivity."""

    def __init__(self, actor: Actor, rule_of: RuleOf = pii_rule) -> None:
        self.actor = actor
        self._rule_of = rule_of
        self._rules: dict[tuple[str, str], PiiRule] = {}
        self._deadline = time.thread_time() + SECONDS

    def draft(
        self, draft: CubeDraft, namespace_path: str, places: Sequence[Place] | None = None
    ) -> tuple[CubeDraft, Screened]:
        """`draft` as it may be stored. `places`: of its personal data, where they are known already.

        Raises PiiRefused; PiiUnavailable.
        """
        rule = self._rule(namespace_path, draft.sensitivity)
        if draft.source is Source.CHAT and draft.speaker == MessageRole.ASSISTANT:
            rule = _without_refusals(rule)
        texts = texts_of(draft)
        screened = self._screened(rule, texts, EVERYWHERE, places)
        clean = screened.texts
        if clean is texts:
            return draft, screened
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

    def texts(
        self,
        texts: Texts,
        fields: Iterable[PiiField],
        *,
        namespace_path: str,
        sensitivity: str,
        places: Sequence[Place] | None = None,
    ) -> Screened:
        """`texts` with just `fields` looked at. `places`: of their personal data, where they are known already.

        Raises PiiRefused; PiiUnavailable.
        """
        return self._screened(self._rule(namespace_path, sensitivity), texts, fields, places)

    def _rule(self, namespace_path: str, sensitivity: str) -> PiiRule:
        asked = (namespace_path, sensitivity)
        if asked not in self._rules:
            self._rules[asked] = self._rule_of(actor=self.actor, namespace_path=namespace_path, sensitivity=sensitivity)
        return self._rules[asked]

    def _screened(
        self, rule: PiiRule, texts: Texts, fields: Iterable[PiiField], places: Sequence[Place] | None = None
    ) -> Screened:
        possible = {rule.action, *rule.kinds.values()}
        if possible == {PiiAction.ALLOW}:
            return Screened(texts)
        try:
            places = self._places(texts, fields) if places is None else places
        except DetectorFailed as failure:
            if possible & {PiiAction.REDACT, PiiAction.REFUSE}:
                raise PiiUnavailable("Nothing was stored: what it holds could not be checked.") from failure
            return Screened(texts, (Finding(UNCHECKED, detector().version),))
        return _acted(rule, texts, places)

    def _places(self, texts: Texts, fields: Iterable[PiiField]) -> list[Place]:
        if time.thread_time() > self._deadline:
            raise DetectorFailed("the call is too large")
        return places_in(detector(), texts, fields)


def drafts_screened(*, actor: Actor, drafts: Sequence[CubeDraft]) -> list[CubeDraft]:
    """The drafts as they may be kept until they are stored. Raises PiiRefused; PiiUnavailable."""
    screen, paths = Screen(actor), [draft.namespace for draft in drafts]
    home = private_path_get(actor=actor) if None in paths else ""
    return [screen.draft(draft, path or home)[0] for draft, path in zip(drafts, paths, strict=True)]


def title_screened(*, actor: Actor, title: str) -> str:
    """The title of a conversation as it may be kept. Raises PiiRefused; PiiUnavailable."""
    home = private_path_get(actor=actor) if title else ""
    return note_screened(actor=actor, name="title", text=title, namespace_path=home, sensitivity=Sensitivity.INTERNAL)


def note_screened(
    *,
    actor: Actor,
    name: str,
    text: str,
    namespace_path: str,
    sensitivity: str,
    places: Sequence[Place] | None = None,
) -> str:
    """A short text beside memories, such as a reason, as it may be kept; there is nowhere to flag what it holds.

    name: of the field, for the refusal; places: of its personal data, where they are known already.
    Raises PiiRefused; PiiUnavailable.
    """
    if not text:
        return ""
    screen = Screen(actor)
    try:
        found = screen.texts(
            note_texts(text), NOTE_PARTS, namespace_path=namespace_path, sensitivity=sensitivity, places=places
        )
    except PiiRefused as refusal:
        errors = [replace(one, field=name) for one in refusal.errors]
        raise PiiRefused(refusal.detail, errors=errors) from refusal
    return found.texts.title


def _acted(rule: PiiRule, texts: Texts, places: Sequence[Place]) -> Screened:
    by_action: dict[PiiAction, list[Place]] = {action: [] for action in PiiAction}
    for place in places:
        by_action[rule.action_for(place.span.kind)].append(place)
    refused, hidden, flagged = (by_action[one] for one in (PiiAction.REFUSE, PiiAction.REDACT, PiiAction.FLAG))
    if refused:
        raise PiiRefused("Take the personal data out and send it again.", errors=_refusals(refused))
    version = detector().version
    return Screened(
        texts=without(texts, hidden) if hidden else texts,
        findings=tuple(Finding(place, version) for place in moved(flagged, hidden)),
        redacted=len(hidden),
    )


def _without_refusals(rule: PiiRule) -> PiiRule:
    """For what the product itself says: to refuse an answer would lose the question too."""
    return _with(rule, PiiAction.REFUSE, PiiAction.REDACT)


def _with(rule: PiiRule, action: PiiAction, instead: PiiAction) -> PiiRule:
    kinds = {kind: instead if one is action else one for kind, one in rule.kinds.items()}
    return PiiRule(instead if rule.action is action else rule.action, kinds)


def _refusals(places: Sequence[Place]) -> list[FieldError]:
    """Kinds and places of findings, never values. The path of a metadata value is left out: it may contain one."""
    return [
        FieldError(str(place.part), f"holds {place.span.kind} at {place.span.start}-{place.span.end}")
        for place in places
    ]
