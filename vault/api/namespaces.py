"""namespaces/ of the REST contract."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.described import PAGE, PageSchema, described
from governance.api.pages import CursorPages
from governance.api.views import ApiView
from governance.errors import FieldError, Invalid
from governance.vocabulary import Action, Permission
from vault.api.schema import Schema
from vault.namespaces.rules import PathError, path_checked
from vault.namespaces.selectors import NamespaceView, namespaces_list
from vault.vocabulary import NamespaceKind

PATH = OpenApiParameter("path", str, description="This path, with all below it.")


class NamespaceOwnerSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()


class NamespaceItemSchema(Schema):
    id = serializers.UUIDField()
    path = serializers.CharField()
    parent = serializers.UUIDField(  # type: ignore[assignment]
        allow_null=True, help_text="The next one above that the caller sees."
    )
    kind = serializers.ChoiceField(choices=list(NamespaceKind))
    owner = NamespaceOwnerSchema(allow_null=True)
    read_only = serializers.BooleanField()  # type: ignore[assignment]
    count = serializers.IntegerField(help_text="Memories in it that the caller may read, without those below.")
    quota = serializers.IntegerField(allow_null=True, help_text="null: quotas are of tenants, members and keys.")
    rights = serializers.ListField(child=serializers.ChoiceField(choices=list(Action)))


class NamespaceListSchema(PageSchema):
    results = NamespaceItemSchema(many=True)


class NamespacesView(ApiView):
    @described("namespaces_list", NamespaceListSchema, parameters=[PATH, *PAGE])
    def get(self, request: Request) -> Response:
        """List the namespaces that the caller may read, by path."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        pages = CursorPages(request, "path", also_known=["path"])
        views = namespaces_list(
            actor=actor,
            within=_path(request),
            pages=pages,
        )
        return pages.envelope([namespace_json(view) for view in views])


def namespace_json(view: NamespaceView) -> dict[str, Any]:
    one = view.namespace
    return {
        "id": str(one.id),
        "path": one.path,
        "parent": str(view.parent) if view.parent else None,
        "kind": one.kind,
        "owner": {"id": str(one.owner_id), "name": one.owner.display_name} if one.owner else None,
        "read_only": one.read_only,
        "count": view.count,
        "quota": None,
        "rights": list(view.rights),
    }


def _path(request: Request) -> str:
    text = request.query_params.get("path", "")
    try:
        return path_checked(text) if text else ""
    except PathError as fault:
        raise Invalid(errors=[FieldError("path", fault.message)]) from fault
