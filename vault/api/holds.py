"""holds/ of the REST API, and freezes of single memories."""

from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, IF_MATCH, ONCE, PAGE, PageSchema, describe
from governance.api.fields import StrictSerializer, TextField, read_query_time
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, expected_versions, flag, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.changes import MEMORY_OR_DRY_RUN, change_and_answer
from vault.api.descriptions import of_memories
from vault.api.fields import refuse_deep
from vault.api.inputs import read
from vault.api.representations import dry_run_json
from vault.api.schema import DryRunSchema, Schema, SubjectSchema
from vault.holds.selectors import HoldView as View
from vault.holds.selectors import hold_get, hold_locate, holds_list
from vault.holds.services import (
    LONGEST_REASON,
    HoldDraft,
    cube_freezable,
    cube_freeze,
    cube_unfreeze,
    hold_create,
    hold_rehearse,
    hold_release,
)
from vault.vocabulary import HoldKind, HoldStatus

LEGAL_KINDS = [kind for kind in HoldKind if kind is not HoldKind.FREEZE]
STATUS = OpenApiParameter("status", str, enum=[*HoldStatus])
AS_OF = OpenApiParameter("as_of", str, description="The holds that stood at this time, as they were then.")


class ReasonInput(StrictSerializer):
    reason = TextField(max_length=LONGEST_REASON)


class HoldInput(ReasonInput):
    """A legal hold on exactly one of: a memory, the results of filters, a data subject."""

    memory_id = serializers.UUIDField(required=False)
    filters = serializers.JSONField(required=False, help_text="As in a search; also what matches later comes under it.")
    subject = TextField(max_length=200, required=False, help_text="The tenant's own reference; made on demand.")

    def validate_filters(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise serializers.ValidationError("an object is needed")
        refuse_deep(value)
        return value


class MemberRefSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()


class ApprovalSchema(Schema):
    member = MemberRefSchema()
    at = serializers.DateTimeField()


class HoldSchema(Schema):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=LEGAL_KINDS)
    status = serializers.ChoiceField(choices=list(HoldStatus))
    reason = serializers.CharField()
    memory_id = serializers.UUIDField(allow_null=True)
    filters = serializers.DictField(allow_null=True)
    subject = SubjectSchema(allow_null=True)
    covered = serializers.IntegerField(help_text="Memories that came under it so far.")
    created_by = MemberRefSchema()
    created_at = serializers.DateTimeField()
    approvals = ApprovalSchema(many=True, help_text="Of its release: two different members' are needed.")


class HoldListSchema(PageSchema):
    results = HoldSchema(many=True)


class HoldsView(ApiView):
    @describe("holds_list", HoldListSchema, parameters=[STATUS, AS_OF, *PAGE])
    def get(self, request: Request) -> Response:
        """List legal holds, newest first."""
        actor = self.actor()
        authorize(actor, Permission.HOLD_MANAGE)
        pages = CursorPages(request, also_known=["status", "as_of"])
        views = holds_list(actor=actor, status=_read_status(request), at=read_query_time(request, "as_of"), pages=pages)
        return pages.envelope([hold_json(view) for view in views])

    @describe(
        "holds_create",
        HoldSchema,
        status=201,
        request=HoldInput,
        parameters=[ONCE, DRY_RUN],
        also={200: DryRunSchema},
    )
    def post(self, request: Request) -> Response:
        """Hold memories unchanged until two different members release them. A dry run only counts them."""
        actor = self.actor()
        authorize(actor, Permission.HOLD_MANAGE)
        refuse_unknown_parameters(request, "dry_run")
        dry_run = flag(request, "dry_run")
        draft = HoldDraft(**read(HoldInput, request))
        if dry_run:
            count, ids = hold_rehearse(actor=actor, draft=draft, most=settings.MAX_ITEMS_PER_CALL)
            return Response(dry_run_json(ids, count=count))

        def call() -> Reply:
            return Reply(201, hold_json(hold_create(actor=actor, draft=draft)))

        return self.post_once(call)


