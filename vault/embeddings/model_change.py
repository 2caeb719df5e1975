"""Moves of a tenant's memories to another embedding model, while searches use the old vectors.

The steps of a job make up to BATCH missing vectors each, then one step switches the tenant to the new model, and the
last steps delete the old vectors. A killed worker loses the work of one step only (docs/decisions/0009).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, no_tenant
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.services import job_cancel, job_create
from governance.jobs.steps import ENDED
from governance.models import Job
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Verb
from vault.embeddings.vectors import active_model, announce_changes, embeddings_write, make_embeddings, texts_of
from vault.models.cube import Cube
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import WHOLE, Embedding
from vault.providers.ports import Embedder, ProviderUnavailable
from vault.providers.registry import embedder, embedder_by_name

BATCH = 200  # cubes embedded in one step
CLEARED = 5_000  # old vectors deleted in one step
START = UUID(int=0)

# Cubes that need a vector: those at the request of the move, and newer ones with a vector of the active model. The
# indexing job makes the vectors of the latest writes, so that a busy tenant reaches its switch too.
WITHOUT_VECTOR = """
SELECT cube.id FROM vault_cube AS cube
  JOIN vault_cubeversion AS version ON version.tenant_id = cube.tenant_id AND version.cube_id = cube.id
    AND version.number = cube.version AND version.sealed <> ''
WHERE cube.tenant_id = %(tenant)s AND cube.id > %(after)s AND cube.is_indexed AND NOT cube.is_cold
  AND NOT EXISTS (SELECT 1 FROM vault_embedding AS made WHERE made.tenant_id = cube.tenant_id
    AND made.cube_id = cube.id AND made.model = %(model)s AND made.version = cube.version)
  AND (cube.id <= %(until)s OR EXISTS (SELECT 1 FROM vault_embedding AS old WHERE old.tenant_id = cube.tenant_id
    AND old.cube_id = cube.id AND old.model = %(active)s AND old.version = cube.version))
ORDER BY cube.id LIMIT %(limit)s
"""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('reembedding ' || %s, 0))"
CLEAR = """
DELETE FROM vault_embedding WHERE tenant_id = %s AND ctid = ANY(ARRAY(
  SELECT ctid FROM vault_embedding WHERE tenant_id = %s AND model <> ALL(%s) LIMIT %s)) RETURNING cube_id
"""


@dataclass(frozen=True)
class Reembedding:
    """The result of a request to change the model. started: False if there is nothing to do, or a move is running."""

    active: str | None
    model: str
    needs_vectors: bool
    started: bool


@dataclass(frozen=True)
class _Position:
    """The state of a move to `model`: cubes up to `after` are done; `until` is the newest cube at the request."""

    model: str
    after: UUID
    until: UUID

    @property
    def state(self) -> Mapping[str, str]:
        return {"after": str(self.after), "until": str(self.until)}


def reembedding_start(*, actor: Actor) -> Reembedding:
    """Request the move of the actor's tenant to the configured embedder. A second request changes nothing.

    For owners and admins, since it costs a call of the model for every memory. The model embeds a test text first, so
    that no move to an unavailable model starts. Raises Forbidden; ProviderUnavailable.
    Cancels another running move. Writes: Job …, AuditEntry … and OutboxEvent, or nothing.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    model = embedder()
    wanted = model.name
    with acting(actor):
        active = active_model(actor)
    if active not in {None, wanted}:
        model.embed(["reembed"])
    with acting(actor):
        jobs = lock_moves(actor)
        active = active_model(actor)
        needs_vectors = active not in {None, wanted}
        started = needs_vectors and not any(job.settings["model"] == wanted and not job.dead_letter for job in jobs)
        if started:
            for job in moves_before_switch(jobs, active):
                job_cancel(actor=actor, job_id=job.id)
            record_step(actor, "requested", model=wanted, former=active)
            _job_create(actor, wanted, active)
    return Reembedding(active=active, model=wanted, needs_vectors=needs_vectors, started=started)


def tenants_to_reembed() -> list[UUID]:
    """Return the ids of the tenants whose active model is not the configured one."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT vault_tenants_to_reembed(%s)", [embedder().name])
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def moves(actor: Actor) -> QuerySet[Job]:
    """Select the tenant's moves that are running or dead letters. Use inside a transaction."""
    rows = Job.objects.filter(tenant_id=actor.tenant_id, kind=Topic.CUBES_REEMBED)
    return rows.filter(Q(dead_letter=True) | ~Q(status__in=ENDED)).order_by("id")


