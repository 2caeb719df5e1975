"""Moving a tenant's memories to another embedding model, while the old vectors go on answering.

A job: each step fills in up to BATCH missing vectors; when none is missing, one switches the tenant over; the last
ones clear the old vectors away. A worker killed anywhere loses one step's work; the job goes on (docs/decisions/0009).
"""

from collections.abc import Callable, Iterable, Mapping
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
from vault.embeddings.vectors import active_model, embedded, embeddings_write, texts_of
from vault.models.cube import Cube
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import Embedding
from vault.providers.ports import Embedder, ProviderUnavailable
from vault.providers.registry import embedder, embedder_by_name

BATCH = 200  # cubes embedded in one step
CLEARED = 5_000  # old vectors deleted in one step
START = UUID(int=0)

# Lacking: what was there when re-embedding was asked for, and whatever the active model would answer with. Writes of
# the last moment get their vectors from the indexing job, so that a busy tenant comes to its switch as well.
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
  SELECT ctid FROM vault_embedding WHERE tenant_id = %s AND model <> ALL(%s) LIMIT %s))
"""


@dataclass(frozen=True)
class Reembedding:
    """The result of asking for a change of the model. `started` is False if nothing is to do, or if it is already
    running.
    """

    active: str | None
    model: str
    needs_vectors: bool
    started: bool


@dataclass(frozen=True)
class _Position:
    """Embed with `model` what lacks it behind the cube `after`, and of what is newer than `until` only the needed."""

    model: str
    after: UUID
    until: UUID

    @property
    def state(self) -> Mapping[str, str]:
        return {"after": str(self.after), "until": str(self.until)}


def reembedding_start(*, actor: Actor) -> Reembedding:
    """Ask for the actor's tenant to be moved to the configured embedder. Asking again changes nothing.

    Owners and admins may: it costs a call of the model for every memory. The model is asked for one vector first, so
    that a move which it could never end does not begin. Raises Forbidden; ProviderUnavailable.
    Another move that is under way ends. Writes: Job …, AuditEntry … and OutboxEvent, or nothing.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    model = embedder()
    wanted = model.name
    with acting(actor):
        active = active_model(actor)
    if active not in {None, wanted}:
        model.embed(["reembed"])
    with acting(actor):
        jobs = moves_locked(actor)
        active = active_model(actor)
        needs_vectors = active not in {None, wanted}
        started = needs_vectors and not any(job.settings["model"] == wanted and not job.dead_letter for job in jobs)
        if started:
            for job in before_the_switch(jobs, active):
                job_cancel(actor=actor, job_id=job.id)
            record_step(actor, "requested", model=wanted, former=active)
            _job_create(actor, wanted, active)
    return Reembedding(active=active, model=wanted, needs_vectors=needs_vectors, started=started)


def tenants_to_reembed() -> list[UUID]:
    """The tenants whose active model is not the configured one; ids only, through a function of the router."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT vault_tenants_to_reembed(%s)", [embedder().name])
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def moves(actor: Actor) -> QuerySet[Job]:
    """The tenant's moves that are under way, and those that are dead letters; within a transaction."""
    rows = Job.objects.filter(tenant_id=actor.tenant_id, kind=Topic.CUBES_REEMBED)
    return rows.filter(Q(dead_letter=True) | ~Q(status__in=ENDED)).order_by("id")


def moves_locked(actor: Actor) -> list[Job]:
    """The same once nobody else starts, cancels or does a step of one; the active model is read after it."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [str(actor.tenant_id)])
    return list(moves(actor).select_for_update())


def before_the_switch(jobs: Iterable[Job], active: str | None) -> list[Job]:
    """Without those to the active model: they clear the former one's vectors away."""
    return [job for job in jobs if job.settings["model"] != active]


def clearing_start(actor: Actor, job: Job) -> None:
    """A move was cancelled: the vectors that do not answer are cleared away. Writes: OutboxEvent."""
    emit(actor=actor, topic=Topic.REEMBED_CANCELLED, payload={})


@handler(Topic.CUBES_REEMBED, permission=Permission.MEMBER_MANAGE, cancelled=clearing_start)
def cubes_reembed(run: JobRun) -> Callable[[], Step]:
    """One step. The model is asked outside any transaction. done: vectors made. Raises ProviderUnavailable."""
    actor = run.system
    position = _Position(run.settings["model"], UUID(run.state["after"]), UUID(run.state["until"]))
    model = _model(position.model)
    with acting(actor):
        active = active_model(actor)
        lacking = _lacking(actor, position, active) if active not in {None, position.model} else []
        texts = texts_of(lacking)
    vectors = embedded(actor, model, texts)

    def write() -> Step:
        if lacking:
            ids = embeddings_write(vectors)
            record(actor=actor, verb=Verb.MEMORY_INDEXED, object_type="memory", object_ids=ids)
            return Step(state=replace(position, after=lacking[-1]).state, done=run.done + len(lacking))
        if active == position.model:
            return Step(state=position.state if _clear(actor) else None)
        if position.after != START:
            return Step(state=replace(position, after=START).state)  # what lies behind may have changed since
        if active is not None:
            _switch(actor, position)
            return Step(state=position.state)
        return Step()

    return write


def _job_create(actor: Actor, wanted: str, active: str | None) -> None:
    cubes = Cube.objects.filter(tenant_id=actor.tenant_id)
    newest = cubes.order_by("-id").values_list("id", flat=True).first()
    total = Embedding.objects.filter(tenant_id=actor.tenant_id, model=active).count()
    position = _Position(wanted, START, newest or START)
    settings = {"model": wanted}
    job_create(actor=actor, kind=Topic.CUBES_REEMBED, settings=settings, state=position.state, total=total)


def _model(name: str) -> Embedder:
    model = embedder_by_name(name)
    if model is None:
        raise ProviderUnavailable(f"This process cannot build the embedder {name}")
    return model


def _lacking(actor: Actor, position: _Position, active: str | None) -> list[UUID]:
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


def _switch(actor: Actor, position: _Position) -> None:
    """From here on the new vectors answer, unless one is lacking after all; indexing jobs wait meanwhile."""
    row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)
    if row.model != position.model and not _lacking(actor, position, row.model):
        record_step(actor, "switched", model=position.model, former=row.model)
        EmbeddingModel.objects.filter(tenant_id=actor.tenant_id).update(model=position.model, since=Now())


def _clear(actor: Actor) -> bool:
    """Delete some vectors of models that are neither active nor configured; whether there may be more."""
    row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)
    with connection.cursor() as cursor:
        cursor.execute(CLEAR, [actor.tenant_id, actor.tenant_id, [row.model, embedder().name], CLEARED])
        return bool(cursor.rowcount == CLEARED)


def record_step(actor: Actor, what: str, *, model: str, former: str | None) -> None:
    record(
        actor=actor,
        verb=Verb.MEMORY_INDEXED,
        object_type="tenant",
        object_ids=[actor.tenant_id],
        detail={"step": what, "model": model, "former": former},
    )
