"""organisation/ of the REST API: deletion of the whole tenant by its owner."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.descriptions import DRY_RUN, ONCE, describe
from governance.api.fields import StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema
from governance.api.schema import Schema
from governance.api.views import ApiView
from vault.api.subjects import CountsSchema
from vault.deletion.services import deletion_preview, deletion_request, owner_check
from vault.vocabulary import HoldKind


class DeletionInput(StrictSerializer):
    slug = TextField(max_length=63, help_text="The short name of the organisation, to confirm.")


class RefusingHoldSchema(Schema):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=list(HoldKind))
    memories = serializers.IntegerField(help_text="Memories that the hold covers.")
    created_at = serializers.DateTimeField()


class DeletionPreviewSchema(Schema):
    erased = CountsSchema(source="counts")
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
        """Delete the whole organisation after seven days. Until then, cancelling the job keeps it.

        Memories, conversations, members, keys and all settings are deleted. The audit log stays. The job ends with a
        receipt.
        """
        actor = self.actor()
        owner_check(actor)
        slug = self.read_body()["slug"]
        if self.dry_run:
            return Response(DeletionPreviewSchema.json(deletion_preview(actor=actor)))
        return self.post_once(lambda: deletion_request(actor=actor, slug=slug))
