"""Feedback on a memory: applied at once if the reader may change the memory, else stored as a review."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db.models import F

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Invalid, PreconditionRequired, TooLarge
from governance.keys.services import open_sealed, seal_for
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Verb
from vault.content.drafts import CubeChanges
from vault.content.words import key_scope
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target, locate
from vault.cubes.services import check_version, cube_update, prepare_changed_texts
from vault.models import Cube, CubeVersion, Review
from vault.screening.screen import screen_note
from vault.vocabulary import FeedbackKind, FeedbackOutcome, ReviewKind, ReviewStatus, Sensitivity

LONGEST_NOTE = 500
USEFUL_STEP = 0.1  # of what the importance lacks to 1
LEVELS = tuple(Sensitivity)


@dataclass(frozen=True)
class Feedback:
    """A reader's feedback. correction: the right content, for WRONG only; note: the reason."""

    kind: FeedbackKind
    correction: str = field(default="", repr=False)
    note: str = field(default="", repr=False)


@dataclass(frozen=True)
class FeedbackResult:
    """The result of feedback. version: the present version afterwards; review_id: of a new review, else None."""

    outcome: FeedbackOutcome
    version: int
    review_id: UUID | None = None


def cube_feedback(
    *,
    actor: Actor,
    cube_id: UUID,
    feedback: Feedback,
    expected_versions: Collection[int] | None = None,
    dry_run: bool = False,
) -> FeedbackResult:
    """Count a use, or add a version: with a correction, an ended validity or a higher sensitivity.

    Without the right to change the memory, open a review instead. USEFUL adds no version. A dry run only checks.
    Raises, in this order: NotFound; Forbidden; Held; VersionConflict; Invalid; TooLarge; PreconditionRequired for a
    correction without expected_versions; Conflict if nothing would change, or the same feedback waits already.
    Writes: OutboxEvent and Cube?; or as `cube_update`; or Review; and AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    with feedback_texts_prepare(actor=actor, cube_id=cube_id, feedback=feedback), acting(actor):
        cube = feedback_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        _check_feedback(feedback, expected_versions)
        may_change = is_allowed(actor, Permission.MEMORY_UPDATE, cube_target(cube))
        if feedback.kind is FeedbackKind.USEFUL:
            result = FeedbackResult(FeedbackOutcome.COUNTED, cube.version)
            if not dry_run:
                _count_use(actor, cube, may_change)
        elif may_change:
            result = _change_memory(actor, cube, feedback, dry_run)
        else:
            result = _open_review(actor, cube, feedback, dry_run)
        if not dry_run:
            detail = {"kind": str(feedback.kind), "outcome": str(result.outcome)}
            ids, number = [cube.id], result.version
            verb = Verb.MEMORY_FEEDBACK_GIVEN
            record(actor=actor, verb=verb, object_type="memory", object_ids=ids, version=number, detail=detail)
    return result


def feedback_ask(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """Lock and return the memory, if the actor may give feedback on it. Use inside `acting`.

    Raises, in this order: NotFound; Forbidden; Held; VersionConflict.
    """
    cube = locate(actor, cube_id, lock=True)
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


@contextmanager
def feedback_texts_prepare(*, actor: Actor, cube_id: UUID, feedback: Feedback) -> Iterator[None]:
    """Read the texts of a correction before the transaction of `cube_feedback`. Raises KeyUnavailable; Unavailable."""
    authorize(actor, Permission.MEMORY_READ)
    if feedback.kind is FeedbackKind.WRONG:
        changes = CubeChanges(content=feedback.correction)
        with prepare_changed_texts(actor=actor, cube_id=cube_id, changes=changes):
            yield
    else:
        yield


def feedback_accept(*, actor: Actor, review: Review, cube: Cube) -> None:
    """Apply the feedback of a review to its memory. Use inside `acting`.

    Raises Forbidden; Held; Conflict if the memory has changed since a correction was proposed, or nothing would change.
    Writes as `cube_update`.
    """
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    feedback = feedback_open(review)
    if feedback.kind is FeedbackKind.WRONG:
        if review.version.number != cube.version:
            raise Conflict("The memory has changed since. Reject this feedback, or edit the memory.")
        if not feedback.correction:
            raise Conflict("The correction was erased. Reject this feedback.")
    _update_memory(actor, cube, feedback)


def feedback_open(review: Review) -> Feedback:
    """Return the feedback of a review; its texts are empty after a decision or an erasure. Raises KeyUnavailable."""
    kind = FeedbackKind(review.feedback)
    if not review.sealed:
        return Feedback(kind)
    plaintext = open_sealed(tenant_id=review.tenant_id, place=_encryption_context(review), blob=review.sealed)
    return Feedback(kind, **json.loads(plaintext)) if plaintext else Feedback(kind)


def _check_feedback(feedback: Feedback, expected_versions: Collection[int] | None) -> None:
    if len(feedback.correction) > settings.MAX_CONTENT_CHARACTERS:
        raise TooLarge(f"`correction` may have {settings.MAX_CONTENT_CHARACTERS} characters.")
    is_wrong, text = feedback.kind is FeedbackKind.WRONG, feedback.correction
    if is_wrong and (not text.strip() or "\x00" in text):
        raise Invalid(errors=[FieldError("correction", "write the right text")])
    if text and not is_wrong:
        raise Invalid(errors=[FieldError("correction", "goes with wrong")])
    if feedback.note and feedback.kind is FeedbackKind.USEFUL:
        raise Invalid(errors=[FieldError("note", "goes with wrong, outdated or sensitive")])
    if len(feedback.note) > LONGEST_NOTE or "\x00" in feedback.note:
        raise Invalid(errors=[FieldError("note", f"at most {LONGEST_NOTE} characters")])
    if is_wrong and expected_versions is None:
        raise PreconditionRequired


def _count_use(actor: Actor, cube: Cube, may_change: bool) -> None:
    """Count feedback as a use. If the reader may change the memory, also raise its importance."""
    emit(actor=actor, topic=Topic.CUBES_READ, payload={"ids": [str(cube.id)]})
    if may_change:
        Cube.objects.filter(id=cube.id).update(importance=F("importance") + USEFUL_STEP * (1 - F("importance")))


def _change_memory(actor: Actor, cube: Cube, feedback: Feedback, dry_run: bool) -> FeedbackResult:
    if dry_run:
        _compose_changes(cube, feedback)
        return FeedbackResult(FeedbackOutcome.CHANGED, cube.version)
    return FeedbackResult(FeedbackOutcome.CHANGED, _update_memory(actor, cube, feedback).version)


def _update_memory(actor: Actor, cube: Cube, feedback: Feedback) -> Cube:
    return cube_update(
        actor=actor,
        cube_id=cube.id,
        expected_versions={cube.version},
        changes=_compose_changes(cube, feedback),
        reason=feedback.note or f"Feedback: {feedback.kind}",
    )


def _compose_changes(cube: Cube, feedback: Feedback) -> CubeChanges:
    """Return the changes that the feedback asks for. Raises Conflict if nothing would change."""
    if feedback.kind is FeedbackKind.WRONG:
        return CubeChanges(content=feedback.correction)
    if feedback.kind is FeedbackKind.OUTDATED:
        now = database_now()
        if cube.valid_to is not None and cube.valid_to <= now:
            raise Conflict("The validity of this memory has ended already.")
        if cube.valid_from is not None and cube.valid_from >= now:
            raise Conflict("The validity of this memory has not begun.")
        return CubeChanges(valid_to=now)
    level = LEVELS.index(Sensitivity(cube.sensitivity))
    if level == len(LEVELS) - 1:
        raise Conflict("This memory has the highest sensitivity already.")
    return CubeChanges(sensitivity=LEVELS[level + 1])


def _open_review(actor: Actor, cube: Cube, feedback: Feedback, dry_run: bool) -> FeedbackResult:
    _compose_changes(cube, feedback)
    version = CubeVersion.objects.get(cube=cube, number=cube.version)
    review = Review(
        tenant_id=actor.tenant_id,
        kind=ReviewKind.FEEDBACK,
        cube=cube,
        version=version,
        status=ReviewStatus.OPEN,
        feedback=feedback.kind,
        asked_kind=actor.principal_kind,
        asked_by=actor.principal_id,
    )
    waiting = Review.objects.filter(version=version, kind=review.kind, status=review.status, feedback=review.feedback)
    if waiting.filter(asked_by=review.asked_by).exists():
        raise Conflict("You gave this feedback already. It waits for a decision.")
    review.sealed = _seal_texts(actor, cube, review, feedback)
    if dry_run:
        return FeedbackResult(FeedbackOutcome.REVIEW, cube.version)
    review.save(force_insert=True)
    return FeedbackResult(FeedbackOutcome.REVIEW, cube.version, review.id)


def _seal_texts(actor: Actor, cube: Cube, review: Review, feedback: Feedback) -> bytes:
    """Seal the texts with the memory's key, so that they are erased with it. Raises PiiRefused; KeyUnavailable."""
    texts = {
        name: screen_note(
            actor=actor, name=name, text=text, namespace_path=cube.namespace.path, sensitivity=cube.sensitivity
        )
        for name, text in (("correction", feedback.correction), ("note", feedback.note))
    }
    scope = key_scope(subject_id=cube.subject_id, persona_member_id=cube.persona.member_id if cube.persona else None)
    return seal_for(
        tenant_id=cube.tenant_id, scope=scope, place=_encryption_context(review), plaintext=json.dumps(texts).encode()
    )


def _encryption_context(review: Review) -> bytes:
    return b"feedback" + review.id.bytes
