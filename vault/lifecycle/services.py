"""Lifecycle changes of one memory by a person: a state transition, a move to another layer, a copy."""

from collections.abc import Collection
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.content.drafts import OWN_TRUST, CubeDraft, SourceRef
from vault.content.words import NO_WORDS
from vault.cubes.eligibility import index_cubes
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target, locate
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.selectors import CubeView, cube_read
from vault.cubes.services import check_version, cubes_add, emit_cubes_written
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.lifecycle.steps import PlannedStep, refuse_illegal, steps_write
from vault.models import Cube
from vault.screening.screen import screen_note
from vault.vocabulary import Layer, Modality, SemanticType, Sensitivity, Source, SourceKind, State

LONGEST_REASON = 500


def cube_transition(
    *,
    actor: Actor,
    cube_id: UUID,
    to: State,
    reason: str = "",
    expected_versions: Collection[int] | None = None,
    job_id: UUID | None = None,
) -> Cube:
    """Change the state of a memory, and move its postings and vector to the index of that state.

    Adds no version. job_id: the job that makes the change.
    Raises, in this order: NotFound; Forbidden; Held; VersionConflict; Invalid; IllegalTransition, which names the legal
    states; Conflict if another transition came first.
    Writes: Cube, StateTransition, Posting …, AuditEntry, OutboxEvent?.
    """
    with prepare_stored_texts(actor=actor, cube_ids=[cube_id]), acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        reason_check(reason)
        reason = screen_note(
            actor=actor,
            name="reason",
            text=reason,
            namespace_path=cube.namespace.path,
            sensitivity=cube.sensitivity,
        )
        refuse_illegal(State(cube.state), to)
        steps_write(actor, [PlannedStep(cube, to, reason)], job_id)
    return cube


def cube_promote(
    *,
    actor: Actor,
    cube_id: UUID,
    layer: Layer,
    expected_versions: Collection[int] | None = None,
) -> Cube:
    """Move a memory to another layer, so that searches of that layer find it. Promoting it back undoes this.

    Adds no version. Raises, in this order: NotFound; Forbidden; Held; VersionConflict; Conflict if it is in that layer
    already.
    Writes: Cube, Posting …, AuditEntry, OutboxEvent?.
    """
    with prepare_stored_texts(actor=actor, cube_ids=[cube_id]), acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        if cube.layer == layer:
            raise Conflict(f"The memory is in the layer {layer} already.")
        before, cube.layer = cube.layer, layer
        Cube.objects.filter(id=cube.id).update(layer=layer)
        index_cubes([cube])
        if cube.is_indexed:
            emit_cubes_written(actor, [cube])
        detail = {"from": before, "to": str(layer)}
        ids = [cube.id]
        record(actor=actor, verb=Verb.MEMORY_PROMOTED, object_type="memory", object_ids=ids, detail=detail)
    return cube


@with_blobs
def cube_copy(
    *,
    actor: Actor,
    cube_id: UUID,
    namespace: str,
    expected_versions: Collection[int] | None = None,
) -> Cube:
    """Copy the present words of a memory to the namespace at a path, with the memory as source of the copy.

    The copy is readable as long as its source is; deleting the copy undoes it.
    Raises NotFound; Forbidden; Held; VersionConflict; Invalid; Conflict if its words were removed; QuotaExceeded.
    Writes as `cubes_add`.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        cube = cube_copy_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        view = cube_read(actor=actor, cube_id=cube.id, verb=Verb.MEMORY_READ)
        words_check(view)
        return cubes_add(actor=actor, drafts=[draft_copy(view, namespace=namespace)])[0].cube


def cube_copy_ask(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """Return the memory, if the actor may read it and it may be copied. Use inside `acting`.

    Raises NotFound; Forbidden; Conflict for a memory of a pack; Held, because a copy would escape the hold;
    VersionConflict.
    """
    cube = locate(actor, cube_id)
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    if cube.source == Source.PACK:
        raise Conflict("A memory of a pack stays in the pack's namespace, which its contract covers.")
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


def draft_copy(
    view: CubeView, *, content: str | None = None, namespace: str | None = None, reader: str = ""
) -> CubeDraft:
    """Return a draft with a memory's fields and its words or `content`. The memory becomes the draft's source."""
    cube = view.cube
    return CubeDraft(
        content=view.words.content if content is None else content,
        title=view.words.title,
        metadata=view.words.metadata,
        speaker=view.words.speaker,
        namespace=cube.namespace.path if namespace is None else namespace,
        persona=str(cube.persona_id) if cube.persona_id else None,
        subject=view.subject.reference if view.subject else None,
        tags=tuple(cube.tags),
        event_time=cube.event_time,
        valid_from=cube.valid_from,
        valid_to=cube.valid_to,
        expires_at=cube.expires_at if cube.expiry_policy is None else None,
        sensitivity=Sensitivity(cube.sensitivity),
        importance=cube.importance,
        semantic_type=SemanticType(cube.semantic_type),
        layer=Layer(cube.layer),
        modality=Modality(cube.modality),
        reader=reader or cube.reader,
        source=Source.PACK if cube.source == Source.PACK else Source.API,  # what came from a pack stays so
        trust=cube.trust if cube.source == Source.PACK else OWN_TRUST,
        allow_duplicates=True,
        sources=(SourceRef(cube.id, cube.version, SourceKind.TEXT),),
    )


def words_check(view: CubeView) -> None:
    """Check that a memory still has its words. Raises Conflict if they were removed."""
    if view.words == NO_WORDS or not view.words.content:
        raise Conflict("The words of this memory were removed.")


def reason_check(reason: str) -> None:
    """Check the length and characters of a reason. Raises Invalid."""
    if len(reason) > LONGEST_REASON or "\x00" in reason:
        raise Invalid(errors=[FieldError("reason", f"at most {LONGEST_REASON} characters")])
