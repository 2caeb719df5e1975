"""Moving a tenant's memories to another embedding model, while the old vectors go on answering.

A chain of outbox events, each one step: fill in up to BATCH missing vectors; when none is missing, switch the tenant
over; then clear the old vectors away. Each step commits together with the event of the next, so that a worker killed
anywhere loses one step's work, and the chain goes on. See docs/decisions/0009.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from governance.actor import Actor
from governance.audit.services import record
from governance.authz.services import authorize
from governance.database import acting, no_tenant
from governance.models import OutboxEvent
from governance.outbox.services import Payload, Write, emit
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.embedding import active_model, embedded, embeddings_write, texts_of
from vault.models.cube import Cube
from vault.models.embedding_model import EmbeddingModel
from vault.providers.ports import Embedder, ProviderUnavailable
from vault.providers.registry import embedder, embedder_named

BATCH = 200  # cubes embedded in one step
CLEARED = 5_000  # old vectors deleted in one step
START = UUID(int=0)

# Lacking: what was there when re-embedding was asked for, and whatever the active model would answer with. Writes of
# the last moment get their vectors from the indexing job, so that a busy tenant comes to its switch as well.
LACKING = """
SELECT cube.id FROM vault_cube AS cube
  JOIN vault_cubeversion AS version ON version.tenant_id = cube.tenant_id AND version.cube_id = cube.id
    AND version.number = cube.version AND version.sealed <> ''
WHERE cube.tenant_id = %(tenant)s AND cube.id > %(after)s AND cube.deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM vault_embedding AS made WHERE made.tenant_id = cube.tenant_id
    AND made.cube_id = cube.id AND made.model = %(model)s AND made.version = cube.version)
  AND (cube.id <= %(until)s OR EXISTS (SELECT 1 FROM vault_embedding AS old WHERE old.tenant_id = cube.tenant_id
    AND old.cube_id = cube.id AND old.model = %(active)s AND old.version = cube.version))
ORDER BY cube.id LIMIT %(limit)s
"""
CLEAR = """
DELETE FROM vault_embedding WHERE tenant_id = %s AND ctid = ANY(ARRAY(
  SELECT ctid FROM vault_embedding WHERE tenant_id = %s AND model <> ALL(%s) LIMIT %s))
"""


@dataclass(frozen=True)
class Reembedding:
    """What was found and asked for. `started` is False where nothing is to do, or where it is under way already."""

    active: str | None
    model: str
    lacking: bool
    started: bool


@dataclass(frozen=True)
class _Step:
    """Embed with `model` what lacks it behind the cube `after`, and of what is newer than `until` only the needed."""

    model: str
    after: UUID
    until: UUID

    def payload(self) -> Mapping[str, object]:
        return {"model": self.model, "after": str(self.after), "until": str(self.until)}


def reembedding_start(*, actor: Actor) -> Reembedding:
    """Ask for the actor's tenant to be moved to the configured embedder. Asking again changes nothing.

    Owners and admins may: it costs a call of the model for every memory. The model is asked for one vector first, so
    that a move which it could never end does not begin. Raises Forbidden; ProviderUnavailable.
    Writes: AuditEntry and OutboxEvent, or nothing.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    model = embedder()
    wanted = model.name
    with acting(actor):
        active = active_model(actor)
    if active not in {None, wanted}:
        model.embed(["reembed"])
    with acting(actor):
        active = active_model(actor)
        newest = Cube.objects.filter(tenant_id=actor.tenant_id).order_by("-id").values_list("id", flat=True).first()
        step = _Step(wanted, START, newest or START)
        lacking = active not in {None, wanted}
        started = lacking and not _under_way(actor, wanted)
        if started:
            record_step(actor, "requested", model=wanted, former=active)
            emit(actor=actor, topic=Topic.CUBES_REEMBED, payload=step.payload())
    return Reembedding(active=active, model=wanted, lacking=lacking, started=started)


