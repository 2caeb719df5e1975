"""One tenant on its way from one embedder to another, a step of the worker at a time."""

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

OLD, NEW = "hashing/256", "wordllama/l2-supercat-256"


def configure(settings: Settings, family: str, *, model: str = "", url: str = "") -> None:
    """Change the settings as a restart with another MEMOS_EMBEDDER does."""
    settings.MEMOS_EMBEDDER = EmbedderChoice(family=family, model=model, url=url, key="")


def step() -> int:
    """Hand out what is due once, and do it; returns how many events there were."""

    def send(task: Task) -> None:
        task_run(task, slice_seconds=0)

    return dispatch_once(send)


def step_by_a_worker_that_is_killed(actor: Actor) -> None:
    """Claim due events and lose them; then their lease ends."""
    dispatch_once(lambda task: None)
    with acting(actor):
        OutboxEvent.objects.filter(done_at=None).update(available_at=Now() - timedelta(seconds=1))


def remember(actor: Actor, *contents: str) -> list[UUID]:
    drafts = [CubeDraft(content=content, namespace="/team") for content in contents]
    return [one.cube.id for one in cubes_add(actor=actor, drafts=drafts)]


def active(actor: Actor) -> str:
    with acting(actor):
        return EmbeddingModel.objects.get().model


def vectors(actor: Actor, model: str) -> set[UUID]:
    """The cubes that have a vector of `model`."""
    with acting(actor):
        return set(Embedding.objects.filter(model=model).values_list("cube_id", flat=True))


def asked(actor: Actor, question: str) -> Hit:
    """The best hit of a search by vector."""
    return memories_search(actor=actor, search=SearchQuery(query=question, namespaces=("/team",)))[0]


def begun(actor: Actor, *, after: UUID | None = None) -> Callable[[], Step]:
    """The open move's next step, as a worker has done it and not yet committed; `after`: another place to begin."""
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
