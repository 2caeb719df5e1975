"""The job that runs a stored pipeline: at the times of a schedule, and after an event."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from governance.actor import Actor
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.vocabulary import Permission, Topic
from vault.pipelines.runs import run_apply, run_prepare
from vault.pipelines.services import pipeline_get, pipelines_list


def _check_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise PydanticCustomError("pipeline", "an id is needed") from None


@dataclass(frozen=True)
class PipelineSettings:
    """Settings of a scheduled run. pipeline: the id of a pipeline of the schedule's owner.

    on: an event that also starts the run: an import has ended, a pack was built, or a namespace was moved or restored.
    """

    pipeline: Annotated[str, AfterValidator(_check_id)]
    on: Literal["", "import", "pack", "namespace"] = ""


def pipeline_choices(actor: Actor) -> Mapping[str, Mapping[str, str]]:
    """Return the actor's own pipelines, by id, which its schedules may run. Raises Forbidden; KeyUnavailable."""
    return {"pipeline": {str(pipeline.id): pipeline.name for pipeline in pipelines_list(actor=actor)}}


@handler(Topic.PIPELINE_RUN, permission=Permission.MEMORY_READ, settings=PipelineSettings, choices=pipeline_choices)
def pipeline_run_job(run: JobRun) -> Callable[[], Step]:
    """Run a pipeline of the requester, in one step: all or none. done: memories named by its results.

    Raises NotFound if the requester has no such pipeline any more. Writes what the steps write.
    """
    pipeline = pipeline_get(actor=run.actor, pipeline_id=UUID(run.settings["pipeline"]))
    prepared = run_prepare(actor=run.actor, steps=pipeline.steps)

    def write() -> Step:
        results = run_apply(prepared, pipeline.id)
        ids = list(dict.fromkeys(str(cube_id) for result in results for cube_id in result.ids))
        return Step(done=len(ids), total=len(ids), result={"memory_ids": ids})

    return write
