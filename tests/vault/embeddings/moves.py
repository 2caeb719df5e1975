"""Functions that move a tenant from one embedder to another, one step of the worker at a time."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db.models.functions import Now
from pytest_django import Settings

from governance.actor import Actor, system_actor
from governance.database import acting
from governance.jobs.kinds import JobRun, Step
from governance.models import Job, OutboxEvent
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import Task
from governance.outbox.runner import task_run
from governance.vocabulary import Topic
from memos_web.config import EmbedderChoice
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.embeddings.model_change import cubes_reembed
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import Embedding
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import Hit, memories_search

OLD, NEW = "hashing/256", "universal-sentence-encoder/multilingual-3"


def configure(settings: Settings, family: str, *, model: str = "", url: str = "") -> None:
    """Change the settings as a restart with another MEMOS_EMBEDDER does."""
    settings.MEMOS_EMBEDDER = EmbedderChoice(family=family, model=model, url=url, key="")


def run_step() -> int:
    """Handle the due events once and return their number."""

    def send(task: Task) -> None:
        task_run(task, slice_seconds=0)

    return dispatch_once(send)


def lose_step(actor: Actor) -> None:
    """Claim due events and lose them; then their lease ends."""
    dispatch_once(lambda task: None)
    with acting(actor):
        OutboxEvent.objects.filter(done_at=None).update(available_at=Now() - timedelta(seconds=1))


def add_memories(actor: Actor, *contents: str) -> list[UUID]:
    drafts = [CubeDraft(content=content, namespace="/team") for content in contents]
    return [added.cube.id for added in cubes_add(actor=actor, drafts=drafts)]


def active_model_of(actor: Actor) -> str:
    with acting(actor):
        return EmbeddingModel.objects.get().model


def embedded_cubes(actor: Actor, model: str) -> set[UUID]:
    """Return the ids of the cubes with a vector of `model`."""
    with acting(actor):
        return set(Embedding.objects.filter(model=model).values_list("cube_id", flat=True))


def find_best_hit(actor: Actor, question: str) -> Hit:
    """Return the best hit of a search."""
    return memories_search(actor=actor, search=SearchQuery(query=question, namespaces=("/team",)))[0]


def begin_step(actor: Actor, *, after: UUID | None = None) -> Callable[[], Step]:
    """Run the next step of the open move up to its write, which is returned. after: another position to start from."""
    with acting(actor):
        job = Job.objects.filter(kind=Topic.CUBES_REEMBED, status__in=["pending", "running"]).latest("id")
    system = system_actor(tenant_id=actor.tenant_id, request_id="a test")
    outcome = cubes_reembed(
        JobRun(
            job_id=job.id,
            actor=system,
            system=system,
            settings=job.settings,
            state=job.state if after is None else {**job.state, "after": str(after)},
            done=job.done,
            total=job.total,
            request=None,
            result={},
            report=lambda done, total: None,
        )
    )
    assert callable(outcome)
    return outcome
