"""memories/{id}/feedback/ of the REST API."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.descriptions import DRY_RUN, IF_MATCH, ONCE
from governance.api.fields import OneOfField, StrictSerializer, TextField
from governance.api.schema import Schema
from governance.api.views import ApiView, expected_versions
from governance.database import acting
from governance.idempotency.services import Reply
from vault.api.descriptions import of_memories
from vault.api.fields import ContentField
from vault.reviews.feedback import (
    LONGEST_NOTE,
    Feedback,
    FeedbackResult,
    cube_feedback,
    feedback_ask,
    feedback_texts_prepare,
)
from vault.vocabulary import FeedbackKind, FeedbackOutcome


class FeedbackInput(StrictSerializer):
    kind = OneOfField(FeedbackKind, help_text="What you say of the memory.")
    correction = ContentField(required=False, help_text="Of `wrong`: the right content. Needs If-Match.")
    note = TextField(max_length=LONGEST_NOTE, required=False, allow_blank=True, help_text="Why; not of `useful`.")


class FeedbackSchema(Schema):
    dry_run = serializers.BooleanField()
    outcome = serializers.ChoiceField(choices=list(FeedbackOutcome))
    version = serializers.IntegerField(help_text="The present one.")
    review_id = serializers.UUIDField(allow_null=True, help_text="The review that waits for a decision.")


class FeedbackView(ApiView):
    @of_memories(
        "memories_feedback",
        FeedbackSchema,
        request=FeedbackInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        also={202: FeedbackSchema},
        may=[404, 409, 412, 423, 428],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Rate a memory as useful, wrong, outdated or sensitive.

        `useful` counts as a use. The others add a version: with the correction, with a validity that ends now, or with
        the next higher sensitivity. Without the right to change the memory they open a review, with status 202.
        """
        actor, versions = self.actor(), expected_versions(request)
        body = self.read_body(lambda: feedback_ask(actor=actor, cube_id=memory_id, expected_versions=versions))
        feedback = Feedback(FeedbackKind(body["kind"]), body.get("correction", ""), body.get("note", ""))

        def give_feedback(*, dry_run: bool = False) -> FeedbackResult:
            return cube_feedback(
                actor=actor, cube_id=memory_id, feedback=feedback, expected_versions=versions, dry_run=dry_run
            )

        if self.dry_run:
            return Response(_result_json(give_feedback(dry_run=True), dry_run=True))

        def ask() -> None:
            with acting(actor):
                feedback_ask(actor=actor, cube_id=memory_id)

        def call() -> Reply:
            result = give_feedback()
            return Reply(202 if result.outcome is FeedbackOutcome.REVIEW else 200, _result_json(result))

        with feedback_texts_prepare(actor=actor, cube_id=memory_id, feedback=feedback):
            response = self.post_once(call, ask=ask)
        response["ETag"] = f'"{response.data["version"]}"'
        return response


def _result_json(result: FeedbackResult, *, dry_run: bool = False) -> dict[str, object]:
    return FeedbackSchema.json(vars(result) | {"dry_run": dry_run})
