"""REST views of organisation/: the deletion of the whole tenant, by its owner."""

from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.descriptions import DRY_RUN, ONCE, describe, read
from governance.api.fields import StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema, job_json
from governance.api.representations import time_json
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.idempotency.services import Reply
from vault.api.schema import Schema
from vault.api.subjects import CountsSchema
from vault.deletion.services import DeletionPreview, deletion_preview, deletion_request, owner_check
from vault.vocabulary import HoldKind


class DeletionInput(StrictSerializer):
    slug = TextField(max_length=63, help_text="The short name of the organisation, to confirm.")


class RefusingHoldSchema(Schema):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=list(HoldKind))
    memories = serializers.IntegerField(help_text="Memories that the hold covers.")
    created_at = serializers.DateTimeField()


class DeletionPreviewSchema(Schema):
    erased = CountsSchema()
    members = serializers.IntegerField()
    holds = RefusingHoldSchema(many=True, help_text="Holds and freezes that refuse the deletion: the first 100.")


class DeletionView(ApiView):
    @describe(
        "organisation_deletion",
        JobPromiseSchema,
        status=202,
        request=DeletionInput,
        parameters=[ONCE, DRY_RUN],
        also={200: DeletionPreviewSchema},
        may=[409, 423],
    )
    def post(self, request: Request) -> Response:
        """Delete the whole organisation once seven days have passed. Until then, cancel the job to keep it.

        Memories, conversations, members, keys and all settings are deleted. The audit log stays. The job ends with a
        receipt.
        """
        actor = self.actor()
        owner_check(actor)
        refuse_unknown_parameters(request, "dry_run")
        slug = read(DeletionInput, request)["slug"]
        if flag(request, "dry_run"):
            return Response(_preview_json(deletion_preview(actor=actor)))

        def call() -> Reply:
            return Reply(202, {"job": job_json(deletion_request(actor=actor, slug=slug))})

        return self.post_once(call)


def _preview_json(preview: DeletionPreview) -> dict[str, Any]:
    return {
        "erased": asdict(preview.counts),
        "members": preview.members,
        "holds": [
            {"id": str(hold.id), "kind": hold.kind, "memories": hold.memories, "created_at": time_json(hold.created_at)}
            for hold in preview.holds
        ],
    }
