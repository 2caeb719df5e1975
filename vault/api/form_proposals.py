"""forms/proposals/ of the REST API: conversions that the product proposes."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from governance.access.decisions.services import authorize
from governance.api.descriptions import page_of
from governance.api.fields import StrictSerializer
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.schema import NamedSchema
from vault.conversion.proposals import (
    ProposalView,
    proposal_accept,
    proposal_decline,
    proposal_get,
    proposal_reopen,
    proposals_list,
)
from vault.vocabulary import MemoryType, ProposalState

STATE = OpenApiParameter("state", str, enum=[*ProposalState], description="`open` without it.")
DECISIONS = {
    ProposalState.ACCEPTED: proposal_accept,
    ProposalState.DECLINED: proposal_decline,
    ProposalState.OPEN: proposal_reopen,
}


class FormProposalInput(StrictSerializer):
    state = serializers.ChoiceField(
        choices=list(ProposalState), help_text="`accepted` starts the job; `open` undoes the caller's own decision."
    )


class FormProposalSchema(Schema):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(
        choices=list(MemoryType), help_text="The proposed type; `plaintext` erases the cache or adapter `form`."
    )
    persona = NamedSchema(allow_null=True, help_text="On which a cache is then mounted.")
    form = serializers.UUIDField(source="form_id", allow_null=True)
    memory_ids = serializers.ListField(child=serializers.UUIDField())
    figures = serializers.DictField(help_text="Numbers that are the reason.")
    state = serializers.ChoiceField(source="status", choices=list(ProposalState))
    job = serializers.UUIDField(source="job_id", allow_null=True)
    automatic = serializers.BooleanField(source="is_automatic", help_text="The product made the cache by itself.")
    decided_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    def make_persona(self, view: ProposalView) -> Any:
        return {"id": str(view.persona_id), "name": view.persona_name} if view.persona_id else None

    def make_memory_ids(self, view: ProposalView) -> Any:
        return [str(memory.cube.id) for memory in view.memories]


class FormProposalsView(ApiView):
    @of_memories("forms_proposals_list", page_of(FormProposalSchema), parameters=[STATE])
    def get(self, request: Request) -> dict[str, object]:
        """List the newest proposals whose memories the caller may all read."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request, "state")
        state = request.query_params.get("state", ProposalState.OPEN)
        if state not in set(ProposalState):
            raise Invalid(errors=[FieldError("state", f"one of {', '.join(ProposalState)}")])
        found = proposals_list(actor=actor, state=ProposalState(state))
        return {"count": len(found), "next": None, "previous": None, "results": found}


class FormProposalView(ApiView):
    @of_memories("forms_proposals_update", FormProposalSchema, request=FormProposalInput, may=[404, 409, 423])
    def patch(self, request: Request, form_proposal_id: UUID) -> ProposalView:
        """Accept a proposal, decline it, or undo one's own decision, where that is possible."""
        actor = self.actor()
        body = self.read_body(lambda: proposal_get(actor=actor, proposal_id=form_proposal_id))
        return DECISIONS[ProposalState(body["state"])](actor=actor, proposal_id=form_proposal_id)
