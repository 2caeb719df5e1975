"""Progress and cancellation of a tenant's change of the embedding model (docs/decisions/0009).

A move is a job of vault/embeddings/model_change.py. After a cancellation, events delete the vectors of the new model
in steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, QuerySet

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.jobs.services import job_cancel
from governance.models import OutboxEvent
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic
from vault.embeddings.model_change import clear_vectors_but, lock_moves, moves, moves_before_switch, record_step
from vault.embeddings.vectors import active_model, question_embedder
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import WHOLE, Embedding


@dataclass(frozen=True)
class Move:
    """The progress of a move. done: memories with a vector of `model`; total: memories with a vector of `active`.

    error: last error of a step, or empty. given_up: no step is retried until a person resumes the job.
    """

    active: str
    model: str
    done: int
    total: int
    error: str
    given_up: bool


@dataclass(frozen=True)
class CancelledMove:
    """A cancelled move. active: the model that searches use. models: the cancelled new models; empty: none."""

    active: str | None
    models: tuple[str, ...]


def move_get(*, actor: Actor) -> Move | None:
    """Return the running or failed move, or None. Raises Forbidden. Queries: two, or four."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        active = active_model(actor)
        jobs = moves_before_switch(moves(actor), active)
        if active is None or not jobs:
            return None
        job = jobs[-1]
        model = str(job.settings["model"])
        event = OutboxEvent.objects.filter(id=job.id).first()
        total = _current_embeddings(actor, active).count()
        return Move(
            active=active,
            model=model,
            done=min(total, _current_embeddings(actor, model).count()),
            total=total,
            error=event.last_error if event else "",
            given_up=job.dead_letter,
        )


def reembedding_cancel(*, actor: Actor) -> CancelledMove:
    """Cancel the running move: searches continue to use the active model, and a job deletes the other vectors.

    After the switch there is nothing to cancel. For owners and admins. Raises Forbidden.
    Writes: Job …, OutboxEvent …, AuditEntry …; or nothing.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        jobs = lock_moves(actor)
        active = active_model(actor)
        models = set()
        for job in moves_before_switch(jobs, active):
            models.add(str(job.settings["model"]))
            job_cancel(actor=actor, job_id=job.id)
        for model in sorted(models):
            record_step(actor, "cancelled", model=model, former=active)
    return CancelledMove(active, tuple(sorted(models)))


def vectors_clear(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Delete some vectors of unused models, and leave the rest to the next step. Idempotent."""

    def write() -> None:
        row = EmbeddingModel.objects.select_for_update().get(tenant_id=actor.tenant_id)  # no switch meanwhile
        if moves_before_switch(moves(actor), row.model):
            return  # a new move was requested, whose last steps delete the vectors
        # If this process cannot build the active model, searches use the configured model's vectors.
        if clear_vectors_but(actor, row, {row.model, question_embedder(row.model).name}):
            emit(actor=actor, topic=Topic.REEMBED_CANCELLED, payload={})

    return write


def _current_embeddings(actor: Actor, model: str) -> QuerySet[Embedding]:
    rows = Embedding.objects.filter(tenant_id=actor.tenant_id, model=model, part=WHOLE)
    return rows.filter(version=F("cube__version"), cube__is_indexed=True, cube__tenant_id=actor.tenant_id)
