"""Decisions on reviews: personal data, withdrawn sources, quarantine, contradictions, duplicates, feedback and
syncs."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound, PiiUnavailable
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from governance.vocabulary import Permission, PiiKind, Verb
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target, locate
from vault.cubes.redaction import (
    cube_redact,
    cube_redact_findings,
    locate_for_redaction,
    prepare_clean_texts,
)
from vault.cubes.services import cubes_hide
from vault.cubes.text_removal import versions_blank
from vault.cubes.versions import readable_versions
from vault.cubes.writer.prepared_texts import (
    Reading,
    prepare_stored_texts,
    prepare_texts,
    prepared_places,
    texts_of_version,
)
from vault.layers.contradictions import contradiction_undo
from vault.lifecycle.contradictions import contradiction_settle
from vault.lifecycle.fusion import cubes_fuse, fusion_undo
from vault.lifecycle.knowledge import KNOWLEDGE, knowledge_settle
from vault.models import Cube, CubeVersion, PiiFinding, Review
from vault.reviews.feedback import feedback_accept, feedback_open, feedback_texts_prepare
from vault.reviews.quarantine import quarantine_release, quarantine_return
from vault.reviews.sync_conflicts import sync_conflict_accept, sync_conflict_reject, sync_texts_prepare
from vault.reviews.withdrawals import WITHHELD, select_for_decision, withdrawn_locate, withdrawn_sources_drop
from vault.screening.findings import findings_insert
from vault.screening.screen import EVERYWHERE, Finding
from vault.screening.texts import find_places
from vault.vocabulary import ReviewKind, ReviewStatus

UNCHANGED = frozenset({ReviewKind.CONFLICT, ReviewKind.FUSION, *KNOWLEDGE})  # a rejection changes no memory of these
UNDONE = frozenset({ReviewKind.CONFLICT, ReviewKind.FUSION})  # kinds whose acceptance can be taken back
DUPLICATES = "A person decided that both state the same."


def review_accept(*, actor: Actor, review_id: UUID, redact_history: bool = True, content: str | None = None) -> Review:
    """Accept a review. The effect depends on its kind:

    - PII: redact the findings in a new version, or the whole version if it is not the present one.
    - SOURCE_WITHDRAWN: keep the reviewed present text, and erase the words of earlier versions.
    - QUARANTINE: make the memory readable.
    - CONFLICT: keep the later statement, and end the validity of the earlier one.
    - FUSION: fuse both memories, with the proposed text.
    - FEEDBACK: change the memory as the feedback asks.
    - SYNC: take the other installation's words, or `content`.
    - PACK_SUPERSEDES, PACK_CONTRADICTS: end the validity of the own memory.
    - PACK_CONFIRMS: raise the trust of the own memory.

    Raises NotFound; Forbidden; Invalid for `content` of another kind; Conflict if it was decided already;
    PiiUnavailable; for a fusion as `cubes_fuse`. Writes: as the redaction, fusion or change; Review, AuditEntry.
    """
    with review_texts_prepare(actor=actor, review_id=review_id, content=content), acting(actor):
        review, cube = _locate_for_decision(actor, review_id)
        if content is not None and review.kind != ReviewKind.SYNC:
            raise Invalid(errors=[FieldError("content", "only a conflict of a sync takes another text")])
        if review.kind == ReviewKind.SOURCE_WITHDRAWN:
            _refuse_decided(review)
            _refuse_unseen(actor, cube)
            versions_blank(actor, cube, list(CubeVersion.objects.filter(cube=cube, number__lt=cube.version)))
            withdrawn_sources_drop(cube)
        elif review.kind == ReviewKind.CONFLICT:
            _refuse_decided(review)
            if review.other_id is not None:
                contradiction_settle(actor=actor, cube_id=cube.id, later_id=review.other_id)
        elif review.kind in KNOWLEDGE:
            _refuse_decided(review)
            kind, official = ReviewKind(review.kind), review.other_id
            if official is not None:
                knowledge_settle(actor=actor, kind=kind, cube_id=cube.id, official_id=official)
        elif review.other_id is not None:
            _refuse_decided(review)
            cubes_fuse(actor=actor, cube_ids=[review.cube_id, review.other_id], reason=DUPLICATES)
        elif review.kind == ReviewKind.QUARANTINE:
            _refuse_decided(review)
            _refuse_unseen(actor, cube)
            quarantine_release(actor=actor, review=review, cube=cube)
        elif review.kind == ReviewKind.SYNC:
            _refuse_decided(review)
            sync_conflict_accept(actor=actor, review=review, cube=cube, content=content)
        elif review.kind == ReviewKind.FEEDBACK:
            _refuse_decided(review)
            feedback_accept(actor=actor, review=review, cube=cube)
        else:
            _redact_memory(actor, review, cube, redact_history)
        _decide_review(actor, review, ReviewStatus.ACCEPTED)
        record(actor=actor, verb=Verb.REVIEW_ACCEPTED, object_type="review", object_ids=[review.id])
    return review


@contextmanager
def review_texts_prepare(*, actor: Actor, review_id: UUID, content: str | None = None) -> Iterator[None]:
    """Read the texts that accepting a review needs, before the transaction of `review_accept`.

    A version that could not be checked is screened here. Raises KeyUnavailable; Unavailable.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        asked = Review.objects.filter(tenant_id=actor.tenant_id, id=review_id)
        given = asked.filter(kind=ReviewKind.FEEDBACK, status=ReviewStatus.OPEN).first()
        synced = asked.filter(kind=ReviewKind.SYNC, status=ReviewStatus.OPEN).first()
        pii = asked.filter(kind=ReviewKind.PII)
        review = pii.select_related("version").first()
        failed = PiiFinding.objects.filter(version=review.version if review else None, kind=PiiKind.UNCHECKED)
        unchecked = failed.exists()
    if given is not None:
        with feedback_texts_prepare(actor=actor, cube_id=given.cube_id, feedback=feedback_open(given)):
            yield
    elif synced is not None:
        with sync_texts_prepare(actor=actor, review=synced, content=content):
            yield
    elif review is None:
        yield
    elif unchecked:
        reading = Reading(texts_of_version(review.version), EVERYWHERE)
        with prepare_texts(actor.tenant_id, lambda: [reading] if review.version.sealed else []):
            yield
    else:
        with prepare_clean_texts(actor=actor, cube_id=review.cube_id):
            yield


