"""pipelines/ of the REST API: several operations as one, run at once or stored."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, ONCE, describe
from governance.api.fields import StrictSerializer, TextField
from governance.api.views import ApiView, flag, heavy, refuse_unknown_parameters
from governance.database import acting
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.fields import refuse_deep
from vault.api.inputs import NoInput, read
from vault.api.schema import Schema
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


class PipelineListSchema(Schema):
    count = serializers.IntegerField()
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)
    results = PipelineSchema(many=True)


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
    @describe("pipelines_list", PipelineListSchema)
    def get(self, request: Request) -> Response:
        """List the member's own pipelines, oldest first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request)
        found = [_pipeline_json(pipeline) for pipeline in pipelines_list(actor=actor)]
        return Response({"count": len(found), "next": None, "previous": None, "results": found})

    @describe("pipelines_create", PipelineSchema, status=201, request=PipelineInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Store a pipeline, to run it by hand or by a schedule."""
        actor = self.actor()
        pipeline_create_ask(actor=actor)
        refuse_unknown_parameters(request)
        draft = PipelineDraft(**read(PipelineInput, request))

        def call() -> Reply:
            return Reply(201, _pipeline_json(pipeline_create(actor=actor, draft=draft)))

        return self.post_once(call, ask=lambda: pipeline_create_ask(actor=actor))


class PipelineView(ApiView):
    @describe("pipelines_read", PipelineSchema, may=[404])
    def get(self, request: Request, pipeline_id: UUID) -> Response:
        """Return a stored pipeline."""
        found = pipeline_get(actor=self.actor(), pipeline_id=pipeline_id)
        refuse_unknown_parameters(request)
        return Response(_pipeline_json(found))

    @describe("pipelines_update", PipelineSchema, request=PipelineChangesInput, may=[404])
    def patch(self, request: Request, pipeline_id: UUID) -> Response:
        """Change the name or the steps of a pipeline."""
        actor = self.actor()
        with self.after(lambda: pipeline_get(actor=actor, pipeline_id=pipeline_id)):
            refuse_unknown_parameters(request)
            changes = read(PipelineChangesInput, request)
        return Response(_pipeline_json(pipeline_update(actor=actor, pipeline_id=pipeline_id, changes=changes)))

    @describe("pipelines_delete", None, status=204, may=[404])
    def delete(self, request: Request, pipeline_id: UUID) -> Response:
        """Delete a pipeline. Its schedules end at their next time."""
        refuse_unknown_parameters(request)
        pipeline_remove(actor=self.actor(), pipeline_id=pipeline_id)
        return Response(status=204)


class StepsRunView(ApiView):
    @of_memories("pipelines_run_steps", RunSchema, request=StepsInput, parameters=[ONCE, DRY_RUN], may=[404, 409, 423])
    @heavy
    def post(self, request: Request) -> Response:
        """Run several operations as one: all or none. A dry run shows the memories that each step would touch.

        Reading steps (list, search, screen, summarise) come first.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request, "dry_run")
        dry_run = flag(request, "dry_run")
        steps = steps_read(read(StepsInput, request)["steps"])
        return _run(self, actor, steps, dry_run=dry_run)


class PipelineRunView(ApiView):
    @of_memories("pipelines_run", RunSchema, request=NoInput, parameters=[ONCE, DRY_RUN], may=[404, 409, 423])
    @heavy
    def post(self, request: Request, pipeline_id: UUID) -> Response:
        """Run a stored pipeline now, as the caller."""
        actor = self.actor()
        found = pipeline_get(actor=actor, pipeline_id=pipeline_id)
        refuse_unknown_parameters(request, "dry_run")
        dry_run = flag(request, "dry_run")
        read(NoInput, request)
        return _run(self, actor, found.steps, dry_run=dry_run, pipeline_id=found.id)


def _run(
    view: ApiView, actor: Actor, steps: Sequence[Step], *, dry_run: bool, pipeline_id: UUID | None = None
) -> Response:
    if dry_run:
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


def _pipeline_json(pipeline: StoredPipeline) -> dict[str, Any]:
    return {"id": str(pipeline.id), "name": pipeline.name, "steps": steps_json(pipeline.steps)}


def _run_json(results: Sequence[StepResult], *, dry_run: bool = False) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "steps": [
            {
                "op": result.op,
                "ids": [] if dry_run and result.is_new else [str(cube_id) for cube_id in result.ids],
                "count": len(result.ids),
                "originals": [str(cube_id) for cube_id in result.originals],
                "text": result.text,
                "has_more": result.has_more,
                "left_out": [str(cube_id) for cube_id in result.left_out],
                "job_id": str(result.job_id) if result.job_id else None,
            }
            for result in results
        ],
    }
