"""memories/fuse/ and memories/{id}/transition/, promote/, copy/, split/ and unfuse/ of the REST API."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, IF_MATCH, ONCE, read
from governance.api.fields import NoInput, OneOfField, StrictSerializer, TextField
from governance.api.schema import Schema
from governance.api.views import ApiView, expected_version_lists, expected_versions, flag, refuse_unknown_parameters
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.changes import MEMORY_OR_DRY_RUN, change_and_answer
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


class TransitionView(ApiView):
    @of_memories(
        "memories_transition",
        MEMORY_OR_DRY_RUN,
        request=TransitionInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> object:
        """Archive a memory, recall it from the archive, or approve it. Adds no version."""
        actor, versions = self.actor(), expected_versions(request)
        body = self.read_body(lambda: cube_change_ask(actor=actor, cube_id=memory_id, expected_versions=versions))
        to, reason = State(body["to"]), body.get("reason", "")

        def change() -> None:
            cube_transition(actor=actor, cube_id=memory_id, to=to, reason=reason, expected_versions=versions)

        return _change_without_version(self, memory_id, change)


class PromoteView(ApiView):
    @of_memories(
        "memories_promote",
        MEMORY_OR_DRY_RUN,
        request=PromoteInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> object:
        """Move a memory to another layer. Adds no version; promoting it back undoes the move."""
        actor, versions = self.actor(), expected_versions(request)
        layer = Layer(
            self.read_body(lambda: cube_change_ask(actor=actor, cube_id=memory_id, expected_versions=versions))["layer"]
        )

        def change() -> None:
            cube_promote(actor=actor, cube_id=memory_id, layer=layer, expected_versions=versions)

        return _change_without_version(self, memory_id, change)


class CopyView(ApiView):
    address_of_made = MEMORIES

    @of_memories(
        "memories_copy",
        MemorySchema,
        status=201,
        request=CopyInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        also={200: DryRunSchema},
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Copy a memory to another namespace. The copy names its source and is readable as long as the source is."""
        actor, versions = self.actor(), expected_versions(request)
        path = self.read_body(lambda: cube_copy_ask(actor=actor, cube_id=memory_id, expected_versions=versions))[
            "namespace"
        ]

        def copy() -> UUID:
            return cube_copy(actor=actor, cube_id=memory_id, namespace=path, expected_versions=versions).id

        def call() -> Reply:
            made = copy()
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
        refuse_unknown_parameters(request, "dry_run")
        dry_run = flag(request, "dry_run")
        body, versions = read(FuseInput, request), expected_version_lists(request)
        if dry_run:
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


class SplitView(ApiView):
    @of_memories(
        "memories_split",
        SplitSchema,
        status=201,
        request=SplitInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        also={200: DryRunSchema},
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Split a memory into several. The original stays, in the state merged."""
        actor, versions = self.actor(), expected_versions(request)
        body = self.read_body(lambda: cube_change_ask(actor=actor, cube_id=memory_id, expected_versions=versions))
        asked: dict[str, Any] = {"parts": body["parts"], "reason": body.get("reason", "")}

        def split() -> tuple[UUID, ...]:
            made = cube_split(actor=actor, cube_id=memory_id, expected_versions=versions, **asked)
            return tuple(cube.id for cube in made)

        def call() -> Reply:
            ids = split()
            views = cubes_view(actor=actor, cube_ids=ids)
            return Reply(201, {"results": [memory_json(view) for view in views]}, shows=ids)

        if self.dry_run:
            self.rehearse(split)
            return Response(dry_run_json([memory_id]))
        return self.post_once(call, ask=lambda: self.rehearse(lambda: cube_change_ask(actor=actor, cube_id=memory_id)))


class UnfuseView(ApiView):
    @of_memories(
        "memories_unfuse",
        UnfusedSchema,
        request=None,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Undo a fusion or a split within the grace period. The memory is its result, or one that it merged."""
        actor, versions = self.actor(), expected_versions(request)
        with self.after(lambda: cube_change_ask(actor=actor, cube_id=memory_id, expected_versions=versions)):
            refuse_unknown_parameters(request, "dry_run")
            dry_run = flag(request, "dry_run")
            read(NoInput, request)

        def undone() -> dict[str, Any]:
            plan = fusion_undo(actor=actor, cube_id=memory_id, expected_versions=versions)
            return {
                "restored": [str(cube.id) for cube in plan.parents],
                "deleted": [str(cube.id) for cube in plan.results],
            }

        if dry_run:
            return Response(self.rehearse(undone))
        return self.post_once(lambda: Reply(200, undone()), ask=lambda: authorize(actor, UNFUSES))


def _change_without_version(view: ApiView, memory_id: UUID, change: Callable[[], object]) -> Response:
    """Run `change`, which adds no version, and return the memory."""
    actor = view.actor()

    def ask() -> None:
        cube_change_ask(actor=actor, cube_id=memory_id)

    with prepare_stored_texts(actor=actor, cube_ids=[memory_id]):
        return change_and_answer(view, memory_id, change, ask=ask)