class HoldView(ApiView):
    @describe("holds_get", HoldSchema, may=[404])
    def get(self, request: Request, hold_id: UUID) -> Response:
        """Read one legal hold."""
        actor = self.actor()
        with acting(actor):
            view = hold_get(actor=actor, hold_id=hold_id)
            refuse_unknown_parameters(request)
        return Response(hold_json(view))


class HoldReleaseView(ApiView):
    @describe("holds_release", HoldSchema, parameters=[ONCE], request=None, also={202: HoldSchema}, may=[404])
    def post(self, request: Request, hold_id: UUID) -> Response:
        """Approve the release of a hold: 202 while another approval is missing, 200 once the hold has ended."""
        actor = self.actor()

        def ask() -> None:
            with acting(actor):
                hold_locate(actor, hold_id)

        def call() -> Reply:
            view = hold_release(actor=actor, hold_id=hold_id)
            refuse_unknown_parameters(request)
            return Reply(200 if view.status is HoldStatus.RELEASED else 202, hold_json(view))

        return self.post_once(call, ask=ask)


class FreezeView(ApiView):
    @of_memories(
        "memories_freeze",
        MEMORY_OR_DRY_RUN,
        request=ReasonInput,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        may=[404, 412],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Freeze a memory: a hold that the caller or an admin can end."""
        actor, versions = self.actor(), expected_versions(request)
        with self.after(lambda: cube_freezable(actor=actor, cube_id=memory_id, expected_versions=versions)):
            refuse_unknown_parameters(request, "dry_run")
            dry_run = flag(request, "dry_run")
            reason = read(ReasonInput, request)["reason"]

        def freeze() -> None:
            cube_freeze(actor=actor, cube_id=memory_id, reason=reason, expected_versions=versions)

        def ask() -> None:
            cube_freezable(actor=actor, cube_id=memory_id)

        return change_and_answer(self, memory_id, freeze, ask=ask, dry_run=dry_run)


class UnfreezeView(ApiView):
    @of_memories(
        "memories_unfreeze",
        MEMORY_OR_DRY_RUN,
        request=None,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        may=[404, 412],
    )
    def post(self, request: Request, memory_id: UUID) -> Response:
        """End the caller's freeze of a memory; admins end all of its freezes. Legal holds stay."""
        actor, versions = self.actor(), expected_versions(request)

        def unfreeze() -> None:
            cube_unfreeze(actor=actor, cube_id=memory_id, expected_versions=versions)

        def ask() -> None:
            cube_freezable(actor=actor, cube_id=memory_id)

        with self.after(lambda: self.rehearse(unfreeze)):
            refuse_unknown_parameters(request, "dry_run")
            dry_run = flag(request, "dry_run")
        return change_and_answer(self, memory_id, unfreeze, ask=ask, dry_run=dry_run)


def hold_json(view: View) -> dict[str, Any]:
    return {
        "id": str(view.id),
        "kind": view.kind,
        "status": view.status,
        "reason": view.reason,
        "memory_id": str(view.memory_id) if view.memory_id else None,
        "filters": view.filters,
        "subject": {"id": str(view.subject.id), "reference": view.subject.reference} if view.subject else None,
        "covered": view.covered,
        "created_by": {"id": str(view.maker_id), "name": view.maker_name},
        "created_at": time_json(view.created_at),
        "approvals": [
            {"member": {"id": str(approval.member_id), "name": approval.name}, "at": time_json(approval.at)}
            for approval in view.approvals
        ],
    }


def _read_status(request: Request) -> HoldStatus | None:
    asked = request.query_params.get("status")
    if asked is not None and asked not in set(HoldStatus):
        raise Invalid(errors=[FieldError("status", f"one of {', '.join(HoldStatus)}")])
    return HoldStatus(asked) if asked else None
