"""Screening of new texts: personal data is flagged, redacted or refused.

Screening runs before a write takes its locks. Redacted values are replaced before anything is sealed, indexed, hashed
or returned, so that no copy of the original is stored.
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
from vault.screening.texts import NOTE_PARTS, Place, Texts, find_places, note_texts, redact_places, shift_places
from vault.vocabulary import MessageRole, PiiField, ReviewStatus, Sensitivity, Source

SECONDS = 20.0  # of processor time for all drafts of one call; a thousand usual ones take a fraction of one
EVERYWHERE = frozenset(PiiField)
UNCHECKED = Place(PiiField.CONTENT, 0, Span(PiiKind.UNCHECKED, 0, 0, "detector_failed"))


def texts_of(draft: CubeDraft) -> Texts:
    return Texts(draft.content, draft.title, draft.metadata, draft.tags, draft.speaker)


class RuleOf(Protocol):
    """A function that returns the rule for personal data in a namespace at a sensitivity."""

    def __call__(self, *, actor: Actor, namespace_path: str, sensitivity: str) -> PiiRule: ...


@dataclass(frozen=True)
class Finding:
    """Personal data at a place. detector: version of the detector."""

    place: Place
    detector: str
    status: ReviewStatus = ReviewStatus.OPEN


@dataclass(frozen=True)
class ScreenedTexts:
    """Texts after screening, which may be stored. findings: open and decided ones; redacted: the number of redacted
    values."""

    texts: Texts
    findings: tuple[Finding, ...] = ()
    redacted: int = 0


class Screen:
    """The screen of one call. rule_of: called once for each namespace and sensitivity."""

    def __init__(self, actor: Actor, rule_of: RuleOf = pii_rule) -> None:
        self.actor = actor
        self._rule_of = rule_of
        self._rules: dict[tuple[str, str], PiiRule] = {}
        self._deadline = time.thread_time() + SECONDS

    def screen_draft(
        self, draft: CubeDraft, namespace_path: str, places: Sequence[Place] | None = None
    ) -> tuple[CubeDraft, ScreenedTexts]:
        """Screen a draft and return the draft to store. places: its personal data, if already detected.

        Raises PiiRefused; PiiUnavailable.
        """
        rule = self._find_rule(namespace_path, draft.sensitivity)
        if draft.source is Source.CHAT and draft.speaker == MessageRole.ASSISTANT:
            rule = _redact_refusals(rule)
        texts = texts_of(draft)
        screened = self._screen(rule, texts, EVERYWHERE, places)
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

    def screen_texts(
        self,
        texts: Texts,
        fields: Iterable[PiiField],
        *,
        namespace_path: str,
        sensitivity: str,
        places: Sequence[Place] | None = None,
    ) -> ScreenedTexts:
        """Screen these fields of the texts. places: their personal data, if already detected.

        Raises PiiRefused; PiiUnavailable.
        """
        return self._screen(self._find_rule(namespace_path, sensitivity), texts, fields, places)

    def _find_rule(self, namespace_path: str, sensitivity: str) -> PiiRule:
        asked = (namespace_path, sensitivity)
        if asked not in self._rules:
            self._rules[asked] = self._rule_of(actor=self.actor, namespace_path=namespace_path, sensitivity=sensitivity)
        return self._rules[asked]

    def _screen(
        self, rule: PiiRule, texts: Texts, fields: Iterable[PiiField], places: Sequence[Place] | None = None
    ) -> ScreenedTexts:
        possible = {rule.action, *rule.kinds.values()}
        if possible == {PiiAction.ALLOW}:
            return ScreenedTexts(texts)
        try:
            places = self._find_places(texts, fields) if places is None else places
        except DetectorFailed as failure:
            if possible & {PiiAction.REDACT, PiiAction.REFUSE}:
                raise PiiUnavailable("Nothing was stored: what it holds could not be checked.") from failure
            return ScreenedTexts(texts, (Finding(UNCHECKED, detector().version),))
        return _apply_rule(rule, texts, places)

    def _find_places(self, texts: Texts, fields: Iterable[PiiField]) -> list[Place]:
        if time.thread_time() > self._deadline:
            raise DetectorFailed("the call is too large")
        return find_places(detector(), texts, fields)


def screen_drafts(*, actor: Actor, drafts: Sequence[CubeDraft]) -> list[CubeDraft]:
    """Screen drafts before they are stored by a job. Raises PiiRefused; PiiUnavailable."""
    screen, paths = Screen(actor), [draft.namespace for draft in drafts]
    home = private_path_get(actor=actor) if None in paths else ""
    return [screen.screen_draft(draft, path or home)[0] for draft, path in zip(drafts, paths, strict=True)]


def screen_title(*, actor: Actor, title: str) -> str:
    """Screen the title of a conversation. Raises PiiRefused; PiiUnavailable."""
    home = private_path_get(actor=actor) if title else ""
    return screen_note(actor=actor, name="title", text=title, namespace_path=home, sensitivity=Sensitivity.INTERNAL)


def screen_note(
    *,
    actor: Actor,
    name: str,
    text: str,
    namespace_path: str,
    sensitivity: str,
    places: Sequence[Place] | None = None,
) -> str:
    """Screen a short text that belongs to a memory, such as a reason. It is redacted or refused, never flagged.

    name: the field named in a refusal. places: its personal data, if already detected.
    Raises PiiRefused; PiiUnavailable.
    """
    if not text:
        return ""
    screen = Screen(actor)
    try:
        found = screen.screen_texts(
            note_texts(text), NOTE_PARTS, namespace_path=namespace_path, sensitivity=sensitivity, places=places
        )
    except PiiRefused as refusal:
        errors = [replace(error, field=name) for error in refusal.errors]
        raise PiiRefused(refusal.detail, errors=errors) from refusal
    return found.texts.title


def _apply_rule(rule: PiiRule, texts: Texts, places: Sequence[Place]) -> ScreenedTexts:
    by_action: dict[PiiAction, list[Place]] = {action: [] for action in PiiAction}
    for place in places:
        by_action[rule.action_for(place.span.kind)].append(place)
    refused, hidden, flagged = (by_action[action] for action in (PiiAction.REFUSE, PiiAction.REDACT, PiiAction.FLAG))
    if refused:
        raise PiiRefused("Take the personal data out and send it again.", errors=_list_refusals(refused))
    version = detector().version
    return ScreenedTexts(
        texts=redact_places(texts, hidden) if hidden else texts,
        findings=tuple(Finding(place, version) for place in shift_places(flagged, hidden)),
        redacted=len(hidden),
    )


def _redact_refusals(rule: PiiRule) -> PiiRule:
    """Return the rule for answers of a model: redact instead of refuse, because a refusal would lose the question
    too."""
    return _replace_action(rule, PiiAction.REFUSE, PiiAction.REDACT)


def _replace_action(rule: PiiRule, action: PiiAction, instead: PiiAction) -> PiiRule:
    kinds = {kind: instead if usual is action else usual for kind, usual in rule.kinds.items()}
    return PiiRule(instead if rule.action is action else rule.action, kinds)


def _list_refusals(places: Sequence[Place]) -> list[FieldError]:
    """Return errors with kinds and places of findings, without values and metadata paths, which may contain values."""
    return [
        FieldError(str(place.part), f"holds {place.span.kind} at {place.span.start}-{place.span.end}")
        for place in places
    ]
