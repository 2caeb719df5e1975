"""memories/actions/ of the REST API, and the file of an export."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.audit import FileView
from governance.api.descriptions import DRY_RUN, ONCE
from governance.api.fields import OneOfField, StrictSerializer, TextField, WholeField
from governance.api.jobs import JobPromiseSchema
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.fields import MomentField, refuse_deep
from vault.api.inputs import Tags
from vault.api.lines import lines_response
from vault.listing.actions import EXPORT, MOST_IDS, ActionCount, ActionDraft, action_count, action_create, export_lines
from vault.listing.bulk import BulkAction, BulkArguments
from vault.vocabulary import Layer

ACTIONS = [*BulkAction, EXPORT]


class ArgumentsInput(StrictSerializer):
    """Arguments of an action: tags to add, the path of a namespace, an expiry (null: never; of `restore`, the new one
    of expired memories), a reason, a layer."""

    tags = Tags(required=False)
    namespace = TextField(max_length=200, required=False)
    expires_at = MomentField(required=False, allow_null=True)
    reason = TextField(max_length=500, required=False)
    layer = OneOfField(Layer, required=False, help_text="Of `promote`.")


class ActionInput(StrictSerializer):
    action = serializers.ChoiceField(choices=ACTIONS)
    ids = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=MOST_IDS, allow_empty=False)
    filters = serializers.JSONField(required=False, help_text="As in a search; of `restore`, over inactive memories.")
    args = ArgumentsInput(required=False)
    expected_count = WholeField(
        required=False, min_value=0, help_text="Of the dry run: 409 where it is another one by now."
    )

    def validate_filters(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise serializers.ValidationError("an object is needed")
        refuse_deep(value)
        return value


class SkippedSchema(Schema):
    id = serializers.UUIDField()
    code = serializers.CharField(help_text="As of an error: `held`, `forbidden`, `not_found`.")


class ActionCountSchema(Schema):
    count = serializers.IntegerField(help_text="Memories that would be changed, or exported.")
    ids = serializers.ListField(child=serializers.UUIDField(), help_text="The first 100 of them.")
    skipped = SkippedSchema(many=True, help_text="The first 100 that would be left out.")
    capped = serializers.BooleanField(
        source="is_capped", help_text="Only the first 1,000 were looked at for `skipped`."
    )

    def make_skipped(self, found: ActionCount) -> Any:
        return [{"id": cube_id, "code": code} for cube_id, code in found.skipped]


class ActionsView(ApiView):
    @of_memories(
        "memories_actions",
        JobPromiseSchema,
        status=202,
        request=ActionInput,
        parameters=[ONCE, DRY_RUN],
        also={200: ActionCountSchema},
        may=[409],
    )
    def post(self, request: Request) -> Response:
        """Apply an action to chosen memories, or to all that match, as a job that can be undone for 30 days."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        body = self.read_body()
        draft = ActionDraft(
            action=body["action"],
            ids=tuple(body.get("ids", ())),
            filters=body.get("filters"),
            arguments=_read_arguments(body.get("args", {})),
        )
        if self.dry_run:
            return Response(ActionCountSchema.json(action_count(actor=actor, draft=draft)))
        expected = body.get("expected_count")
        return self.post_once(lambda: action_create(actor=actor, draft=draft, expected_count=expected))


class ExportFileView(FileView):
    @of_memories("memories_export_file", OpenApiTypes.STR, status=(200, "application/jsonl"), may=[404, 409])
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Download an export as JSON Lines: one memory per line, as the caller may read it now."""
        actor = self.actor()
        lines = export_lines(actor=actor, job_id=job_id)
        refuse_unknown_parameters(request)
        return lines_response(lines, actor=actor, path=request.path)


def _read_arguments(given: Mapping[str, Any]) -> BulkArguments:
    layer = {"layer": Layer(given["layer"])} if "layer" in given else {}
    tags = {"tags": tuple(given["tags"])} if "tags" in given else {}
    return BulkArguments(**{**given, **layer, **tags})