def _redact_memory(actor: Actor, review: Review, cube: Cube, redact_history: bool) -> None:
    locate_for_redaction(actor, cube.id)
    _refuse_decided(review)
    _check_version_again(review)
    if review.version.number == cube.version:
        cube_redact_findings(actor=actor, cube_id=cube.id, redact_history=redact_history)
    elif PiiFinding.objects.filter(version_id=review.version_id, status=ReviewStatus.OPEN).exists():
        cube_redact(actor=actor, cube_id=cube.id, number=review.version.number)


def review_accept_ask(*, actor: Actor, review_id: UUID) -> None:
    """Check that the actor may accept the review, except for its state. Raises NotFound; Forbidden."""
    with acting(actor):
        review, cube = _locate_for_decision(actor, review_id)
        if review.kind == ReviewKind.PII:
            locate_for_redaction(actor, cube.id)


def review_reject_ask(*, actor: Actor, review_id: UUID) -> None:
    """Check that the actor may reject the review, except for its state. Raises NotFound; Forbidden."""
    with acting(actor):
        _locate_for_decision(actor, review_id, rejecting=True)


def review_reject(*, actor: Actor, review_id: UUID) -> Review:
    """Reject a review, and store the decision so that the same version is not proposed again. The effect depends on its
    kind:

    - PII: mark the findings as no personal data.
    - SOURCE_WITHDRAWN, QUARANTINE: delete the memory.
    - CONFLICT: keep both statements valid.
    - FUSION, PACK_SUPERSEDES, PACK_CONTRADICTS, PACK_CONFIRMS: keep both memories unchanged.
    - FEEDBACK: leave the memory unchanged.
    - SYNC: keep the local words, which the next sync sends.

    Raises NotFound; Forbidden; Conflict if it was decided already. Writes: Review, PiiFinding …, AuditEntry.
    """
    with acting(actor):
        review, cube = _locate_for_decision(actor, review_id, rejecting=True)
        _refuse_decided(review)
        if review.kind in WITHHELD:
            cubes_hide(actor=actor, cubes=[cube])
        if review.kind == ReviewKind.CONFLICT and review.other_id is None:
            contradiction_undo(actor=actor, cube_id=cube.id)
        if review.kind == ReviewKind.SYNC:
            sync_conflict_reject(actor=actor, review=review, cube=cube)
        _decide_review(actor, review, ReviewStatus.REJECTED)
        record(actor=actor, verb=Verb.REVIEW_REJECTED, object_type="review", object_ids=[review.id])
    return review