def lock_moves(actor: Actor) -> list[Job]:
    """Lock the moves of the tenant against starts, cancellations and steps; read the active model afterwards."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [str(actor.tenant_id)])
    return list(moves(actor).select_for_update())


def moves_before_switch(jobs: Iterable[Job], active: str | None) -> list[Job]:
    """Return the moves before their switch; a move to the active model only deletes old vectors."""
    return [job for job in jobs if job.settings["model"] != active]


def start_clearing(actor: Actor, job: Job) -> None:
    """Start the deletion of the new vectors of a cancelled move. Writes: OutboxEvent."""
    emit(actor=actor, topic=Topic.REEMBED_CANCELLED, payload={})


@handler(Topic.CUBES_REEMBED, permission=Permission.MEMBER_MANAGE, cancelled=start_clearing)
def cubes_reembed(run: JobRun) -> Callable[[], Step]:
    """Do one step of a move. Calls the model outside any transaction. Raises ProviderUnavailable."""
    actor = run.system
    position = _Position(run.settings["model"], UUID(run.state["after"]), UUID(run.state["until"]))
    model = _build_model(position.model)
    with acting(actor):
        active = active_model(actor)
        lacking = _find_lacking(actor, position, active) if active not in {None, position.model} else []
        texts = texts_of(lacking)
    vectors = make_embeddings(actor, model, texts)

    def write() -> Step:
        if lacking:
            ids = embeddings_write(vectors)
            record(actor=actor, verb=Verb.MEMORY_INDEXED, object_type="memory", object_ids=ids)
            return Step(state=replace(position, after=lacking[-1]).state, done=run.done + len(lacking))
        if active == position.model:
            return Step(state=position.state if _clear_vectors(actor) else None)
        if position.after != START:
            return Step(state=replace(position, after=START).state)  # earlier cubes may have changed since
        if active is not None:
            _switch_model(actor, position)
            return Step(state=position.state)
        return Step()

    return write


def _job_create(actor: Actor, wanted: str, active: str | None) -> None:
    cubes = Cube.objects.filter(tenant_id=actor.tenant_id)
    newest = cubes.order_by("-id").values_list("id", flat=True).first()
    total = Embedding.objects.filter(tenant_id=actor.tenant_id, model=active, part=WHOLE).count()
    position = _Position(wanted, START, newest or START)
    settings = {"model": wanted}
    job_create(actor=actor, kind=Topic.CUBES_REEMBED, settings=settings, state=position.state, total=total)


def _build_model(name: str) -> Embedder:
    model = embedder_by_name(name)
    if model is None:
        raise ProviderUnavailable(f"This process cannot build the embedder {name}")
    return model


def _find_lacking(actor: Actor, position: _Position, active: str | None) -> list[UUID]:
    parameters: dict[str, str | int | UUID | None] = {
        "tenant": actor.tenant_id,
        "after": position.after,
        "until": position.until,
        "model": position.model,
        "active": active,
        "limit": BATCH,
    }
    with connection.cursor() as cursor:
        cursor.execute(WITHOUT_VECTOR, parameters)
        return [cube_id for (cube_id,) in cursor.fetchall()]


def _switch_model(actor: Actor, position: _Position) -> None:
    """Switch the tenant to the new model unless a vector is missing; indexing jobs wait meanwhile."""
    row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)
    if row.model != position.model and not _find_lacking(actor, position, row.model):
        record_step(actor, "switched", model=position.model, former=row.model)
        EmbeddingModel.objects.filter(tenant_id=actor.tenant_id).update(model=position.model, since=Now())


def _clear_vectors(actor: Actor) -> bool:
    """Delete up to CLEARED vectors of models that are neither active nor configured; return whether more may remain."""
    row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)
    return clear_vectors_but(actor, row, [row.model, embedder().name])


def clear_vectors_but(actor: Actor, row: EmbeddingModel, models: Collection[str]) -> bool:
    """Delete up to CLEARED vectors of other models; return whether more may remain. row: the tenant's, locked."""
    with connection.cursor() as cursor:
        cursor.execute(CLEAR, [actor.tenant_id, actor.tenant_id, list(models), CLEARED])
        cleared = [cube_id for (cube_id,) in cursor.fetchall()]
    if row.vector_index:
        announce_changes(actor.tenant_id, sorted(set(cleared)))
    return len(cleared) == CLEARED


def record_step(actor: Actor, what: str, *, model: str, former: str | None) -> None:
    record(
        actor=actor,
        verb=Verb.MEMORY_INDEXED,
        object_type="tenant",
        object_ids=[actor.tenant_id],
        detail={"step": what, "model": model, "former": former},
    )
