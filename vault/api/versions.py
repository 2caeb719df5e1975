"""memories/{id}/versions/{n}/, diff/, rollback/ and move/ of the REST API."""

from datetime import datetime
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.fields import StrictSerializer, TextField, WholeField
from governance.api.representations import time_json
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from vault.api.changes import MemoryChangeView, of_change
from vault.api.descriptions import of_memories
from vault.api.fields import PathField
from vault.api.schema import VersionSchema
from vault.cubes.comparison import FieldChange, versions_compare
from vault.cubes.differences import Edit
from vault.cubes.moves_and_rollbacks import cube_move, cube_rollback, prepare_earlier_texts
from vault.cubes.selectors import version_get
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.screening.screen import EVERYWHERE

LARGEST = 2**31 - 1
FROM = OpenApiParameter("from", int, required=True, description="Number of one version.")
TO = OpenApiParameter("to", int, required=True, description="Number of the other.")


class RollbackInput(StrictSerializer):
    version = WholeField(min_value=1, max_value=LARGEST, help_text="The version to go back to.")
    reason = TextField(max_length=500, required=False, allow_blank=True)


class MoveInput(StrictSerializer):
    namespace = PathField(help_text="Path; made on demand inside what the principal may write.")


class TextChangeSchema(Schema):
    edit = serializers.ChoiceField(choices=list(Edit))
    text = serializers.CharField()


class TextDifferenceSchema(Schema):
    changes = TextChangeSchema(
        many=True, help_text="Pieces in order: without inserts the one text, without deletes the other."
    )
    inserted = serializers.IntegerField(help_text="Words.")
    deleted = serializers.IntegerField(help_text="Words.")


class FieldChangeSchema(Schema):
    field = serializers.CharField(source="name")
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)

    def make_before(self, change: FieldChange) -> Any:
        return _value_json(change.before)

    def make_after(self, change: FieldChange) -> Any:
        return _value_json(change.after)


class DifferenceSchema(Schema):
    before = serializers.IntegerField(source="before.row.number", help_text="Number of the version that `from` names.")
    after = serializers.IntegerField(source="after.row.number", help_text="Number of the version that `to` names.")
    content = TextDifferenceSchema()
    title = TextDifferenceSchema()
    tags_added = serializers.ListField(child=serializers.CharField())
    tags_removed = serializers.ListField(child=serializers.CharField())
    fields_changed = FieldChangeSchema(source="fields", many=True)


class VersionView(ApiView):
    @of_memories("memories_version", VersionSchema, may=[404])
    def get(self, request: Request, memory_id: UUID, number: int) -> object:
        """Read one version of a memory."""
        actor = self.actor()
        with acting(actor):
            view = version_get(actor=actor, cube_id=memory_id, number=number)
            refuse_unknown_parameters(request)
        return view


class DifferenceView(ApiView):
    @of_memories("memories_diff", DifferenceSchema, parameters=[FROM, TO], may=[404])
    def get(self, request: Request, memory_id: UUID) -> object:
        """Compare two versions: texts word by word, other fields as a whole."""
        actor = self.actor()
        with self.after(lambda: version_get(actor=actor, cube_id=memory_id)):
            refuse_unknown_parameters(request, "from", "to")
            before, after = _read_number(request, "from"), _read_number(request, "to")
        return versions_compare(actor=actor, cube_id=memory_id, before=before, after=after)


class RollbackView(MemoryChangeView):
    @of_change("memories_rollback", request=RollbackInput)
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Roll a memory back: add a version with the content, tags, type and times of an earlier one."""
        body = self.read_change(memory_id)
        number, reason = body["version"], body.get("reason", "")
        with prepare_earlier_texts(actor=self.actor(), cube_id=memory_id, number=number, reason=reason):
            return self.change(memory_id, cube_rollback, number=number, reason=reason)


class MoveView(MemoryChangeView):
    @of_change("memories_move", request=MoveInput)
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Move a memory to another namespace, as a new version."""
        namespace = self.read_change(memory_id)["namespace"]
        with prepare_stored_texts(actor=self.actor(), cube_ids=[memory_id], screened=EVERYWHERE):
            return self.change(memory_id, cube_move, namespace=namespace)


def _read_number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdigit() and 0 < int(text[:11]) <= LARGEST):
        raise Invalid(errors=[FieldError(name, "the number of a version is needed")])
    return int(text)


def _value_json(value: str | float | datetime | None) -> str | float | None:
    return time_json(value) if isinstance(value, datetime) else value