def tenants_to_reembed() -> list[UUID]:
    """The tenants whose active model is not the configured one; ids only, through a function of the router."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT vault_tenants_to_reembed(%s)", [embedder().name])
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def cubes_reembed(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """One step. The model is asked outside any transaction. Raises ProviderUnavailable; safe to run twice."""
    step = _merged(payloads)
    model = _model(step.model)
    with acting(actor):
        active = active_model(actor)
        lacking = _lacking(actor, step, active) if active not in {None, step.model} else []
        texts = texts_of(lacking)
    vectors = embedded(actor, model, texts)

    def write() -> None:
        if lacking:
            ids = embeddings_write(vectors)
            record(actor=actor, verb=Verb.MEMORY_INDEXED, object_type="memory", object_ids=ids)
            _next(actor, replace(step, after=lacking[-1]))
        elif active == step.model:
            _clear(actor, step)
        elif step.after != START:
            _next(actor, replace(step, after=START))  # what lies behind may have changed since
        elif active is not None:
            _switch(actor, step)

    return write


def _merged(payloads: Sequence[Payload]) -> _Step:
    """The events of two chains as one step; a chain to a model that nobody configures any more ends here."""
    models = [str(payload["model"]) for payload in payloads]
    wanted = embedder().name if embedder().name in models else models[0]
    steps = [
        _Step(wanted, UUID(str(payload["after"])), UUID(str(payload["until"])))
        for payload, model in zip(payloads, models, strict=True)
        if model == wanted
    ]
    return _Step(wanted, min(step.after for step in steps), max(step.until for step in steps))


def _model(name: str) -> Embedder:
    model = embedder_named(name)
    if model is None:
        raise ProviderUnavailable(f"This process cannot build the embedder {name}")
    return model


def open_steps(actor: Actor) -> QuerySet[OutboxEvent]:
    """The steps that are not done, those that were given up after many failures included."""
    return OutboxEvent.objects.filter(tenant_id=actor.tenant_id, topic=Topic.CUBES_REEMBED, done_at=None)


def _under_way(actor: Actor, model: str) -> bool:
    return open_steps(actor).filter(payload__model=model, parked_at=None).exists()


def _lacking(actor: Actor, step: _Step, active: str | None) -> list[UUID]:
    parameters: dict[str, str | int | UUID | None] = {
        "tenant": actor.tenant_id,
        "after": step.after,
        "until": step.until,
        "model": step.model,
        "active": active,
        "limit": BATCH,
    }
    with connection.cursor() as cursor:
        cursor.execute(LACKING, parameters)
        return [cube_id for (cube_id,) in cursor.fetchall()]


def _next(actor: Actor, step: _Step) -> None:
    emit(actor=actor, topic=Topic.CUBES_REEMBED, payload=step.payload())


def _switch(actor: Actor, step: _Step) -> None:
    """From here on the new vectors answer, unless one is lacking after all; indexing jobs wait meanwhile."""
    row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)
    if row.model != step.model and not _lacking(actor, step, row.model):
        record_step(actor, "switched", model=step.model, former=row.model)
        EmbeddingModel.objects.filter(tenant_id=actor.tenant_id).update(model=step.model, since=Now())
    _next(actor, step)


def _clear(actor: Actor, step: _Step) -> None:
    """Delete some vectors of models that are neither active nor configured; the next step deletes more."""
    row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)
    with connection.cursor() as cursor:
        cursor.execute(CLEAR, [actor.tenant_id, actor.tenant_id, [row.model, embedder().name], CLEARED])
        if cursor.rowcount == CLEARED:
            _next(actor, step)


def record_step(actor: Actor, what: str, *, model: str, former: str | None) -> None:
    record(
        actor=actor,
        verb=Verb.MEMORY_INDEXED,
        object_type="tenant",
        object_ids=[actor.tenant_id],
        detail={"step": what, "model": model, "former": former},
    )
