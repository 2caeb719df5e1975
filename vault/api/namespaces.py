"""namespaces/ of the REST API."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, PageSchema, describe
from governance.api.fields import FlagField, OneOfField, StrictSerializer, TextField, WholeField
from governance.api.jobs import JobPromiseSchema
from governance.api.pages import show_page
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.vocabulary import Action, Permission
from vault.api.fields import MomentField
from vault.api.representations import dry_run_json
from vault.api.schema import DryRunSchema
from vault.cubes.past import PastSummary
from vault.jobs.restoration import namespace_restore_ask, namespace_restore_later, namespace_restore_preview
from vault.namespaces.management import (
    LARGEST_QUOTA,
    NamespaceChanges,
    NamespaceDraft,
    namespace_create,
    namespace_delete,
    namespace_move_later,
    namespace_move_plan,
    namespace_update,
    namespace_update_ask,
)
from vault.namespaces.rules import LONGEST_PATH, PathError, check_path
from vault.namespaces.selectors import NamespaceView as View
from vault.namespaces.selectors import namespace_get, namespaces_list
from vault.vocabulary import NamespaceKind

PATH = OpenApiParameter("path", str, description="This path, with all below it.")
QUOTA = "Memories that it may hold; null: no limit of its own."


class NamespaceOwnerSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField(source="display_name")


class NamespaceItemSchema(Schema):
    id = serializers.UUIDField(source="namespace.id")
    path = serializers.CharField(source="namespace.path")
    parent = serializers.UUIDField(  # type: ignore[assignment]
        allow_null=True, help_text="The next one above that the caller sees."
    )
    kind = serializers.ChoiceField(source="namespace.kind", choices=list(NamespaceKind))
    owner = NamespaceOwnerSchema(source="namespace.owner", allow_null=True)
    read_only = serializers.BooleanField(source="namespace.read_only")  # type: ignore[assignment]
    count = serializers.IntegerField(
        help_text="Memories in it that the caller may read, without those below; at most two minutes old."
    )
    quota = serializers.IntegerField(source="namespace.quota", allow_null=True, help_text=QUOTA)
    rights = serializers.ListField(child=serializers.ChoiceField(choices=list(Action)))


class NamespaceListSchema(PageSchema):
    results = NamespaceItemSchema(many=True)


class NamespaceInput(StrictSerializer):
    path = TextField(max_length=LONGEST_PATH)
    kind = OneOfField(NamespaceKind, required=False, help_text="Default: private below /users, else shared.")
    owner = serializers.UUIDField(required=False, help_text="A member; of `expert` the curator. Default: the caller.")
    read_only = FlagField(required=False, help_text="Default: false.")  # type: ignore[assignment]
    quota = WholeField(min_value=1, max_value=LARGEST_QUOTA, required=False, allow_null=True, help_text=QUOTA)
    session_id = TextField(max_length=200, required=False, help_text="Of a context_pool: whose agents share it.")


class NamespaceChangesInput(StrictSerializer):
    kind = OneOfField(NamespaceKind, required=False, help_text="shared and expert change into each other.")
    owner = serializers.UUIDField(required=False)
    read_only = FlagField(required=False)  # type: ignore[assignment]
    quota = WholeField(min_value=1, max_value=LARGEST_QUOTA, required=False, allow_null=True, help_text=QUOTA)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(f"name what to change: {', '.join(self.fields)}")
        return attrs


class NamespaceMoveInput(StrictSerializer):
    path = TextField(max_length=LONGEST_PATH, help_text="Where it lies afterwards, with all below it.")


class MovedNamespaceSchema(Schema):
    id = serializers.UUIDField()
    before = serializers.CharField()
    after = serializers.CharField()


class NamespaceMoveSchema(Schema):
    dry_run = serializers.BooleanField()
    count = serializers.IntegerField(help_text="Namespaces that would move.")
    namespaces = MovedNamespaceSchema(many=True, help_text="The first 100 of them.")


class NamespaceRestoreInput(StrictSerializer):
    as_of = MomentField(help_text="In the past: the namespace becomes what it was then, with all below it.")


class NamespacePastSchema(Schema):
    dry_run = serializers.BooleanField()
    count = serializers.IntegerField(help_text="Memories that would change.")
    changed = serializers.IntegerField(help_text="Memories that get a version equal to the one that they had then.")
    deleted = serializers.IntegerField(help_text="Memories that were deleted since, and would be restored.")
    added = serializers.IntegerField(help_text="Memories that were stored later, and would be deleted.")
    restored = serializers.IntegerField(help_text="Memories that were deleted then, and would be deleted again.")
    unchanged = serializers.IntegerField()
    obstacles = serializers.DictField(
        child=serializers.IntegerField(), help_text="Of those that differ, how many cannot be restored, by code."
    )
    held = serializers.ListField(child=serializers.UUIDField(), help_text="The first 100 that a hold keeps.")
    purged = serializers.ListField(child=serializers.UUIDField(), help_text="The first 100 purged since.")


class NamespacesView(ApiView):
    @describe("namespaces_list", NamespaceListSchema, parameters=[PATH, *PAGE])
    def get(self, request: Request) -> object:
        """List the namespaces that the caller may read, by path."""
        authorize(self.actor(), Permission.MEMORY_READ)
        return show_page(self, namespaces_list, ordering="path", within=_read_path(request))

    @describe(
        "namespaces_create", NamespaceItemSchema, status=201, request=NamespaceInput, parameters=[ONCE], may=[409]
    )
    def post(self, request: Request) -> Response:
        """Create a namespace. Adding a memory creates its namespace automatically."""
        actor = self.actor()
        authorize(actor, Permission.NAMESPACE_CREATE)
        body = self.read_body()
        draft = NamespaceDraft(
            path=body["path"],
            kind=NamespaceKind(body["kind"]) if "kind" in body else None,
            owner_id=body.get("owner"),
            read_only=body.get("read_only", False),
            quota=body.get("quota"),
            session_id=body.get("session_id", ""),
        )
        return self.post_once(lambda: _open(actor, namespace_create(actor=actor, draft=draft).id))


class NamespaceView(ApiView):
    @describe("namespaces_get", NamespaceItemSchema, may=[404])
    def get(self, request: Request, namespace_id: UUID) -> object:
        """Read one namespace."""
        actor = self.actor()
        with acting(actor):
            shown = _open(actor, namespace_id)
            refuse_unknown_parameters(request)
        return shown

    @describe("namespaces_update", NamespaceItemSchema, request=NamespaceChangesInput, may=[404, 409])
    def patch(self, request: Request, namespace_id: UUID) -> object:
        """Change a namespace's kind, owner, quota or read-only flag."""
        actor = self.actor()
        body = self.read_body(lambda: namespace_update_ask(actor=actor, namespace_id=namespace_id))
        changes = NamespaceChanges(
            kind=NamespaceKind(body["kind"]) if "kind" in body else None,
            owner_id=body.get("owner"),
            read_only=body.get("read_only"),
            quota=body.get("quota"),
            lifts_quota="quota" in body and body["quota"] is None,
        )
        with acting(actor):
            namespace_update(actor=actor, namespace_id=namespace_id, changes=changes)
            return _open(actor, namespace_id)

    @describe(
        "namespaces_delete",
        None,
        status=204,
        parameters=[DRY_RUN],
        also={200: DryRunSchema},
        may=[404, 409],
    )
    def delete(self, request: Request, namespace_id: UUID) -> Response:
        """Delete an empty namespace, with its grants and mounts. What is in it stands in `errors` of the 409."""
        actor = self.actor()
        self.read_body(lambda: namespace_update_ask(actor=actor, namespace_id=namespace_id))
        namespace_delete(actor=actor, namespace_id=namespace_id, dry_run=self.dry_run)
        return Response(dry_run_json([namespace_id])) if self.dry_run else Response(status=204)


