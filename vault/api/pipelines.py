"""pipelines/ of the REST API: several operations as one, run at once or stored."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, ONCE, describe, page_of
from governance.api.fields import NoInput, StrictSerializer, TextField
from governance.api.pages import whole_list
from governance.api.schema import Schema
from governance.api.views import ApiView, heavy, refuse_unknown_parameters
from governance.database import acting
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.fields import refuse_deep
from vault.pipelines.rules import MOST_STEPS, OPS, Step, steps_json, steps_read
from vault.pipelines.runs import StepResult, pipeline_run, run_apply, run_prepare
from vault.pipelines.services import (
    LONGEST_NAME,
    PipelineDraft,
    StoredPipeline,
    pipeline_create,
    pipeline_create_ask,
    pipeline_get,
    pipeline_remove,
    pipeline_update,
    pipelines_list,
)

OPERATION = f"`op` and its arguments. Operations: {', '.join(OPS)}. `$2.ids` and `$2.text` name results of step 2."


class StepsField(serializers.ListField):
    """The steps of a pipeline; `steps_read` checks each."""

    child = serializers.JSONField(help_text=OPERATION)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        refuse_deep(data)
        return super().run_validation(data)


class StepsInput(StrictSerializer):
    steps = StepsField(max_length=MOST_STEPS)


class PipelineInput(StrictSerializer):
    name = TextField(max_length=LONGEST_NAME)
    steps = StepsField(max_length=MOST_STEPS)


class PipelineChangesInput(StrictSerializer):
    name = TextField(max_length=LONGEST_NAME, required=False)
    steps = StepsField(max_length=MOST_STEPS, required=False)


class PipelineSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    steps = serializers.ListField(child=serializers.JSONField())

    def make_steps(self, pipeline: StoredPipeline) -> Any:
        return steps_json(pipeline.steps)


class StepResultSchema(Schema):
    op = serializers.CharField()
    ids = serializers.ListField(
        child=serializers.UUIDField(), help_text="Found, changed or new memories; a dry run makes no new ones."
    )
    count = serializers.IntegerField(help_text="Of the memories in `ids`, with those that a dry run would make.")
    originals = serializers.ListField(
        child=serializers.UUIDField(), help_text="Of `copy` and `fuse`: the memories that they take."
    )
    text = serializers.CharField(help_text="Of `summarise`.")
    has_more = serializers.BooleanField(help_text="More memories match than the step takes.")
    left_out = serializers.ListField(child=serializers.UUIDField(), help_text="Of `summarise`: held, or of a pack.")
    job_id = serializers.UUIDField(allow_null=True, help_text="Of `build`.")


class RunSchema(Schema):
    dry_run = serializers.BooleanField()
    steps = StepResultSchema(many=True)


class PipelinesView(ApiView):
    @describe("pipelines_list", page_of(PipelineSchema))
    def get(self, request: Request) -> object:
        """List the member's own pipelines, oldest first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request)
        return whole_list(pipelines_list(actor=actor))

    @describe("pipelines_create", PipelineSchema, status=201, request=PipelineInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Store a pipeline, to run it by hand or by a schedule."""
        actor = self.actor()
        pipeline_create_ask(actor=actor)
        draft = PipelineDraft(**self.read_body())
        return self.post_once(
            lambda: pipeline_create(actor=actor, draft=draft), ask=lambda: pipeline_create_ask(actor=actor)
        )


class PipelineView(ApiView):
    @describe("pipelines_read", PipelineSchema, may=[404])
    def get(self, request: Request, pipeline_id: UUID) -> object:
        """Return a stored pipeline."""
        return pipeline_get(actor=self.actor(), pipeline_id=pipeline_id)

    @describe("pipelines_update", PipelineSchema, request=PipelineChangesInput, may=[404])
    def patch(self, request: Request, pipeline_id: UUID) -> object:
        """Change the name or the steps of a pipeline."""
        actor = self.actor()
        changes = self.read_body(lambda: pipeline_get(actor=actor, pipeline_id=pipeline_id))
        return pipeline_update(actor=actor, pipeline_id=pipeline_id, changes=changes)

    @describe("pipelines_delete", None, status=204, may=[404])
    def delete(self, request: Request, pipeline_id: UUID) -> None:
        """Delete a pipeline. Its schedules end at their next time."""
        self.read_body()
        pipeline_remove(actor=self.actor(), pipeline_id=pipeline_id)


class StepsRunView(ApiView):
    @of_memories("pipelines_run_steps", RunSchema, request=StepsInput, parameters=[ONCE, DRY_RUN], may=[404, 409, 423])
    @heavy
    def post(self, request: Request) -> object:
        """Run several operations as one: all or none. A dry run shows the memories that each step would touch.

        Reading steps (list, search, screen, summarise) come first.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        return _run(self, actor, steps_read(self.read_body()["steps"]))


class PipelineRunView(ApiView):
    @of_memories("pipelines_run", RunSchema, request=NoInput, parameters=[ONCE, DRY_RUN], may=[404, 409, 423])
    @heavy
    def post(self, request: Request, pipeline_id: UUID) -> object:
        """Run a stored pipeline now, as the caller."""
        actor = self.actor()
        found = pipeline_get(actor=actor, pipeline_id=pipeline_id)
        self.read_body()
        return _run(self, actor, found.steps, pipeline_id=found.id)


def _run(view: ApiView, actor: Actor, steps: Sequence[Step], *, pipeline_id: UUID | None = None) -> Response:
    if view.dry_run:
        results = pipeline_run(actor=actor, steps=steps, pipeline_id=pipeline_id, is_dry=True)
        return Response(_run_json(results, dry_run=True))
    with view.once() as once:
        if once.reply is None:
            prepared = run_prepare(actor=actor, steps=steps)
            with acting(actor):
                results = run_apply(prepared, pipeline_id)
                shows = dict.fromkeys(cube_id for result in results if result.text for cube_id in result.ids)
                once.store(Reply(200, _run_json(results), shows=tuple(shows)))
    return once.response()


def _run_json(results: Sequence[StepResult], *, dry_run: bool = False) -> dict[str, Any]:
    steps = [
        vars(result) | {"ids": [] if dry_run and result.is_new else result.ids, "count": len(result.ids)}
        for result in results
    ]
    return RunSchema.of(dry_run=dry_run, steps=steps)
