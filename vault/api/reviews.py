"""REST views of reviews/ and memories/{id}/redact/."""

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, IF_MATCH, ONCE, PAGE
from governance.api.fields import StrictSerializer
from governance.api.jobs import JobPromiseSchema, job_json
from governance.api.pages import CursorPages
from governance.api.views import ApiView, expected_versions, flag, refuse_unknown_parameters
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.changes import MEMORY_OR_DRY_RUN, change_and_answer
from vault.api.descriptions import of_memories
from vault.api.inputs import AcceptInput, RedactInput, read
from vault.api.representations import dry_run_json, review_json
from vault.api.schema import DryRunSchema, ReviewListSchema, ReviewSchema
from vault.cubes.redaction import cube_redact, cube_redact_ask
from vault.reviews.quarantine import writer_memories, writer_quarantine
from vault.reviews.selectors import review_view, reviews_list
from vault.reviews.services import (
    review_accept,
    review_accept_ask,
    review_reject,
    review_reject_ask,
    review_texts_prepare,
)
from vault.vocabulary import ReviewKind, ReviewStatus

if TYPE_CHECKING:
    from vault.models import Review

KIND = OpenApiParameter("kind", str, enum=[*ReviewKind])
Closed = TypeVar("Closed", bound=StrEnum)
STATUS = OpenApiParameter("status", str, enum=[*ReviewStatus], description="Default: open.")


class ReviewsView(ApiView):
    @of_memories("reviews_list", ReviewListSchema, parameters=[KIND, STATUS, *PAGE])
    def get(self, request: Request) -> Response:
        """List open reviews, newest first; places of personal data, never the data."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        pages = CursorPages(request, also_known=("kind", "status"))
        kind = request.query_params.get("kind")
        views = reviews_list(
            actor=actor,
            kind=_read_member(ReviewKind, "kind", kind) if kind is not None else None,
            status=_read_member(ReviewStatus, "status", request.query_params.get("status", ReviewStatus.OPEN)),
            pages=pages,
        )
        return pages.envelope([review_json(view) for view in views])


class ReviewAcceptView(ApiView):
    @of_memories("reviews_accept", ReviewSchema, request=AcceptInput, parameters=[ONCE], may=[404, 409, 423])
    def post(self, request: Request, review_id: UUID) -> Response:
        """Accept a review: redact the findings. Earlier versions are blanked unless `redact_history` is false.

        For `source_withdrawn`: keep the current text without its source, and erase the text of earlier versions; only a
        reader of the source may do this. `quarantine`: release the memory for reading; the key that stored it may not
        do this. `feedback`: change the memory as its reader asks. `fusion`: fuse both memories, with the proposed text.
        `conflict`: make the later statement valid. `sync`: take the text of the other installation, or `content`.
        `pack_supersedes`, `pack_contradicts`: make the pack's statement valid, and end the validity of the own one.
        `pack_confirms`: raise the trust of the memory to that of the pack.
        """
        actor = self.actor()

        def call() -> Reply:
            review_accept_ask(actor=actor, review_id=review_id)
            refuse_unknown_parameters(request)
            body = read(AcceptInput, request)
            return _decision_reply(actor, review_accept(actor=actor, review_id=review_id, **body))

        with review_texts_prepare(actor=actor, review_id=review_id):
            return self.post_once(call, ask=lambda: review_accept_ask(actor=actor, review_id=review_id))


class ReviewRejectView(ApiView):
    @of_memories("reviews_reject", ReviewSchema, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, review_id: UUID) -> Response:
        """Reject a review: the finding is no personal data. `source_withdrawn`, `quarantine`: delete the memory.

        `feedback`: leave the memory as it is. `fusion`: keep both memories for good. `conflict`: keep both statements
        valid. `sync`: keep the text here, which the next sync sends. `pack_…`: keep both statements.
        """
        actor = self.actor()

        def call() -> Reply:
            review_reject_ask(actor=actor, review_id=review_id)
            refuse_unknown_parameters(request)
            return _decision_reply(actor, review_reject(actor=actor, review_id=review_id))

        return self.post_once(call, ask=lambda: review_reject_ask(actor=actor, review_id=review_id))


class QuarantineInput(StrictSerializer):
    """The writer whose memories should wait for a decision."""

    writer = serializers.UUIDField(help_text="Id of an API key or of a member.")


class QuarantineView(ApiView):
    @of_memories(
        "reviews_quarantine",
        JobPromiseSchema,
        status=202,
        request=QuarantineInput,
        parameters=[ONCE, DRY_RUN],
        also={200: DryRunSchema},
        may=[404],
    )
    def post(self, request: Request) -> Response:
        """Quarantine all memories of one writer, as a job. Nobody reads them until their reviews are decided."""
        actor = self.actor()
        authorize(actor, Permission.APIKEY_MANAGE)
        refuse_unknown_parameters(request, "dry_run")
        rehearsed = flag(request, "dry_run")
        writer_id = read(QuarantineInput, request)["writer"]
        if rehearsed:
            found = writer_memories(actor=actor, writer_id=writer_id)
            return Response(dry_run_json(found.ids, count=found.count))

        def call() -> Reply:
            return Reply(202, {"job": job_json(writer_quarantine(actor=actor, writer_id=writer_id))})

        return self.post_once(call, ask=lambda: authorize(actor, Permission.APIKEY_MANAGE))


class RedactView(ApiView):
    @of_memories(
        "memories_redact",
        MEMORY_OR_DRY_RUN,
        request=RedactInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        may=[404, 409, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Blank the content of one version permanently. Its row and its hash stay."""
        actor, versions = self.actor(), expected_versions(request)

        def ask() -> None:
            cube_redact_ask(actor=actor, cube_id=memory_id)

        with self.after(lambda: cube_redact_ask(actor=actor, cube_id=memory_id, expected_versions=versions)):
            refuse_unknown_parameters(request, "dry_run")
            dry_run = flag(request, "dry_run")
            number = read(RedactInput, request)["version"]

        def redact() -> None:
            cube_redact(actor=actor, cube_id=memory_id, number=number, expected_versions=versions)

        return change_and_answer(self, memory_id, redact, ask=ask, dry_run=dry_run)


def _decision_reply(actor: Actor, review: "Review") -> Reply:
    """Return a decided review. If a memory's source was withdrawn, the response has no content."""
    shows = (review.cube_id,) if review.kind == ReviewKind.PII else ()
    return Reply(200, review_json(review_view(actor=actor, review=review)), shows=shows)


def _read_member(kind: type[Closed], name: str, text: str) -> Closed:
    try:
        return kind(text)
    except ValueError as error:
        raise Invalid(errors=[FieldError(name, f"one of {', '.join(kind)}")]) from error