class NamespaceMoveView(ApiView):
    @describe(
        "namespaces_move",
        JobPromiseSchema,
        status=202,
        request=NamespaceMoveInput,
        parameters=[ONCE, DRY_RUN],
        also={200: NamespaceMoveSchema},
        may=[404, 409],
    )
    def post(self, request: Request, namespace_id: UUID) -> Response:
        """Move a namespace with its subtree, as a job. Its memories, grants and holds follow."""
        actor = self.actor()
        path = self.read_body(lambda: namespace_update_ask(actor=actor, namespace_id=namespace_id))["path"]
        if self.dry_run:
            plan = namespace_move_plan(actor=actor, namespace_id=namespace_id, path=path).namespaces
            moved = [
                {"id": str(namespace.id), "before": namespace.path, "after": after} for namespace, after in plan[:100]
            ]
            return Response({"dry_run": True, "count": len(plan), "namespaces": moved})
        return self.post_once(lambda: namespace_move_later(actor=actor, namespace_id=namespace_id, path=path))


class NamespaceRestoreView(ApiView):
    @describe(
        "namespaces_restore",
        JobPromiseSchema,
        status=202,
        request=NamespaceRestoreInput,
        parameters=[ONCE, DRY_RUN],
        also={200: NamespacePastSchema},
        may=[404],
    )
    def post(self, request: Request, namespace_id: UUID) -> Response:
        """Restore a namespace and its subtree to an earlier time, as a job. A dry run counts the changes."""
        actor = self.actor()
        as_of = self.read_body(lambda: namespace_restore_ask(actor=actor, namespace_id=namespace_id))["as_of"]
        if self.dry_run:
            summary = namespace_restore_preview(actor=actor, namespace_id=namespace_id, as_of=as_of)
            return Response(_past_json(summary))
        return self.post_once(lambda: namespace_restore_later(actor=actor, namespace_id=namespace_id, as_of=as_of))


def _past_json(summary: PastSummary) -> dict[str, Any]:
    counts = {str(change): count for change, count in summary.counts.items()}
    more = {"purged": summary.purged, "dry_run": True, "count": summary.restorable}
    return NamespacePastSchema.json(vars(summary) | counts | more)


def _open(actor: Actor, namespace_id: UUID) -> View:
    return namespace_get(actor=actor, namespace_id=namespace_id).view


def _read_path(request: Request) -> str:
    text = request.query_params.get("path", "")
    try:
        return check_path(text) if text else ""
    except PathError as fault:
        raise Invalid(errors=[FieldError("path", fault.message)]) from fault
