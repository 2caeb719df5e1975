"""Proposals to make caches and adapters, or to give them up: accepted, declined, and taken back in the inbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, Forbidden, NotFound
from governance.jobs.services import job_cancel, open_jobs
from governance.vocabulary import Permission, Topic, Verb
from vault.conversion.services import ConversionDraft, conversion_request
from vault.cubes.selectors import CubeView, cubes_read
from vault.forms.services import form_remove
from vault.layers.working_set import readable_ids
from vault.models import FormProposal, MemoryForm
from vault.vocabulary import MemoryType, ProposalState

OBJECT_TYPE = "form_proposal"
MOST_SHOWN = 100
TITLE = "Often used"


@dataclass(frozen=True)
class ProposalView:
    """A proposal with its memories as the reader may read them. figures: turns, of_turns, tokens, text_seconds,
    form_seconds, uses, days and is_stale, as far as its kind has them. is_automatic: the product accepted it by itself.
    """

    id: UUID
    kind: MemoryType
    persona_id: UUID | None
    persona_name: str
    form_id: UUID | None
    memories: tuple[CubeView, ...] = field(repr=False)
    figures: Mapping[str, Any]
    status: ProposalState
    job_id: UUID | None
    is_automatic: bool
    decided_at: datetime | None
    created_at: datetime


def proposals_list(*, actor: Actor, state: ProposalState = ProposalState.OPEN) -> list[ProposalView]:
    """Return the newest proposals whose memories the actor may all read. Raises Forbidden; KeyUnavailable.

    Writes: AuditEntry? naming the memories.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = FormProposal.objects.filter(tenant_id=actor.tenant_id, status=state)
        found = list(rows.select_related("persona").order_by("-id")[:MOST_SHOWN])
        return _make_views(actor, found)


def proposal_get(*, actor: Actor, proposal_id: UUID) -> ProposalView:
    """Return a proposal whose memories the actor may all read. Raises Forbidden; NotFound."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = FormProposal.objects.filter(tenant_id=actor.tenant_id, id=proposal_id)
        views = _make_views(actor, list(rows.select_related("persona")))
    if not views:
        raise NotFound
    return views[0]


def proposal_accept(*, actor: Actor, proposal_id: UUID) -> ProposalView:
    """Start the job that makes the cache or adapter, or erase it where text is proposed again.

    Raises NotFound; Forbidden; Conflict if it was decided, or without an engine; Held. Writes: FormProposal, AuditEntry
    …; as `conversion_request` or `form_remove`.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        row = _locate_open(actor, proposal_id)
        if row.kind == MemoryType.PLAINTEXT:
            assert row.form_id is not None
            form_remove(actor=actor, form_id=row.form_id)
        else:
            is_cache = row.kind == MemoryType.ACTIVATION
            persona_id = row.persona_id if is_cache else None  # an adapter is mounted after its approval
            draft = ConversionDraft(tuple(row.memories), TITLE, MemoryType(row.kind), persona_id)
            row.job_id = conversion_request(actor=actor, draft=draft).id
        _decide(actor, row, ProposalState.ACCEPTED, Verb.FORM_PROPOSAL_ACCEPTED)
        return proposal_get(actor=actor, proposal_id=proposal_id)


