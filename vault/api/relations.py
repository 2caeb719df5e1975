"""memories/{id}/relations/, memories/{id}/context/ and graph/ of the REST API."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import ONCE, PAGE, page_of
from governance.api.fields import StrictSerializer
from governance.api.pages import show_page
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.database import acting
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.schema import MemorySchema
from vault.cubes.filters import read_moment_or_date
from vault.cubes.selectors import cube_get
from vault.graph.relations import (
    RELATIONS,
    RelationDraft,
    relation_change_ask,
    relation_create,
    relation_remove,
    relations_list,
)
from vault.listing.neighbourhood import MOST, neighbourhood_get
from vault.vocabulary import LinkKind

AS_OF = OpenApiParameter(
    "as_of", str, description="A time, or a date: its first moment. Only what was known and true then, in its words."
)
AROUND = OpenApiParameter("around", str, description="Names of people, places or things. Default: the newest memories.")


class RelationInput(StrictSerializer):
    memory_id = serializers.UUIDField(help_text="The other memory. It needs the same readers.")
    kind = serializers.ChoiceField(
        choices=RELATIONS, help_text="How the memory of the address relates to it. Other kinds are computed."
    )


class LinkSchema(Schema):
    source = serializers.UUIDField(source="source_id")  # type: ignore[assignment]
    target = serializers.UUIDField(source="target_id")
    kind = serializers.ChoiceField(choices=list(LinkKind), help_text="`source` follows, causes, … `target`.")


class RelationSchema(LinkSchema):
    """`is_by_person`: a person made it, and can remove it; else it is computed from the memories."""

    id = serializers.UUIDField()
    is_by_person = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class NeighbourhoodSchema(Schema):
    results = MemorySchema(many=True, help_text=f"The nearest {MOST}, the nearest first.")
    relations = LinkSchema(many=True, help_text="Between these.")
    more = serializers.IntegerField(help_text="Near memories that are left out.")


class RelationsView(ApiView):
    @of_memories("memories_relations", page_of(RelationSchema), parameters=PAGE, may=[404])
    def get(self, request: Request, memory_id: UUID) -> object:
        """List the relations of a memory to others that the caller may read, newest first."""
        return show_page(self, relations_list, cube_id=memory_id)

    @of_memories(
        "memories_relations_create",
        RelationSchema,
        status=201,
        request=RelationInput,
        parameters=[ONCE],
        also={200: RelationSchema},
        may=[404, 409, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Relate a memory to another one. 200: a person had related them so before."""
        actor = self.actor()
        body = self.read_body(lambda: relation_change_ask(actor=actor, cube_id=memory_id))
        draft = RelationDraft(memory_id, body["memory_id"], LinkKind(body["kind"]))

        def call() -> Reply:
            row, was_made = relation_create(actor=actor, draft=draft)
            return Reply(200 if was_made else 201, RelationSchema.json(row), shows=(draft.source_id, draft.target_id))

        return self.post_once(call, ask=lambda: self.rehearse(self.ask))


class RelationView(ApiView):
    @of_memories("memories_relations_delete", None, status=204, may=[404, 409, 423])
    def delete(self, request: Request, memory_id: UUID, relation_id: UUID) -> None:
        """Remove a relation that a person made. A computed one is 409."""
        actor = self.actor()
        self.read_body(lambda: relation_change_ask(actor=actor, cube_id=memory_id))
        relation_remove(actor=actor, cube_id=memory_id, relation_id=relation_id)


class MemoryContextView(ApiView):
    @of_memories("memories_context_of", NeighbourhoodSchema, parameters=[AS_OF], may=[404])
    def get(self, request: Request, memory_id: UUID) -> object:
        """Read the memories near a memory, by relations and by the names that they share, with their relations."""
        actor = self.actor()
        with acting(actor):
            cube_get(actor=actor, cube_id=memory_id)
            refuse_unknown_parameters(request, "as_of")
            return _answer_neighbourhood(actor, request, memory_id=memory_id)


class GraphView(ApiView):
    @of_memories("memories_graph", NeighbourhoodSchema, parameters=[AROUND, AS_OF])
    def get(self, request: Request) -> object:
        """Read the memories that name people, places or things, those near them, and the relations between all."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request, "around", "as_of")
        return _answer_neighbourhood(actor, request, centre=request.query_params.get("around", "").strip())


def _answer_neighbourhood(actor: Actor, request: Request, **near: Any) -> object:
    given = request.query_params.get("as_of", "")
    at = read_moment_or_date(given, "as_of") if given else None
    found = neighbourhood_get(actor=actor, at=at, **near)
    relations = [{"source_id": source, "target_id": target, "kind": kind} for source, target, kind in found.links]
    return {"results": found.views, "relations": relations, "more": found.more}
