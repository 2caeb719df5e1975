"""proposals/ of the REST API: pack changes that subscribers propose to publishers."""

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.fields import StrictSerializer, TextField
from governance.api.pages import CursorPages
from governance.api.schema import Schema
from governance.api.views import ApiView
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from vault.store.proposals import (
    LONGEST_REASON,
    LONGEST_TEXT,
    ProposalDraft,
    Side,
    proposal_accept,
    proposal_ask,
    proposal_create,
    proposal_decline,
    proposals_list,
)
from vault.store.subscriptions import subscription_get
from vault.vocabulary import ProposalState

SIDE = OpenApiParameter("side", str, enum=[*Side], description="Default: received.")
STATE = OpenApiParameter("state", str, enum=[*ProposalState], description="Default: all.")


class ProposalInput(StrictSerializer):
    memory = serializers.UUIDField(help_text="The installed memory.")
    content = TextField(max_length=LONGEST_TEXT, help_text="The whole new wording. It leaves your organisation.")
    reason = TextField(max_length=LONGEST_REASON)


class DeclineInput(StrictSerializer):
    reason = TextField(max_length=LONGEST_REASON, help_text="The subscriber reads it.")


class ProposalSchema(Schema):
    id = serializers.UUIDField(source="row.id")
    side = serializers.ChoiceField(choices=list(Side))
    pack = serializers.CharField(source="row.pack", help_text="As `organisation/pack`.")
    organisation = serializers.CharField(source="row.organisation", help_text="The other side's name.")
    memory_key = serializers.UUIDField(source="row.key", help_text="Of the memory in the pack.")
    version = serializers.CharField(source="row.number", help_text="The one that the subscriber has.")
    before = serializers.CharField(source="texts.before", help_text="The pack's wording, of received ones.")
    content = serializers.CharField(source="texts.text")
    reason = serializers.CharField(source="texts.reason")
    state = serializers.ChoiceField(source="row.state", choices=list(ProposalState))
    answer = serializers.CharField(source="texts.answer", help_text="Why it was declined.")
    created_at = serializers.DateTimeField(source="row.created_at")
    decided_at = serializers.DateTimeField(source="row.decided_at", allow_null=True)


class ProposalsView(ApiView):
    @describe("proposals_list", page_of(ProposalSchema), parameters=[SIDE, STATE, *PAGE])
    def get(self, request: Request) -> object:
        """List the proposed changes of packs, received as publisher or sent as subscriber, newest first."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        pages = CursorPages(request, also_known=("side", "state"))
        side, state = request.query_params.get("side", Side.RECEIVED), request.query_params.get("state")
        if side not in set(Side):
            raise Invalid(errors=[FieldError("side", f"one of {', '.join(Side)}")])
        if state is not None and state not in set(ProposalState):
            raise Invalid(errors=[FieldError("state", f"one of {', '.join(ProposalState)}")])
        chosen = ProposalState(state) if state is not None else None
        found = proposals_list(actor=actor, side=Side(side), pages=pages, state=chosen)
        return pages.envelope(found)


class SubscriptionProposalsView(ApiView):
    @describe(
        "subscriptions_propose", ProposalSchema, status=201, request=ProposalInput, parameters=[ONCE], may=[404, 409]
    )
    def post(self, request: Request, subscription_id: UUID) -> Response:
        """Propose another wording of an installed memory to its publisher. Personal data and secrets are refused."""
        actor = self.actor()

        def ask() -> None:
            subscription_get(actor=actor, subscription_id=subscription_id)
            authorize(actor, Permission.STORE_MANAGE)

        body = self.read_body(ask)
        draft = ProposalDraft(body["memory"], body["content"], body["reason"])
        return self.post_once(lambda: proposal_create(actor=actor, subscription_id=subscription_id, draft=draft))


class ProposalAcceptView(ApiView):
    @describe("proposals_accept", ProposalSchema, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, proposal_id: UUID) -> Response:
        """Accept the wording for the next version of the pack. Your own memory stays unchanged."""
        actor = self.actor()
        self.read_body(lambda: proposal_ask(actor=actor, proposal_id=proposal_id))
        return self.post_once(lambda: proposal_accept(actor=actor, proposal_id=proposal_id))


class ProposalDeclineView(ApiView):
    @describe("proposals_decline", ProposalSchema, request=DeclineInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, proposal_id: UUID) -> Response:
        """Decline a proposal, with a reason that the subscriber reads."""
        actor = self.actor()
        reason = self.read_body(lambda: proposal_ask(actor=actor, proposal_id=proposal_id))["reason"]
        return self.post_once(lambda: proposal_decline(actor=actor, proposal_id=proposal_id, reason=reason))
