"""Fusion of several memories into one, and split of one into several. The originals stay, in the state merged."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Invalid, TooLarge, VersionConflict
from governance.versions import VersionLists, versions_text
from governance.vocabulary import Permission, Verb
from vault.content.drafts import CubeDraft
from vault.cubes.lookup import cube_target, locate
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.selectors import CubeView, cube_read, cubes_read
from vault.cubes.services import cubes_add, cubes_hide
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.lifecycle.fusion_text import fused_text, split_parts
from vault.lifecycle.rules import Cause
from vault.lifecycle.services import draft_copy, reason_check, words_check
from vault.lifecycle.steps import PlannedStep, refuse_illegal, steps_write
from vault.models import Cube, CubeLink, StateTransition
from vault.vocabulary import LinkKind, Sensitivity, Source, State

MOST_FUSED = 20
MOST_PARTS = 50
FUSION, SPLIT = "fusion", "split"  # `reader` of memories made by a fusion or a split
NOT_MERGED = "Nothing was fused or split here that could be undone."


@dataclass(frozen=True)
class FusionProposal:
    """The proposed text of a fusion. parents: newest first; versions: their version numbers, as `versions_text` joins
    them."""

    parents: tuple[Cube, ...]
    versions: str
    title: str = field(repr=False)
    content: str = field(repr=False)


@dataclass(frozen=True)
class UndonePlan:
    """The memories that an undo changes. parents: get their earlier state back; results: are deleted."""

    parents: tuple[Cube, ...]
    results: tuple[Cube, ...]


def fusion_propose(
    *, actor: Actor, cube_ids: Collection[UUID], expected_versions: VersionLists | None = None
) -> FusionProposal:
    """Propose the text of a fusion: the newest memory, followed by the sentences of the others that state something
    new.

    Raises as `cubes_fuse`. Writes: AuditEntry, since the memories are read.
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    with acting(actor):
        views = _open_parents(actor, cube_ids, expected_versions)
        cubes = tuple(view.cube for view in views)
        content = fused_text([view.words.content for view in views], settings.MAX_CONTENT_CHARACTERS)
        return FusionProposal(cubes, versions_text(_versions(cubes)), _choose_title(views), content)


