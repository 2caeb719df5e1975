"""reviews/ and memories/{id}/redact/ of the REST API."""

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, page_of
from governance.api.fields import StrictSerializer
from governance.api.jobs import JobPromiseSchema
from governance.api.pages import CursorPages
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.changes import MemoryChangeView, of_change
from vault.api.descriptions import of_memories
from vault.api.inputs import AcceptInput, RedactInput
from vault.api.representations import dry_run_json
from vault.api.schema import DryRunSchema, ReviewSchema
from vault.cubes.redaction import cube_redact, cube_redact_ask
from vault.reviews.quarantine import writer_memories, writer_quarantine
from vault.reviews.selectors import review_view, reviews_list
from vault.reviews.services import (
    review_accept,
    review_accept_ask,
    review_reject,
    review_reject_ask,
    review_reopen,
    review_reopen_ask,
    review_texts_prepare,
)
from vault.vocabulary import ReviewKind, ReviewStatus

if TYPE_CHECKING:
    from vault.models import Review

KIND = OpenApiParameter("kind", str, enum=[*ReviewKind])
Closed = TypeVar("Closed", bound=StrEnum)
STATUS = OpenApiParameter("status", str, enum=[*ReviewStatus], description="Default: open.")


class ReviewsView(ApiView):
    @of_memories("reviews_list", page_of(ReviewSchema), parameters=[KIND, STATUS, *PAGE])
    def get(self, request: Request) -> object:
        """List open reviews, newest first. They contain the places of personal data, never the data."""
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
        return pages.envelope(views)


class ReviewAcceptView(ApiView):
    @of_memories("reviews_accept", ReviewSchema, request=AcceptInput, parameters=[ONCE], may=[404, 409, 423])
    def post(self, request: Request, review_id: UUID) -> Response:
        """Accept a review. The effect depends on its kind.

        - `pii`: redact the findings, also in earlier versions unless `redact_history` is false.
        - `source_withdrawn`: keep the present text without its source and erase earlier versions. Only a former reader
        of the source may.
        - `quarantine`: make the memory readable. The key that stored it may not accept.
        - `feedback`: change the memory as the reader proposed.
        - `fusion`: fuse both memories, with the proposed text.
        - `conflict`: keep the later statement, and end the validity of the earlier one.
        - `sync`: take the words of the other installation, or `content`.
        - `pack_supersedes`, `pack_contradicts`: end the validity of the own memory, so that the pack's statement holds.
        - `pack_confirms`: raise the trust of the own memory to that of the pack.
        """
        actor = self.actor()

        def call() -> object:
            review_accept_ask(actor=actor, review_id=review_id)
            body = self.read_body()
            return _decision_reply(actor, review_accept(actor=actor, review_id=review_id, **body))

        with review_texts_prepare(actor=actor, review_id=review_id):
            return self.post_once(call, ask=lambda: review_accept_ask(actor=actor, review_id=review_id))


class ReviewRejectView(ApiView):
    @of_memories("reviews_reject", ReviewSchema, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, review_id: UUID) -> Response:
        """Reject a review. The effect depends on its kind.

        - `pii`: mark the finding as no personal data.
        - `source_withdrawn`, `quarantine`: delete the memory.
        - `feedback`: leave the memory unchanged.
        - `fusion`: keep both memories permanently.
        - `conflict`: keep both statements valid.
        - `sync`: keep the words of this installation, which the next sync sends.
        - `pack_supersedes`, `pack_contradicts`, `pack_confirms`: leave the own memory unchanged.
        """
        actor = self.actor()

        def call() -> object:
            review_reject_ask(actor=actor, review_id=review_id)
            refuse_unknown_parameters(request)
            return _decision_reply(actor, review_reject(actor=actor, review_id=review_id))

        return self.post_once(call, ask=lambda: review_reject_ask(actor=actor, review_id=review_id))


class ReviewReopenView(ApiView):
    @of_memories("reviews_reopen", ReviewSchema, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, review_id: UUID) -> Response:
        """Undo one's own decision, and open the review again. Decisions that erased or deleted something stay: 409.

        - `pii` that was rejected: its findings count as open again.
        - `conflict`, `pack_supersedes`, `pack_contradicts`: the earlier statement becomes valid again.
        - `fusion`: both memories come back.
        - `quarantine` that was accepted: the memory is unreadable again.
        """
        actor = self.actor()

        def call() -> object:
            review_reopen_ask(actor=actor, review_id=review_id)
            refuse_unknown_parameters(request)
            return _decision_reply(actor, review_reopen(actor=actor, review_id=review_id))

        return self.post_once(call, ask=lambda: review_reopen_ask(actor=actor, review_id=review_id))


class QuarantineInput(StrictSerializer):
    """The writer whose memories are put in quarantine."""

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
        """Quarantine all memories of one writer, as a job. They are not readable until their reviews are decided."""
        actor = self.actor()
        authorize(actor, Permission.APIKEY_MANAGE)
        writer_id = self.read_body()["writer"]
        if self.dry_run:
            found = writer_memories(actor=actor, writer_id=writer_id)
            return Response(dry_run_json(found.ids, count=found.count))
        return self.post_once(lambda: writer_quarantine(actor=actor, writer_id=writer_id))


class RedactView(MemoryChangeView):
    check = staticmethod(cube_redact_ask)

    @of_change("memories_redact", request=RedactInput)
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Erase the content of one version permanently. Its row and its hash stay."""
        return self.change(memory_id, cube_redact, number=self.read_change(memory_id)["version"])


def _decision_reply(actor: Actor, review: "Review") -> Reply:
    """Return the response to a decision. Only that of a PII review contains content of the memory."""
    shows = (review.cube_id,) if review.kind == ReviewKind.PII else ()
    return Reply(200, ReviewSchema.json(review_view(actor=actor, review=review)), shows=shows)


def _read_member(kind: type[Closed], name: str, text: str) -> Closed:
    try:
        return kind(text)
    except ValueError as error:
        raise Invalid(errors=[FieldError(name, f"one of {', '.join(kind)}")]) from error
