"""How a tenant's move to another embedding model stands, and how it is cancelled (docs/decisions/0009).

A move is the chain of steps of vault/cubes/reembedding.py, until the tenant is switched over. Cancelled, it has no next
step, and further events, each one step as well, clear away the vectors that do not answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from governance.actor import Actor
from governance.authz.services import authorize
from governance.database import acting
from governance.models import OutboxEvent
from governance.outbox.services import Payload, Write, emit
from governance.vocabulary import Permission, Topic
from vault.cubes.embedding import active_model, answering
from vault.cubes.reembedding import CLEAR, CLEARED, open_steps, record_step
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import Embedding


@dataclass(frozen=True)
class Move:
    """done, of total: memories with a vector of `model`, of those that one of `active` answers for.

    error: what its step last failed of, empty when it did not; given_up: it is not tried again by itself.
    """

    active: str
    model: str
    done: int
    total: int
    error: str
    given_up: bool


@dataclass(frozen=True)
class Cancelled:
    """active: the model that answers, and goes on to; models: those that the tenant was on its way to, or none."""

    active: str | None
    models: tuple[str, ...]


def move_get(*, actor: Actor) -> Move | None:
    """The move that is under way, or stuck; None when there is none. Raises Forbidden. Queries: two, or four."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        active = active_model(actor)
        step = _steps_before_the_switch(actor, active).order_by("-id").first()
        if active is None or step is None:
            return None
        model = str(step.payload["model"])
        total = _answering(actor, active).count()
        return Move(
            active=active,
            model=model,
            done=min(total, _answering(actor, model).count()),
            total=total,
            error=step.last_error,
            given_up=step.parked_at is not None,
        )


def reembedding_cancel(*, actor: Actor) -> Cancelled:
    """End the move that is under way: the active model goes on to answer, and the other's vectors are cleared away.

    After the switch there is nothing to cancel. Owners and admins may. Raises Forbidden.
    Writes: OutboxEvent …, AuditEntry; or nothing.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        active, models = _ended(actor)
        for model in models:
            record_step(actor, "cancelled", model=model, former=active)
        if models:
            emit(actor=actor, topic=Topic.REEMBED_CANCELLED, payload={})
    return Cancelled(active, tuple(models))


def vectors_clear(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Delete some vectors of models that do not answer; the next step deletes more. Safe to run twice."""

    def write() -> None:
        row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)  # no switch meanwhile
        if _steps_before_the_switch(actor, row.model).exists():
            return  # somebody asked for a move again: what it leaves is cleared by its own last steps
        with connection.cursor() as cursor:
            # Where this process cannot build the active one, questions are compared with the configured one's vectors.
            kept = sorted({row.model, answering(row.model).name})
            cursor.execute(CLEAR, [actor.tenant_id, actor.tenant_id, kept, CLEARED])
            if cursor.rowcount == CLEARED:
                emit(actor=actor, topic=Topic.REEMBED_CANCELLED, payload={})

    return write


def _ended(actor: Actor) -> tuple[str | None, list[str]]:
    """End every open step before a switch; the active model, and those that the steps were to.

    To end one waits for a worker that is just committing it. Then it was not open any more, and it is looked again: the
    worker may have left the next one, or have switched the tenant over.
    """
    ended: set[str] = set()
    while True:
        active = active_model(actor)
        steps = list(_steps_before_the_switch(actor, active))
        if not steps:
            return active, sorted(ended)
        for step in steps:
            if OutboxEvent.objects.filter(id=step.id, done_at=None).update(done_at=Now()):
                ended.add(str(step.payload["model"]))


def _steps_before_the_switch(actor: Actor, active: str | None) -> QuerySet[OutboxEvent]:
    """Without those to the active model: they clear the former one's vectors away."""
    return open_steps(actor).exclude(payload__model=active)


def _answering(actor: Actor, model: str) -> QuerySet[Embedding]:
    rows = Embedding.objects.filter(tenant_id=actor.tenant_id, model=model, version=F("cube__version"))
    return rows.filter(cube__deleted_at=None, cube__tenant_id=actor.tenant_id)
