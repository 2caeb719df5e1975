"""holds/ of the REST API, and freezes of single memories."""

from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, describe, page_of
from governance.api.fields import StrictSerializer, TextField, read_query_time
from governance.api.pages import show_page
from governance.api.schema import Schema
from governance.api.views import ApiView, expected_versions, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.changes import MemoryChangeView, of_change
from vault.api.fields import refuse_deep
from vault.api.representations import dry_run_json
from vault.api.schema import DryRunSchema, SubjectSchema
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

    def make_member(self, approval: Any) -> Any:
        return {"id": approval.member_id, "name": approval.name}


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

    def make_created_by(self, view: View) -> Any:
        return {"id": view.maker_id, "name": view.maker_name}


class HoldsView(ApiView):
    @describe("holds_list", page_of(HoldSchema), parameters=[STATUS, AS_OF, *PAGE])
    def get(self, request: Request) -> object:
        """List legal holds, newest first."""
        authorize(self.actor(), Permission.HOLD_MANAGE)
        return show_page(self, holds_list, status=_read_status(request), at=read_query_time(request, "as_of"))

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
        draft = HoldDraft(**self.read_body())
        if self.dry_run:
            count, ids = hold_rehearse(actor=actor, draft=draft, most=settings.MAX_ITEMS_PER_CALL)
            return Response(dry_run_json(ids, count=count))
        return self.post_once(lambda: hold_create(actor=actor, draft=draft))


class HoldView(ApiView):
    @describe("holds_get", HoldSchema, may=[404])
    def get(self, request: Request, hold_id: UUID) -> object:
        """Read one legal hold."""
        actor = self.actor()
        with acting(actor):
            view = hold_get(actor=actor, hold_id=hold_id)
            refuse_unknown_parameters(request)
        return view


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
            return Reply(200 if view.status is HoldStatus.RELEASED else 202, HoldSchema.json(view))

        return self.post_once(call, ask=ask)


class FreezeView(MemoryChangeView):
    check = staticmethod(cube_freezable)

    @of_change("memories_freeze", request=ReasonInput, may=[404, 412])
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Freeze a memory: a hold that the caller or an admin can end."""
        return self.change(memory_id, cube_freeze, reason=self.read_change(memory_id)["reason"])


class UnfreezeView(MemoryChangeView):
    check = staticmethod(cube_freezable)

    @of_change("memories_unfreeze", request=None, may=[404, 412])
    def post(self, request: Request, memory_id: UUID) -> Response:
        """End the caller's freeze of a memory; admins end all of its freezes. Legal holds stay."""
        self.versions = expected_versions(request)
        self.read_body(lambda: self.rehearse(self.bind(cube_unfreeze, memory_id)))
        return self.change(memory_id, cube_unfreeze)


def _read_status(request: Request) -> HoldStatus | None:
    asked = request.query_params.get("status")
    if asked is not None and asked not in set(HoldStatus):
        raise Invalid(errors=[FieldError("status", f"one of {', '.join(HoldStatus)}")])
    return HoldStatus(asked) if asked else None
