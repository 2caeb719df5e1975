"""memories/{id}/transition/ of the REST contract."""

from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.described import DRY_RUN, IF_MATCH, ONCE
from governance.api.fields import OneOfField, StrictSerializer, TextField
from governance.api.views import ApiView, asked_only, expected_versions, flag
from governance.database import acting
from governance.idempotency.services import Reply
from vault.api.described import of_memories
from vault.api.inputs import read
from vault.api.representations import dry_run_json, memory_json
from vault.api.schema import DryRunSchema, MemorySchema
from vault.cubes.changing import cube_change_ask
from vault.cubes.selectors import cubes_view
from vault.cubes.writer.prepared import stored_texts_prepared
from vault.lifecycle.services import LONGEST_REASON, cube_transition
from vault.vocabulary import State

MEMORY_OR_DRY_RUN = PolymorphicProxySerializer(
    "MemoryOrDryRun", serializers=[MemorySchema, DryRunSchema], resource_type_field_name=None
)


class TransitionInput(StrictSerializer):
    to = OneOfField(State, help_text="Where to go: an illegal state is answered with the legal ones.")
    reason = TextField(max_length=LONGEST_REASON, required=False, allow_blank=True)


class TransitionView(ApiView):
    @of_memories(
        "memories_transition",
        MEMORY_OR_DRY_RUN,
        request=TransitionInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Archive a memory, recall it from the archive, or approve it. It makes no version."""
        actor, versions = self.actor(), expected_versions(request)
        with self.after(lambda: cube_change_ask(actor=actor, cube_id=memory_id, expected_versions=versions)):
            asked_only(request, "dry_run")
            dry_run = flag(request, "dry_run")
            body = read(TransitionInput, request)
        to, reason = State(body["to"]), body.get("reason", "")

        def change(*, dry_run: bool = False) -> None:
            cube_transition(
                actor=actor, cube_id=memory_id, to=to, reason=reason, expected_versions=versions, dry_run=dry_run
            )

        if dry_run:
            change(dry_run=True)
            return Response(dry_run_json([memory_id]))

        def ask() -> None:
            with acting(actor):
                cube_change_ask(actor=actor, cube_id=memory_id)
                transaction.set_rollback(True)

        def call() -> Reply:
            change()
            return Reply(200, memory_json(cubes_view(actor=actor, cube_ids=[memory_id])[0]), shows=(memory_id,))

        with stored_texts_prepared(actor=actor, cube_ids=[memory_id]):
            response = self.post_once(call, ask=ask)
        response["ETag"] = f'"{response.data["version"]}"'
        return response
