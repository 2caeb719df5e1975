"""Copies of vectors in an index outside PostgreSQL, which finds the nearest ones of large tenants faster.

PostgreSQL has every vector and decides who may see a memory. Events name the memories whose vectors have changed; a job
then makes the index hold what PostgreSQL holds, so that each run and each order of runs has the same result. A job
copies all vectors of a tenant when it moves to an index (docs/decisions/0094).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import BinaryField, F, Func, QuerySet
from pgvector import HalfVector

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.services import job_cancel, job_create
from governance.jobs.steps import ENDED
from governance.models import Job
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Permission, Topic, Verb
from vault.embeddings.vectors import announce_changes
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import Embedding
from vault.providers.ports import IndexedVector, VectorIndex, VectorIndexUnavailable
from vault.providers.registry import vector_index

POSTGRESQL = ""  # the name where no other index has copies
PART = 500  # memories of one step
FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
COLUMNS = ("cube_id", "part", "model", "namespace_id", "version")
PACKED = Func(F("vector"), function="halfvec_send", output_field=BinaryField())  # a tenth of the time of its text


@dataclass(frozen=True)
class IndexMove:
    """The answer to a request to move. index: the name of the wanted index, empty: PostgreSQL alone. started: False if
    it has the tenant's vectors already, or gets them now."""

    index: str
    started: bool


@dataclass(frozen=True)
class IndexState:
    """The index outside PostgreSQL that gets a tenant's vectors. name: empty if none does. is_filled: it has all."""

    name: str
    is_filled: bool


@dataclass(frozen=True)
class Present:
    """The vectors of some memories in PostgreSQL. state: changes whenever one of them does."""

    vectors: Sequence[IndexedVector]
    state: frozenset[tuple[Any, ...]]


def index_move(*, actor: Actor, is_external: bool) -> IndexMove:
    """Request the move of the tenant's vectors to the index of the settings, or back to PostgreSQL alone.

    Searches use PostgreSQL until the index is filled, and at once after a move back. For owners and admins.
    Raises Forbidden; VectorIndexUnavailable without an index in the settings. Writes: EmbeddingModel, Job, AuditEntry
    and OutboxEvent, or nothing.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    index = _require_index()
    wanted = index.name if is_external else POSTGRESQL
    with acting(actor):
        row = EmbeddingModel.objects.select_for_update().filter(tenant_id=actor.tenant_id).first()
        jobs = list(_select_moves(actor).select_for_update())
        is_running = any(job.settings["to"] == wanted and not job.dead_letter for job in jobs)
        is_done = row is None or (row.vector_index == wanted and row.is_index_filled == is_external)
        # An index that is filled is compared anew: after a restoration it may differ.
        if is_running or row is None or (is_done and not is_external):
            return IndexMove(wanted, started=False)
        for job in jobs:
            job_cancel(actor=actor, job_id=job.id)
        row.vector_index, row.is_index_filled = wanted, row.is_index_filled and row.vector_index == wanted
        row.save(update_fields=["vector_index", "is_index_filled"])
        total = Embedding.objects.filter(tenant_id=actor.tenant_id).values("cube_id").distinct().count()
        job_create(
            actor=actor,
            kind=Topic.VECTORS_MOVE,
            settings={"to": wanted},
            state={"after": str(FIRST)},
            total=total if is_external else 0,
        )
        _record_step(actor, "index requested", wanted)
    return IndexMove(wanted, started=True)


def index_state(*, actor: Actor) -> IndexState:
    """Return where the tenant's vectors are copied to. For owners and admins. Raises Forbidden."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        row = EmbeddingModel.objects.filter(tenant_id=actor.tenant_id).first()
    return IndexState(row.vector_index, row.is_index_filled) if row else IndexState(POSTGRESQL, False)


@handler(Topic.VECTORS_MOVE, permission=Permission.MEMBER_MANAGE)
def vectors_move(run: JobRun) -> Callable[[], Step]:
    """Copy the vectors of the next PART memories to the index, or delete the tenant's copies. done: memories.

    Raises VectorIndexUnavailable. Writes: EmbeddingModel, AuditEntry with the last step; OutboxEvent …?.
    """
    actor, index, wanted = run.system, _require_index(), run.settings["to"]
    after = UUID(run.state["after"])
    with acting(actor):
        current = read_index_name(actor)
        ids = _list_next(actor, after) if wanted and current == wanted else []
        present = _read_present(actor, ids)
    if current != wanted:
        return lambda: Step(done=run.done)  # a later move replaced this one
    if not wanted:
        index.delete_tenant(actor.tenant_id)
        return lambda: _finish_move(run, run.done)
    until = ids[-1] if len(ids) == PART else LAST
    # Also those that only the index has, as after a restoration of an older backup.
    index.replace(actor.tenant_id, sorted({*ids, *index.list_cubes(actor.tenant_id, after, until)}), present.vectors)

    def write() -> Step:
        if _read_present(actor, ids).state != present.state:
            announce_changes(actor.tenant_id, ids)
        done = run.done + len(ids)
        return Step(state={"after": str(until)}, done=done) if len(ids) == PART else _finish_move(run, done)

    return write


