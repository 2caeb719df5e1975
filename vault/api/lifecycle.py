"""memories/fuse/ and memories/{id}/transition/, promote/, copy/, split/ and unfuse/ of the REST API."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, ONCE, read
from governance.api.fields import NoInput, OneOfField, StrictSerializer, TextField
from governance.api.schema import Schema
from governance.api.views import ApiView, expected_version_lists, expected_versions
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.changes import MemoryChangeView, of_change
from vault.api.descriptions import MEMORIES, of_memories
from vault.api.fields import ContentField, PathField
from vault.api.representations import dry_run_json, memory_json
from vault.api.schema import DryRunSchema, MemorySchema
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.selectors import cube_view, cubes_view
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.lifecycle.fusion import (
    MOST_FUSED,
    MOST_PARTS,
    cube_split,
    cubes_fuse,
    fusion_propose,
    fusion_undo,
)
from vault.lifecycle.services import LONGEST_REASON, cube_copy, cube_copy_ask, cube_promote, cube_transition
from vault.vocabulary import Layer, State

UNFUSES = Permission.MEMORY_DELETE
IF_MATCH_OF_SEVERAL = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description='Versions in the order of the ids, as in `"2-1"`: the ETag of a dry run; or `*` for any.',
)


class TransitionInput(StrictSerializer):
    to = OneOfField(State, help_text="Where to go: an illegal state is answered with the legal ones.")
    reason = TextField(max_length=LONGEST_REASON, required=False, allow_blank=True)


class PromoteInput(StrictSerializer):
    layer = OneOfField(Layer, help_text="The layer that the memory goes to.")


class CopyInput(StrictSerializer):
    namespace = PathField(help_text="Path; made on demand inside what the principal may write.")


class FuseInput(StrictSerializer):
    ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=2, max_length=MOST_FUSED, help_text="Of one namespace and persona."
    )
    content = ContentField(required=False, help_text="Without it the proposed text is stored.")
    reason = TextField(max_length=LONGEST_REASON, required=False, allow_blank=True)


class SplitInput(StrictSerializer):
    parts = serializers.ListField(
        child=ContentField(), min_length=2, max_length=MOST_PARTS, help_text="The content of each new memory."
    )
    reason = TextField(max_length=LONGEST_REASON, required=False, allow_blank=True)


class FusionProposalSchema(Schema):
    dry_run = serializers.BooleanField()
    ids = serializers.ListField(child=serializers.UUIDField(), help_text="The newest first: its statement leads.")
    title = serializers.CharField()
    content = serializers.CharField()


class SplitSchema(Schema):
    results = MemorySchema(many=True)


class UnfusedSchema(Schema):
    restored = serializers.ListField(child=serializers.UUIDField(), help_text="Have their earlier state again.")
    deleted = serializers.ListField(child=serializers.UUIDField(), help_text="Were made of them; restorable.")


class TransitionView(MemoryChangeView):
    @of_change("memories_transition", request=TransitionInput)
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Archive a memory, recall it from the archive, or approve it. Adds no version."""
        body = self.read_change(memory_id)
        with prepare_stored_texts(actor=self.actor(), cube_ids=[memory_id]):
            return self.change(memory_id, cube_transition, to=State(body["to"]), reason=body.get("reason", ""))


class PromoteView(MemoryChangeView):
    @of_change("memories_promote", request=PromoteInput)
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Move a memory to another layer. Adds no version; promoting it back undoes the move."""
        layer = Layer(self.read_change(memory_id)["layer"])
        with prepare_stored_texts(actor=self.actor(), cube_ids=[memory_id]):
            return self.change(memory_id, cube_promote, layer=layer)


class CopyView(MemoryChangeView):
    address_of_made = MEMORIES
    check = staticmethod(cube_copy_ask)

    @of_change("memories_copy", reply=MemorySchema, status=201, request=CopyInput, also={200: DryRunSchema})
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Copy a memory to another namespace. The copy names its source and is readable as long as the source is."""
        actor, body = self.actor(), self.read_change(memory_id)
        copy = self.bind(cube_copy, memory_id, namespace=body["namespace"])

        def call() -> Reply:
            made = copy().id
            return Reply(201, memory_json(cube_view(actor=actor, cube_id=made)), shows=(made,))

        if self.dry_run:
            self.rehearse(copy)
            return Response(dry_run_json([memory_id]))
        return self.post_once(call, ask=lambda: self.rehearse(lambda: cube_copy_ask(actor=actor, cube_id=memory_id)))


class FuseView(ApiView):
    address_of_made = MEMORIES

    @of_memories(
        "memories_fuse",
        MemorySchema,
        status=201,
        request=FuseInput,
        parameters=[IF_MATCH_OF_SEVERAL, ONCE, DRY_RUN],
        also={200: FusionProposalSchema},
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request) -> Response:
        """Fuse memories into one. The originals stay, in the state merged; a dry run proposes the text."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_UPDATE)
        body, versions = self.read_body(), expected_version_lists(request)
        if self.dry_run:
            found = fusion_propose(actor=actor, cube_ids=body["ids"], expected_versions=versions)
            ids = [str(parent_cube.id) for parent_cube in found.parents]
            shown = {"dry_run": True, "ids": ids, "title": found.title, "content": found.content}
            return Response(shown, headers={"ETag": f'"{found.versions}"'})

        def call() -> Reply:
            made = cubes_fuse(
                actor=actor,
                cube_ids=body["ids"],
                content=body.get("content"),
                reason=body.get("reason", ""),
                expected_versions=versions,
            )
            return Reply(201, memory_json(cube_view(actor=actor, cube_id=made.id)), shows=(made.id,))

        def ask() -> None:
            for memory_id in sorted(body["ids"]):
                cube_change_ask(actor=actor, cube_id=memory_id)

        return self.post_once(call, ask=lambda: self.rehearse(ask))


class SplitView(MemoryChangeView):
    @of_change("memories_split", reply=SplitSchema, status=201, request=SplitInput, also={200: DryRunSchema})
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Split a memory into several. The original stays, in the state merged."""
        actor, body = self.actor(), self.read_change(memory_id)
        split = self.bind(cube_split, memory_id, parts=body["parts"], reason=body.get("reason", ""))

        def call() -> Reply:
            ids = tuple(cube.id for cube in split())
            return Reply(201, SplitSchema.of(results=cubes_view(actor=actor, cube_ids=ids)), shows=ids)

        if self.dry_run:
            self.rehearse(split)
            return Response(dry_run_json([memory_id]))
        return self.post_once(call, ask=lambda: self.rehearse(lambda: cube_change_ask(actor=actor, cube_id=memory_id)))


class UnfuseView(MemoryChangeView):
    @of_change("memories_unfuse", reply=UnfusedSchema, request=None)
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Undo a fusion or a split within the grace period. The memory is its result, or one that it merged."""
        actor = self.actor()
        self.versions = expected_versions(request)
        self.read_body(self.bind(self.check, memory_id), lambda _: read(NoInput, request))

        def undone() -> dict[str, Any]:
            plan = self.bind(fusion_undo, memory_id)()
            return UnfusedSchema.of(
                restored=[cube.id for cube in plan.parents], deleted=[cube.id for cube in plan.results]
            )

        if self.dry_run:
            return Response(self.rehearse(undone))
        return self.post_once(lambda: Reply(200, undone()), ask=lambda: authorize(actor, UNFUSES))
