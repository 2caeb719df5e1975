"""REST views of proposals/: changes of packs that subscribers propose to publishers."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, PageSchema, describe
from governance.api.fields import StrictSerializer, TextField
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.inputs import read
from vault.api.schema import Schema
from vault.store.proposals import (
    LONGEST_REASON,
    LONGEST_TEXT,
    Proposal,
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
    id = serializers.UUIDField()
    side = serializers.ChoiceField(choices=list(Side))
    pack = serializers.CharField(help_text="As `organisation/pack`.")
    organisation = serializers.CharField(help_text="The other side's name.")
    memory_key = serializers.UUIDField(help_text="Of the memory in the pack.")
    version = serializers.CharField(help_text="The one that the subscriber has.")
    before = serializers.CharField(help_text="The pack's wording, of received ones.")
    content = serializers.CharField()
    reason = serializers.CharField()
    state = serializers.ChoiceField(choices=list(ProposalState))
    answer = serializers.CharField(help_text="Why it was declined.")
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)


class ProposalListSchema(PageSchema):
    results = ProposalSchema(many=True)


class ProposalsView(ApiView):
    @describe("proposals_list", ProposalListSchema, parameters=[SIDE, STATE, *PAGE])
    def get(self, request: Request) -> Response:
        """List proposed changes of packs, newest first: received by the publisher, or sent by the subscriber."""
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
        return pages.envelope([proposal_json(proposal) for proposal in found])


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

        with self.after(ask):
            refuse_unknown_parameters(request)
            body = read(ProposalInput, request)
        draft = ProposalDraft(body["memory"], body["content"], body["reason"])

        def call() -> Reply:
            made = proposal_create(actor=actor, subscription_id=subscription_id, draft=draft)
            return Reply(201, proposal_json(made))

        return self.post_once(call, ask=ask)


class ProposalAcceptView(ApiView):
    @describe("proposals_accept", ProposalSchema, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, proposal_id: UUID) -> Response:
        """Accept the wording for the next version of the pack. Your own memory stays as it is."""
        actor = self.actor()

        def ask() -> None:
            proposal_ask(actor=actor, proposal_id=proposal_id)

        with self.after(ask):
            refuse_unknown_parameters(request)
        return self.post_once(
            lambda: Reply(200, proposal_json(proposal_accept(actor=actor, proposal_id=proposal_id))), ask=ask
        )


class ProposalDeclineView(ApiView):
    @describe("proposals_decline", ProposalSchema, request=DeclineInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, proposal_id: UUID) -> Response:
        """Decline a proposal, with a reason that the subscriber reads."""
        actor = self.actor()

        def ask() -> None:
            proposal_ask(actor=actor, proposal_id=proposal_id)

        with self.after(ask):
            refuse_unknown_parameters(request)
            reason = read(DeclineInput, request)["reason"]

        def call() -> Reply:
            return Reply(200, proposal_json(proposal_decline(actor=actor, proposal_id=proposal_id, reason=reason)))

        return self.post_once(call, ask=ask)


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    row, texts = proposal.row, proposal.texts
    return {
        "id": str(row.id),
        "side": str(proposal.side),
        "pack": row.pack,
        "organisation": row.organisation,
        "memory_key": str(row.key),
        "version": row.number,
        "before": texts.before,
        "content": texts.text,
        "reason": texts.reason,
        "state": row.state,
        "answer": texts.answer,
        "created_at": time_json(row.created_at),
        "decided_at": time_json(row.decided_at),
    }