def vectors_copy(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Make the index hold the present vectors of memories, and none of those that have none. Idempotent.

    The index is asked outside any transaction. If a vector changed meanwhile, another event follows. Raises
    VectorIndexUnavailable.
    """
    ids = sorted({UUID(cube_id) for payload in payloads for cube_id in _read_ids(payload)})
    present = copies_replace(actor, ids)

    def write() -> None:
        if _read_present(actor, ids).state != present.state:
            announce_changes(actor.tenant_id, ids)

    return write


def copies_replace(actor: Actor, cube_ids: Sequence[UUID]) -> Present:
    """Copy the vectors of memories to the index, and return them. Outside any transaction.

    Raises VectorIndexUnavailable, also if the settings name no index although the tenant's vectors are in one.
    """
    with acting(actor):
        name, present = read_index_name(actor), _read_present(actor, cube_ids)
    index = _require_index() if name else vector_index()
    if index is not None:
        index.replace(actor.tenant_id, cube_ids, present.vectors)
    return present


def copies_confirm_deletion(actor: Actor, cube_ids: Sequence[UUID]) -> None:
    """Remove from the index what PostgreSQL no longer has of these memories, if there is an index.

    Outside any transaction. Raises VectorIndexUnavailable: the caller's job is tried again.
    """
    if cube_ids:
        copies_replace(actor, cube_ids)


def tenant_copies_delete(tenant_id: UUID, name: str) -> None:
    """Delete all copies of a tenant's vectors, if there is an index. name: that of the tenant's, empty: none.

    Raises VectorIndexUnavailable, also if the settings name no index although the tenant's vectors are in one.
    """
    index = _require_index() if name else vector_index()
    if index is not None:
        index.delete_tenant(tenant_id)


def _require_index() -> VectorIndex:
    index = vector_index()
    if index is None:
        raise VectorIndexUnavailable("MEMOS_VECTOR_INDEX names no index, but this organisation's vectors are in one")
    return index


def _select_moves(actor: Actor) -> QuerySet[Job]:
    return Job.objects.filter(tenant_id=actor.tenant_id, kind=Topic.VECTORS_MOVE).exclude(status__in=ENDED)


def read_index_name(actor: Actor) -> str:
    """Return the name of the index outside PostgreSQL that gets the tenant's vectors. Use inside a transaction."""
    rows = EmbeddingModel.objects.filter(tenant_id=actor.tenant_id)
    return rows.values_list("vector_index", flat=True).first() or POSTGRESQL


def _list_next(actor: Actor, after: UUID) -> list[UUID]:
    rows = Embedding.objects.filter(tenant_id=actor.tenant_id, cube_id__gt=after)
    return list(rows.order_by("cube_id").values_list("cube_id", flat=True).distinct()[:PART])


def _read_present(actor: Actor, cube_ids: Sequence[UUID]) -> Present:
    """Read the vectors to copy: none for a tenant whose vectors are in PostgreSQL alone."""
    if not cube_ids or not read_index_name(actor):
        return Present((), frozenset())
    rows = Embedding.objects.filter(tenant_id=actor.tenant_id, cube_id__in=cube_ids)
    vectors, state = [], set()
    for cube_id, part, model, namespace_id, version, packed in rows.values_list(*COLUMNS, PACKED):
        numbers = HalfVector.from_binary(bytes(packed)).to_numpy().astype(np.float32)
        vectors.append(IndexedVector(cube_id, part, model, namespace_id, numbers))
        state.add((cube_id, part, model, namespace_id, version))
    return Present(vectors, frozenset(state))


def _finish_move(run: JobRun, done: int) -> Step:
    """Let searches ask the filled index, unless a later move replaced this one."""
    wanted = run.settings["to"]
    rows = EmbeddingModel.objects.filter(tenant_id=run.system.tenant_id, vector_index=wanted)
    rows.update(is_index_filled=bool(wanted))
    _record_step(run.system, "index filled" if wanted else "index emptied", wanted)
    return Step(done=done)


def _record_step(actor: Actor, what: str, index: str) -> None:
    detail = {"step": what, "index": index or "postgresql"}
    record(actor=actor, verb=Verb.MEMORY_INDEXED, object_type="tenant", object_ids=[actor.tenant_id], detail=detail)


def _read_ids(payload: Payload) -> list[str]:
    ids = payload["ids"]
    assert isinstance(ids, list)
    return [str(cube_id) for cube_id in ids]
