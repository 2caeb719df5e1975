"""memories/facets/ and views/ of the REST API."""

from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, describe, page_of
from governance.api.fields import StrictSerializer, TextField
from governance.api.pages import whole_list
from governance.api.schema import Schema
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.cubes.persona_references import refuse_unknown_personas
from vault.listing.facets import COUNTED, MOST, facets_count, facets_json
from vault.listing.queries import FILTERS, query_read
from vault.listing.views import (
    LONGEST_NAME,
    LONGEST_QUERY,
    ViewDraft,
    view_create,
    view_create_ask,
    view_remove,
    views_list,
)

TIMES = ("created_after", "created_before")
PARAMETERS = [
    *(OpenApiParameter(name, str, many=True, description="Repeated: any of the values.") for name in FILTERS),
    *(OpenApiParameter(name, str, description="RFC 3339, or a date.") for name in TIMES),
    OpenApiParameter(
        "inactive", OpenApiTypes.BOOL, description="Count the deleted, expired and archived memories instead."
    ),
    OpenApiParameter("deleted", OpenApiTypes.BOOL, description="The same as `inactive`."),
]


class FacetValueSchema(Schema):
    value = serializers.CharField()
    count = serializers.IntegerField()
    capped = serializers.BooleanField(
        help_text=f"At least so many: {MOST} is the largest count, {COUNTED} rows are read."
    )


class FacetsSchema(Schema):
    namespace = FacetValueSchema(many=True)
    persona = FacetValueSchema(many=True)
    layer = FacetValueSchema(many=True)
    state = FacetValueSchema(many=True)
    semantic_type = FacetValueSchema(many=True)
    tags = FacetValueSchema(many=True)
    sensitivity = FacetValueSchema(many=True)
    source = FacetValueSchema(many=True)  # type: ignore[assignment]
    month = FacetValueSchema(many=True, help_text="When the memories were stored, as in 2026-05.")


class ViewInput(StrictSerializer):
    name = TextField(max_length=LONGEST_NAME)
    query = TextField(
        max_length=LONGEST_QUERY, allow_blank=True, help_text="As behind the question mark: `q=school&layer=long_term`."
    )


class ViewSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    query = serializers.CharField()


class FacetsView(ApiView):
    @of_memories("memories_facets", FacetsSchema, parameters=PARAMETERS)
    def get(self, request: Request) -> Response:
        """Count the memories of each value of a filter, under the other filters."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request, *FILTERS, *TIMES, "inactive", "deleted")
        flag(request, "deleted")
        flag(request, "inactive")
        refuse_unknown_personas(actor=actor, references=request.query_params.getlist("persona"), field="persona")
        query = query_read({name: request.query_params.getlist(name) for name in request.query_params})
        return Response(facets_json(facets_count(actor=actor, query=query)))


class ViewsView(ApiView):
    @describe("views_list", page_of(ViewSchema))
    def get(self, request: Request) -> object:
        """List the member's own saved views, oldest first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request)
        return whole_list(views_list(actor=actor))

    @describe("views_create", ViewSchema, status=201, request=ViewInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Save a search or filter of the list of memories under a name."""
        actor = self.actor()
        view_create_ask(actor=actor)
        draft = ViewDraft(**self.read_body())
        return self.post_once(lambda: view_create(actor=actor, draft=draft), ask=lambda: view_create_ask(actor=actor))


class ViewView(ApiView):
    @describe("views_delete", None, status=204, may=[404])
    def delete(self, request: Request, view_id: UUID) -> None:
        """Delete a saved view."""
        self.read_body()
        view_remove(actor=self.actor(), view_id=view_id)