def proposal_decline(*, actor: Actor, proposal_id: UUID) -> ProposalView:
    """Decline a proposal, so that the same is not proposed again. Raises NotFound; Forbidden; Conflict.

    Writes: FormProposal, AuditEntry.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        row = _locate_open(actor, proposal_id)
        _decide(actor, row, ProposalState.DECLINED, Verb.FORM_PROPOSAL_DECLINED)
        return proposal_get(actor=actor, proposal_id=proposal_id)


def proposal_reopen(*, actor: Actor, proposal_id: UUID) -> ProposalView:
    """Undo the actor's own decision: cancel the job or erase what it made. What the product made by itself, anybody who
    may make caches undoes; it then counts as declined, so that it is not made again.

    Raises NotFound; Forbidden; Conflict for what cannot be undone; Held. Writes: FormProposal, AuditEntry …; as
    `job_cancel` or `form_remove`.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        row = _locate(actor, proposal_id)
        is_erased = row.kind == MemoryType.PLAINTEXT and row.status == ProposalState.ACCEPTED
        if is_erased or row.status == ProposalState.OPEN:
            raise Conflict("This decision cannot be undone.")
        is_automatic = row.status == ProposalState.ACCEPTED and row.decided_by is None
        if not is_automatic and row.decided_by != actor.principal_id:
            detail = "Only who decided a proposal may undo the decision."
            raise Forbidden(detail, permission=Permission.MEMORY_CREATE, rule="decider")
        if row.status == ProposalState.ACCEPTED:
            _undo_job(actor, row)
        row.job_id = None
        if is_automatic:
            _decide(actor, row, ProposalState.DECLINED, Verb.FORM_PROPOSAL_DECLINED)
        else:
            _decide(actor, row, ProposalState.OPEN, Verb.FORM_PROPOSAL_REOPENED)
        return proposal_get(actor=actor, proposal_id=proposal_id)


def _undo_job(actor: Actor, row: FormProposal) -> None:
    """Cancel the job of a proposal, or erase what it made; nothing if a person has erased that already."""
    if row.job_id in open_jobs(actor=actor, kind=Topic.FORM_BUILD):
        job_cancel(actor=actor, job_id=row.job_id)
    made = MemoryForm.objects.filter(tenant_id=actor.tenant_id, parents=row.memories, cube__type=row.kind)
    for form_id in list(made.filter(created_at__gte=row.decided_at).values_list("id", flat=True)):
        form_remove(actor=actor, form_id=form_id)


def _locate_open(actor: Actor, proposal_id: UUID) -> FormProposal:
    row = _locate(actor, proposal_id)
    if row.status != ProposalState.OPEN:
        raise Conflict(f"The proposal is {row.status}; only an open one can be decided.")
    return row


def _locate(actor: Actor, proposal_id: UUID) -> FormProposal:
    """Lock and return a proposal whose memories the actor may all read. Raises NotFound."""
    rows = FormProposal.objects.filter(tenant_id=actor.tenant_id, id=proposal_id).select_for_update()
    row = rows.first()
    if row is None or set(row.memories) - readable_ids(actor, row.memories):
        raise NotFound
    return row


def _decide(actor: Actor, row: FormProposal, status: ProposalState, verb: Verb) -> None:
    is_open = status is ProposalState.OPEN
    row.status, row.decided_by, row.decided_at = status, None if is_open else actor.principal_id, Now()
    if is_open:
        row.decided_at = None
    row.save(update_fields=["status", "decided_by", "decided_at", "job_id"])
    record(actor=actor, verb=verb, object_type=OBJECT_TYPE, object_ids=[row.id], detail={"kind": row.kind})


def _make_views(actor: Actor, rows: list[FormProposal]) -> list[ProposalView]:
    named = list({memory_id for row in rows for memory_id in row.memories})
    readable = readable_ids(actor, named) if named else set()
    shown = [row for row in rows if readable.issuperset(row.memories)]
    ids = list(dict.fromkeys(memory_id for row in shown for memory_id in row.memories))
    opened = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, is_use=False) if ids else []
    known = {view.cube.id: view for view in opened}
    return [_make_view(row, known) for row in shown if known.keys() >= set(row.memories)]


def _make_view(row: FormProposal, known: Mapping[UUID, CubeView]) -> ProposalView:
    return ProposalView(
        id=row.id,
        kind=MemoryType(row.kind),
        persona_id=row.persona_id,
        persona_name=row.persona.name if row.persona else "",
        form_id=row.form_id,
        memories=tuple(known[memory_id] for memory_id in row.memories),
        figures=row.figures,
        status=ProposalState(row.status),
        job_id=row.job_id,
        is_automatic=row.status == ProposalState.ACCEPTED and row.decided_by is None,
        decided_at=row.decided_at,
        created_at=row.created_at,
    )
