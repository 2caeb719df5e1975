"""Progress and cancellation of a tenant's change of the embedding model (docs/decisions/0009).

A move is a job of vault/embeddings/model_change.py, until the tenant is switched over. Once it is cancelled,
light events clear away the vectors that do not answer, some at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import F, QuerySet

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.jobs.services import job_cancel
from governance.models import OutboxEvent
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic
from vault.embeddings.model_change import CLEAR, CLEARED, before_the_switch, moves, moves_locked, record_step
from vault.embeddings.vectors import active_model, answering
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
    """A cancelled change. active: the model that searches use. models: the new models that were cancelled, or none."""

    active: str | None
    models: tuple[str, ...]


def move_get(*, actor: Actor) -> Move | None:
    """The move that is under way, or stuck; None when there is none. Raises Forbidden. Queries: two, or four."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        active = active_model(actor)
        jobs = before_the_switch(moves(actor), active)
        if active is None or not jobs:
            return None
        job = jobs[-1]
        model = str(job.settings["model"])
        event = OutboxEvent.objects.filter(id=job.id).first()
        total = _answering(actor, active).count()
        return Move(
            active=active,
            model=model,
            done=min(total, _answering(actor, model).count()),
            total=total,
            error=event.last_error if event else "",
            given_up=job.dead_letter,
        )


def reembedding_cancel(*, actor: Actor) -> Cancelled:
    """Cancel the running change: searches continue to use the active model, and the vectors of the other are deleted.

    After the switch there is nothing to cancel. Owners and admins may. Raises Forbidden.
    Writes: Job …, OutboxEvent …, AuditEntry …; or nothing.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        jobs = moves_locked(actor)
        active = active_model(actor)
        models = set()
        for job in before_the_switch(jobs, active):
            models.add(str(job.settings["model"]))
            job_cancel(actor=actor, job_id=job.id)
        for model in sorted(models):
            record_step(actor, "cancelled", model=model, former=active)
    return Cancelled(active, tuple(sorted(models)))


def vectors_clear(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Delete some vectors of models that do not answer; the next step deletes more. Safe to run twice."""

    def write() -> None:
        row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)  # no switch meanwhile
        if before_the_switch(moves(actor), row.model):
            return  # somebody asked for a move again: what it leaves is cleared by its own last steps
        with connection.cursor() as cursor:
            # Where this process cannot build the active one, questions are compared with the configured one's vectors.
            used = sorted({row.model, answering(row.model).name})
            cursor.execute(CLEAR, [actor.tenant_id, actor.tenant_id, used, CLEARED])
            if cursor.rowcount == CLEARED:
                emit(actor=actor, topic=Topic.REEMBED_CANCELLED, payload={})

    return write


def _answering(actor: Actor, model: str) -> QuerySet[Embedding]:
    rows = Embedding.objects.filter(tenant_id=actor.tenant_id, model=model, version=F("cube__version"))
    return rows.filter(cube__is_indexed=True, cube__tenant_id=actor.tenant_id)