def is_reopenable(review: Review) -> bool:
    """Return whether `review_reopen` can undo this decision, which destroyed no text and deleted no memory."""
    if review.status == ReviewStatus.REJECTED:
        return review.kind == ReviewKind.PII or (review.kind in UNCHANGED and review.other_id is not None)
    if review.status != ReviewStatus.ACCEPTED:
        return False
    return review.kind == ReviewKind.QUARANTINE or (review.kind in UNDONE and review.other_id is not None)


def review_reopen_ask(*, actor: Actor, review_id: UUID) -> None:
    """Check that the actor may decide the review, except for its state and decider. Raises NotFound; Forbidden."""
    with acting(actor):
        _locate_for_decision(actor, review_id)


def review_reopen(*, actor: Actor, review_id: UUID) -> Review:
    """Undo the actor's own decision on a review, and open the review again.

    Of a contradiction that was accepted, the earlier statement becomes valid again; of a fusion, both memories come
    back; a memory that left the quarantine returns to it.
    Raises NotFound; Forbidden for another's decision; Conflict if the decision cannot be undone, or the memory has
    another successor since; for a fusion as `fusion_undo`. Writes: Review, PiiFinding …, AuditEntry; Cube, CubeVersion
    of a contradiction; as `fusion_undo`; Posting … of a quarantine.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        fused = Review.objects.filter(tenant_id=actor.tenant_id, id=review_id, kind=ReviewKind.FUSION)
        ids = [cube_id for pair in fused.values_list("cube_id", "other_id") for cube_id in pair if cube_id]
    with prepare_stored_texts(actor=actor, cube_ids=ids), acting(actor):
        review, cube = _locate_for_decision(actor, review_id)
        if not is_reopenable(review):
            raise Conflict("This decision cannot be undone.")
        if review.decided_by != actor.principal_id:
            detail = "Only who decided a review may undo the decision."
            raise Forbidden(detail, permission=Permission.MEMORY_UPDATE, rule="decider")
        if review.status == ReviewStatus.ACCEPTED:
            _take_back(actor, review, cube)
        findings = PiiFinding.objects.filter(version_id=review.version_id, status=review.status)
        if review.kind == ReviewKind.PII:
            findings.update(status=ReviewStatus.OPEN)
        review.status, review.decided_at, review.decided_by, review.decided_kind = ReviewStatus.OPEN, None, None, ""
        review.save(update_fields=["status", "decided_at", "decided_by", "decided_kind"])
        record(actor=actor, verb=Verb.REVIEW_REOPENED, object_type="review", object_ids=[review.id])
    return review


def _take_back(actor: Actor, review: Review, cube: Cube) -> None:
    """Undo the effect of an accepted review. Raises Conflict if the memory has changed since."""
    if review.kind == ReviewKind.FUSION:
        fusion_undo(actor=actor, cube_id=cube.id)
    elif review.kind == ReviewKind.QUARANTINE:
        quarantine_return(actor=actor, cube=cube)
    elif cube.superseded_by != review.other_id:
        raise Conflict("The memory has changed since.")
    else:
        contradiction_undo(actor=actor, cube_id=cube.id)


def _locate_for_decision(actor: Actor, review_id: UUID, *, rejecting: bool = False) -> tuple[Review, Cube]:
    """Lock and return the review and its memory, if the actor may decide it.

    Raises NotFound; Forbidden if the actor may not read, change or, to reject, delete the memory; Held.
    """
    rows = Review.objects.filter(tenant_id=actor.tenant_id, id=review_id)
    found = rows.values_list("cube_id", "kind", "other_id").first()
    if found is None:
        raise NotFound
    withheld = found[1] in WITHHELD
    if found[2] is not None:  # the lower id: a fusion locks in the same order
        other = _locate_readable_memory(actor, found[2])
        if found[1] not in KNOWLEDGE:  # the memory of a pack is read-only, and stays as it is
            authorize(actor, Permission.MEMORY_UPDATE, cube_target(other))
    cube = withdrawn_locate(actor, found[0]) if withheld else _locate_readable_memory(actor, found[0])
    deleting = rejecting and withheld
    authorize(actor, Permission.MEMORY_DELETE if deleting else Permission.MEMORY_UPDATE, cube_target(cube))
    if withheld:
        refuse_held(actor, [cube.id])
    rows = Review.objects.select_for_update(of=("self",)).select_related("version")
    review = rows.get(id=review_id)
    if not readable_versions(actor).filter(id=review.version_id).exists():
        raise NotFound
    return review, cube


def _locate_readable_memory(actor: Actor, cube_id: UUID) -> Cube:
    cube = locate(actor, cube_id, lock=True)
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    return cube


def _refuse_decided(review: Review) -> None:
    if review.status != ReviewStatus.OPEN:
        raise Conflict(f"The review is {review.status}; only an open one can be decided.")


def _refuse_unseen(actor: Actor, cube: Cube) -> None:
    """Raise Forbidden if the actor may not read the sources: keeping the text makes it readable without them."""
    if not select_for_decision(actor).filter(id=cube.id).exists():
        detail = "Only who could read what this memory was made from may keep it."
        raise Forbidden(detail, permission=Permission.MEMORY_READ, rule="source")


def _check_version_again(review: Review) -> None:
    """Screen a version on which the detector failed. Findings that were decided are not opened again."""
    unchecked = PiiFinding.objects.filter(version_id=review.version_id, kind=PiiKind.UNCHECKED)
    if not unchecked.exists():
        return
    version = review.version
    texts = texts_of_version(version)
    try:
        places = prepared_places(texts, EVERYWHERE)
        places = find_places(detector(), texts, EVERYWHERE) if places is None else places
    except DetectorFailed as failure:
        raise PiiUnavailable("It still cannot be checked.") from failure
    unchecked.delete()
    _keep_findings(version, [Finding(place, detector().version) for place in places])


def _keep_findings(version: CubeVersion, found: list[Finding]) -> None:
    rows = PiiFinding.objects.filter(version_id=version.id)
    known = {(row.field, row.leaf, row.begins, row.ends) for row in rows}
    new = [
        finding
        for finding in found
        if (str(finding.place.part), finding.place.leaf, finding.place.span.start, finding.place.span.end) not in known
    ]
    findings_insert([(version, new)], ask=False)


def _decide_review(actor: Actor, review: Review, status: ReviewStatus) -> None:
    review.status, review.decided_by, review.decided_kind = status, actor.principal_id, actor.principal_kind
    Review.objects.filter(id=review.id).update(
        status=status, decided_at=Now(), decided_by=actor.principal_id, decided_kind=actor.principal_kind, sealed=b""
    )
    review.sealed = b""
    if review.kind == ReviewKind.PII:
        PiiFinding.objects.filter(version_id=review.version_id, status=ReviewStatus.OPEN).update(status=status)
    review.refresh_from_db(fields=["decided_at"])