def cubes_fuse(
    *,
    actor: Actor,
    cube_ids: Collection[UUID],
    content: str | None = None,
    reason: str = "",
    expected_versions: VersionLists | None = None,
) -> Cube:
    """Store one memory made of several; these become merged and refer to it. content None: use the proposed text.

    The result gets the highest sensitivity and the earliest expiry of them.
    Raises, in this order: NotFound; Forbidden; Held; VersionConflict; Invalid for fewer than two, more than MOST_FUSED,
    or memories of several namespaces, personas or subjects; IllegalTransition; Conflict if words were removed;
    QuotaExceeded.
    Writes: as `cubes_add` for the result; Cube …, StateTransition …, AuditEntry …; deletes Posting …, Embedding ….
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    with acting(actor):
        views = _open_parents(actor, cube_ids, expected_versions)
        reason_check(reason)
        texts = [view.words.content for view in views]
        text = fused_text(texts, settings.MAX_CONTENT_CHARACTERS) if content is None else content
        _content_check("content", text)
        (added,) = cubes_add(actor=actor, drafts=[_fused_draft(views, text)])
        _mark_merged(actor, [view.cube for view in views], added.cube.id, reason)
    return added.cube


def split_propose(*, actor: Actor, cube_id: UUID) -> list[str]:
    """Return the paragraphs of a memory, or its sentences if it has one paragraph. Writes: AuditEntry.

    Raises NotFound; Forbidden; Held; Conflict.
    """
    with acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id)
        view = cube_read(actor=actor, cube_id=cube.id, verb=Verb.MEMORY_READ)
        words_check(view)
        return split_parts(view.words.content)


def cube_split(
    *,
    actor: Actor,
    cube_id: UUID,
    parts: Sequence[str],
    reason: str = "",
    expected_versions: Collection[int] | None = None,
) -> list[Cube]:
    """Store each part as a new memory with the description of the whole; the whole becomes merged.

    Raises, in this order: NotFound; Forbidden; Held; VersionConflict; Invalid; IllegalTransition; Conflict if the words
    were removed; QuotaExceeded.
    Writes as `cubes_fuse`.
    """
    with acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        reason_check(reason)
        _parts_check(parts)
        refuse_illegal(State(cube.state), State.MERGED, Cause.FUSION)
        view = cube_read(actor=actor, cube_id=cube.id, verb=Verb.MEMORY_READ)
        words_check(view)
        drafts = [draft_copy(view, content=part.strip(), reader=SPLIT) for part in parts]
        made = [added.cube for added in cubes_add(actor=actor, drafts=drafts)]
        _mark_merged(actor, [cube], made[0].id, reason)
    return made


def fusion_undo(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> UndonePlan:
    """Undo a fusion or split within the grace period. cube_id: its result, or a memory that it merged.

    The results are deleted, and can be restored like other deleted memories; the merged ones get their earlier state
    back.
    Raises, in this order: NotFound; Forbidden; Held; VersionConflict; Conflict if there is nothing to undo, the grace
    period is over, or a result was fused or split again.
    Writes: Cube …, StateTransition …, Posting …, AuditEntry ….
    """
    with acting(actor):
        ids = [cube.id for cube in _find_fusion(locate(actor, cube_id)).parents]
    with prepare_stored_texts(actor=actor, cube_ids=ids), acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        found = _find_fusion(cube)
        parents = [
            cube_change_ask(actor=actor, cube_id=parent_cube.id) for parent_cube in sorted(found.parents, key=_id_key)
        ]
        results = [
            cube_change_ask(actor=actor, cube_id=result_cube.id) for result_cube in sorted(found.results, key=_id_key)
        ]
        if not parents or not results:
            raise Conflict(NOT_MERGED)
        for result in results:
            authorize(actor, Permission.MEMORY_DELETE, cube_target(result))
        if any(result.state == State.MERGED for result in results):
            raise Conflict("What was made here was fused or split once more. Undo that first.")
        steps = [PlannedStep(parent, _find_state_before(parent)) for parent in parents]
        for step in steps:
            refuse_illegal(State(step.cube.state), step.to, Cause.UNDO_OF_FUSION)
        cubes_hide(actor=actor, cubes=results)
        steps_write(actor, steps)
        Cube.objects.filter(id__in=[parent.id for parent in parents]).update(superseded_by=None)
    return UndonePlan(tuple(parents), tuple(results))


def is_undoable(cube: Cube) -> bool:
    """Return whether `fusion_undo` of this memory would undo something. Use inside `acting`. Two queries at most."""
    if cube.state != State.MERGED and cube.reader not in {FUSION, SPLIT}:
        return False
    found = _find_fusion(cube)
    return bool(found.parents and found.results)


def _versions(cubes: Collection[Cube]) -> tuple[int, ...]:
    return tuple(cube.version for cube in sorted(cubes, key=_id_key))


def _versions_check(cubes: Collection[Cube], expected: VersionLists) -> None:
    """Check that the present versions are among `expected`. Raises VersionConflict."""
    present = _versions(cubes)
    if present not in expected:
        raise VersionConflict(f"The memories are at versions {versions_text(present)}. Read them again.")


def _open_parents(actor: Actor, cube_ids: Collection[UUID], expected: VersionLists | None) -> list[CubeView]:
    """Lock and open the memories of a fusion, newest first. They are locked in the order of ids, so that calls cannot
    deadlock."""
    chosen = sorted(set(cube_ids))
    cubes = [cube_change_ask(actor=actor, cube_id=cube_id) for cube_id in chosen]
    if expected is not None:
        _versions_check(cubes, expected)
    if not 2 <= len(chosen) <= MOST_FUSED:
        raise Invalid(errors=[FieldError("ids", f"2 to {MOST_FUSED} different ones")])
    for name in ("namespace", "persona", "subject"):
        if len({getattr(cube, f"{name}_id") for cube in cubes}) > 1:
            raise Invalid(errors=[FieldError("ids", f"must be of one {name}: move or copy the others first")])
    for cube in cubes:
        refuse_illegal(State(cube.state), State.MERGED, Cause.FUSION)
    views = cubes_read(actor=actor, cube_ids=chosen, verb=Verb.MEMORY_READ)
    for cube_id in set(chosen) - {view.cube.id for view in views}:
        cube_read(actor=actor, cube_id=cube_id, verb=Verb.MEMORY_READ)  # raises the reason why it is closed
    for view in views:
        words_check(view)
    return sorted(views, key=lambda view: (view.cube.event_time or view.cube.created_at, view.cube.id), reverse=True)


def _fused_draft(views: Sequence[CubeView], content: str) -> CubeDraft:
    drafts = [draft_copy(view, content=content, reader=FUSION) for view in views]
    ends = [draft.expires_at for draft in drafts if draft.expires_at is not None]
    begins = [draft.valid_from for draft in drafts]
    levels = list(Sensitivity)
    return replace(
        drafts[0],
        title=_choose_title(views),
        tags=tuple(dict.fromkeys(tag for draft in drafts for tag in draft.tags)),
        sensitivity=max((draft.sensitivity for draft in drafts), key=levels.index),
        importance=max(draft.importance for draft in drafts),
        source=Source.PACK if any(draft.source is Source.PACK for draft in drafts) else drafts[0].source,
        trust=min(draft.trust for draft in drafts),
        expires_at=min(ends, default=None),
        valid_from=None if None in begins else min(begin for begin in begins if begin is not None),
        sources=tuple(source for draft in drafts for source in draft.sources),
    )


def _choose_title(views: Sequence[CubeView]) -> str:
    return next((view.words.title for view in views if view.words.title), "")


def _mark_merged(actor: Actor, cubes: Sequence[Cube], into: UUID, reason: str) -> None:
    steps_write(actor, [PlannedStep(cube, State.MERGED, reason) for cube in cubes])
    Cube.objects.filter(id__in=[cube.id for cube in cubes]).update(superseded_by=into)


def _find_fusion(cube: Cube) -> UndonePlan:
    """Return the sources and results of the fusion or split that this memory belongs to. Both may be empty."""
    rows = Cube.objects.filter(tenant_id=cube.tenant_id, deleted_at=None)
    if cube.reader == SPLIT and cube.state != State.MERGED:
        links = CubeLink.objects.filter(source_id=cube.id, kind=LinkKind.DERIVED).values("target_id")
        whole = rows.filter(id__in=links, state=State.MERGED).first()
        return _find_fusion(whole) if whole else UndonePlan((), ())
    lead_id = cube.superseded_by if cube.state == State.MERGED else cube.id
    lead = rows.filter(id=lead_id).first() if lead_id else None
    if lead is None or lead.reader not in {FUSION, SPLIT}:
        return UndonePlan((), ())
    parents = tuple(rows.filter(superseded_by=lead.id, state=State.MERGED))
    if lead.reader == FUSION:
        return UndonePlan(parents, (lead,))
    made = CubeLink.objects.filter(target__in=parents, kind=LinkKind.DERIVED).values("source_id")
    return UndonePlan(parents, tuple(rows.filter(id__in=made, reader=SPLIT)))


def _find_state_before(cube: Cube) -> State:
    """Return the state before the merge. Raises Conflict if the memory was not merged or the grace period is over."""
    row = StateTransition.objects.filter(cube=cube, to_state=State.MERGED).order_by("-step").first()
    if row is None:
        raise Conflict(NOT_MERGED)
    if row.created_at + timedelta(days=settings.DELETED_GRACE_DAYS) < database_now():
        raise Conflict(f"A fusion can be undone for {settings.DELETED_GRACE_DAYS} days.")
    return State(row.from_state)


def _parts_check(parts: Sequence[str]) -> None:
    if not 2 <= len(parts) <= MOST_PARTS:
        raise Invalid(errors=[FieldError("parts", f"2 to {MOST_PARTS} are needed")])
    for number, part in enumerate(parts):
        _content_check(f"parts.{number}", part)


def _content_check(name: str, text: str) -> None:
    if len(text) > settings.MAX_CONTENT_CHARACTERS:
        raise TooLarge(f"`{name}` may have {settings.MAX_CONTENT_CHARACTERS} characters.")
    if not text.strip() or "\x00" in text:
        raise Invalid(errors=[FieldError(name, "write something")])


def _id_key(cube: Cube) -> UUID:
    return cube.id
