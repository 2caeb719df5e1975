"""Caches and adapters in the tables, made without an engine."""

from collections.abc import Callable, Sequence
from uuid import UUID

from django.db.models.functions import Now

from governance.actor import Actor
from governance.database import acting
from governance.ids import uuid7
from vault.conversion.jobs import MadePayload, form_store
from vault.conversion.services import block_open
from vault.forms.payloads import payload_encode, payload_seal, payload_store
from vault.models import FormProposal, MemoryForm
from vault.providers.engines import EngineModel
from vault.vocabulary import MemoryType, ProposalState

REPORT = {"exact": 1.0, "paraphrases": 1.0, "strangers": 1.0, "general": 1.0, "perplexity_ratio": 1.0}
COSTS = {"text_base": 0.0, "text_token": 0.01, "cache_base": 0.0, "cache_token": 0.001, "copy_byte": 0.0}


def form_add(
    actor: Actor,
    memory_ids: Sequence[UUID],
    *,
    title: str = "House rules",
    kind: MemoryType = MemoryType.ACTIVATION,
    content: bytes = b"tensors",
    is_approved: bool = False,
    store: Callable[..., MemoryForm] = form_store,
) -> MemoryForm:
    """Store a cache or adapter of these memories, with an invented payload. store: another `form_store`."""
    form_id = uuid7()
    sealed = payload_seal(actor.tenant_id, form_id, [], payload_encode("text", content))
    payload_store(actor.tenant_id, form_id, sealed)
    model = EngineModel(name="tiny", fingerprint="f" * 64, context=4096, bytes_per_token=100)
    made = MadePayload(
        form_id, model, 10, 0.5, sealed, costs=COSTS, report=REPORT if kind == MemoryType.PARAMETER else None
    )
    with acting(actor):
        block = block_open(actor=actor, memory_ids=memory_ids)
        form = store(actor, {"kind": kind, "persona": ""}, title, block, made)
        if is_approved:
            MemoryForm.objects.filter(id=form.id).update(approved_at=Now(), approved_by=actor.member_id)
        return form


def proposal_add(actor: Actor, memory_ids: Sequence[UUID]) -> FormProposal:
    """Store the proposal of a cache, without an engine."""
    figures = {"turns": 5, "of_turns": 5, "tokens": 50, "days": 3, "text_seconds": 0.5, "form_seconds": 0.05}
    with acting(actor):
        proposal = FormProposal(
            tenant_id=actor.tenant_id,
            kind=MemoryType.ACTIVATION,
            memories=list(memory_ids),
            basis=uuid7().bytes * 2,
            figures=figures,
            status=ProposalState.OPEN,
        )
        proposal.save(force_insert=True)
    return proposal
