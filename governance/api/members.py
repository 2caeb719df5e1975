"""REST views of members/ and invitations/: the members of the tenant, and who is invited to become one."""

from uuid import UUID

from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.access_schema import RemovalSchema
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, describe, page_of
from governance.api.fields import StrictSerializer, TextField
from governance.api.pages import show_page
from governance.api.schema import Schema
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.database import acting
from governance.idempotency.services import Reply
from governance.members.selectors import (
    invitation_get,
    invitation_view,
    invitations_list,
    member_get,
    member_view,
    members_list,
)
from governance.members.services import (
    NewInvitation,
    invitation_create,
    invitation_revoke,
    member_remove,
    member_role_change,
)
from governance.vocabulary import Permission, RoleName


class MemberSchema(Schema):
    id = serializers.UUIDField()
    email = serializers.CharField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=list(RoleName))
    created_at = serializers.DateTimeField()


class InvitationSchema(Schema):
    id = serializers.UUIDField()
    email = serializers.CharField()
    role = serializers.ChoiceField(choices=list(RoleName))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class NewInvitationSchema(InvitationSchema):
    """`link` shows the invitation; only the mailed one accepts."""

    link = serializers.CharField()


class InvitationInput(StrictSerializer):
    email = TextField(max_length=254)
    role = serializers.ChoiceField(choices=list(RoleName))


class RoleInput(StrictSerializer):
    role = serializers.ChoiceField(choices=list(RoleName))


class MembersView(ApiView):
    @describe("members_list", page_of(MemberSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the members of the tenant, oldest first."""
        return show_page(self, members_list, ordering="id")


class MemberView(ApiView):
    @describe("members_get", MemberSchema, may=[404])
    def get(self, request: Request, member_id: UUID) -> object:
        """Read one member."""
        row = member_get(actor=self.actor(), member_id=member_id)
        refuse_unknown_parameters(request)
        return member_view(row)

    @describe("members_update", MemberSchema, request=RoleInput, may=[404, 409])
    def patch(self, request: Request, member_id: UUID) -> object:
        """Change a member's role, from the next request on. The last owner keeps the role (409).

        A key needs every scope.
        """
        actor = self.actor()
        member_get(actor=actor, member_id=member_id)
        role = RoleName(self.read_body()["role"])
        return member_role_change(actor=actor, member_id=member_id, role=role)

    @describe(
        "members_remove",
        None,
        status=204,
        parameters=[DRY_RUN],
        also={200: RemovalSchema},
        may=[404, 409],
    )
    def delete(self, request: Request, member_id: UUID) -> Response:
        """Remove a member with their keys and links. The last owner cannot be removed (409)."""
        actor = self.actor()
        with acting(actor):
            member_remove(actor=actor, member_id=member_id)
            refuse_unknown_parameters(request, "dry_run")
            dry_run = flag(request, "dry_run")
            transaction.set_rollback(dry_run)
        return Response({"dry_run": True, "count": 1, "ids": [str(member_id)]}) if dry_run else Response(status=204)


class InvitationsView(ApiView):
    @describe("invitations_list", page_of(InvitationSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List open invitations, newest first."""
        return show_page(self, invitations_list)

    @describe("invitations_create", NewInvitationSchema, status=201, request=InvitationInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Invite an address: its person becomes a member by the mailed link.

        The link in the response only shows the invitation.

        An earlier invitation of the address ends. A key needs every scope.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMBER_MANAGE)
        body = self.read_body()
        return self.post_once(
            lambda: _answer_invitation(invitation_create(actor=actor, email=body["email"], role=RoleName(body["role"])))
        )


class InvitationView(ApiView):
    @describe("invitations_get", InvitationSchema, may=[404])
    def get(self, request: Request, invitation_id: UUID) -> object:
        """Read one open invitation."""
        row = invitation_get(actor=self.actor(), invitation_id=invitation_id)
        refuse_unknown_parameters(request)
        return invitation_view(row)

    @describe("invitations_revoke", None, status=204, may=[404, 409])
    def delete(self, request: Request, invitation_id: UUID) -> None:
        """Revoke an invitation: its links no longer work."""
        actor = self.actor()
        invitation_get(actor=actor, invitation_id=invitation_id)
        self.read_body()
        invitation_revoke(actor=actor, invitation_id=invitation_id)


def _answer_invitation(made: NewInvitation) -> Reply:
    return Reply(201, {**InvitationSchema.json(made.view), "link": made.url}, shows=(made.view.id,))
