"""Pack changes that subscribers propose. The outbox delivers proposals to publishers, and answers to subscribers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Invalid, NotFound, PiiUnavailable
from governance.ids import uuid7
from governance.models import Tenant
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit
from governance.pages import Pages
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from governance.vocabulary import Permission, Topic, Verb
from vault.models import PackMemory, PackProposal, PackVersion, Publication, Subscription
from vault.screening.screen import EVERYWHERE
from vault.screening.texts import Texts, find_places
from vault.store.files import file_read
from vault.store.rewordings import ProposalTexts, texts_open, texts_seal
from vault.store.selectors import WITH_FILE, file_open
from vault.store.subscriptions import subscription_locate, subscription_target
from vault.vocabulary import ContractState, ProposalState

LONGEST_REASON = 500
LONGEST_TEXT = 32_000
ANSWERS_SHOWN_FOR = timedelta(days=7)


class Side(StrEnum):
    SENT = "sent"
    RECEIVED = "received"


@dataclass(frozen=True)
class ProposalDraft:
    """A proposal to send. memory_id: of the installed memory; text: its whole new wording."""

    memory_id: UUID
    text: str = field(repr=False)
    reason: str = field(repr=False)


@dataclass(frozen=True)
class Proposal:
    row: PackProposal
    texts: ProposalTexts = field(repr=False)

    @property
    def side(self) -> Side:
        return Side.RECEIVED if self.row.source_id else Side.SENT


def proposal_create(*, actor: Actor, subscription_id: UUID, draft: ProposalDraft) -> Proposal:
    """Propose another wording of an installed memory to its publisher. Texts with personal data or secrets are refused.

    Raises NotFound; Forbidden; Invalid; Conflict; PiiUnavailable. Writes: PackProposal, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        subscription = subscription_locate(actor, subscription_id)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(subscription))
        if subscription.state != ContractState.ACTIVE:
            raise Conflict(f"The subscription is {subscription.state}.")
        memories = PackMemory.objects.filter(tenant_id=actor.tenant_id, subscription=subscription)
        memory = memories.filter(cube_id=draft.memory_id).first()
        if memory is None:
            raise NotFound
        _check_draft(draft)
        if _rows(actor, subscription.publication_id).filter(key=memory.key, state=ProposalState.OPEN).exists():
            raise Conflict("Your organisation's proposal for this memory waits for an answer.")
        row = _proposal(actor, subscription, memory)
        texts = ProposalTexts(draft.text.strip(), draft.reason.strip())
        row.sealed = texts_seal(row, texts)
        row.save(force_insert=True)
        row.refresh_from_db(fields=["created_at"])
        record(actor=actor, verb=Verb.PROPOSAL_CREATED, object_type="proposal", object_ids=[row.id])
        payload = {"proposal": str(row.id), "publisher": str(subscription.publisher_id)}
        emit(actor=actor, topic=Topic.STORE_PROPOSED, payload=payload)
    return Proposal(row, texts)


def proposals_list(*, actor: Actor, side: Side, pages: Pages, state: ProposalState | None = None) -> list[Proposal]:
    """Return sent or received proposals, newest first. Raises Forbidden; KeyUnavailable. Writes: AuditEntry."""
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        rows = PackProposal.objects.filter(tenant_id=actor.tenant_id, source_id__isnull=side is Side.SENT)
        page = list(pages.take((rows.filter(state=state) if state else rows).order_by("-id")))
        ids = [row.id for row in page]
        record(actor=actor, verb=Verb.PROPOSAL_LISTED, object_type="proposal", object_ids=ids)
        return [Proposal(row, texts_open(row)) for row in page]


def answered_proposals_list(*, actor: Actor, pages: Pages) -> list[Proposal]:
    """Return the sent proposals answered within ANSWERS_SHOWN_FOR. Raises Forbidden; KeyUnavailable.

    Writes: AuditEntry.
    """
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        rows = PackProposal.objects.filter(tenant_id=actor.tenant_id, source_id=None)
        page = list(pages.take(rows.filter(decided_at__gte=database_now() - ANSWERS_SHOWN_FOR).order_by("-id")))
        ids = [row.id for row in page]
        record(actor=actor, verb=Verb.PROPOSAL_LISTED, object_type="proposal", object_ids=ids)
        return [Proposal(row, texts_open(row)) for row in page]


def proposal_accept(*, actor: Actor, proposal_id: UUID) -> Proposal:
    """Accept the proposed wording for the next version of the pack. The publisher's own memory stays unchanged.

    Raises NotFound; Forbidden; Conflict if it was decided already. Writes: PackProposal, AuditEntry, OutboxEvent.
    """
    return _decide_proposal(actor, proposal_id, ProposalState.ACCEPTED, "")


def proposal_decline(*, actor: Actor, proposal_id: UUID, reason: str) -> Proposal:
    """Decline a proposal, with a reason that its subscriber reads.

    Raises NotFound; Forbidden; Invalid; Conflict if it was decided already. Writes: PackProposal, AuditEntry,
    OutboxEvent.
    """
    return _decide_proposal(actor, proposal_id, ProposalState.DECLINED, reason.strip())


def proposal_ask(*, actor: Actor, proposal_id: UUID) -> None:
    """Check that the actor may decide a received proposal, except for its state. Raises NotFound; Forbidden."""
    with acting(actor):
        row = _locate_received(actor, proposal_id)
        authorize(actor, Permission.STORE_MANAGE, _target(row))


def proposals_deliver(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Deliver new proposals to their publishers. A proposal that arrives twice is written once.

    Writes, in each publisher's tenant: PackProposal, AuditEntry.
    """
    authorize(actor, Permission.STORE_MANAGE)
    for proposal, publisher in sorted({(str(payload["proposal"]), str(payload["publisher"])) for payload in payloads}):
        with acting(actor):
            row = PackProposal.objects.filter(tenant_id=actor.tenant_id, id=UUID(proposal), source_id=None).first()
            organisation = Tenant.objects.get(id=actor.tenant_id).name
        if row is not None:
            there = system_actor(tenant_id=UUID(publisher), request_id=actor.request_id)
            with acting(there):
                _store_received(there, row, texts_open(row), organisation)
    return lambda: None


def answers_deliver(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Deliver the publisher's decisions to the subscribers who proposed.

    Writes, in each subscriber's tenant: PackProposal, AuditEntry.
    """
    authorize(actor, Permission.STORE_MANAGE)
    for proposal_id in sorted({UUID(str(payload["proposal"])) for payload in payloads}):
        with acting(actor):
            row = PackProposal.objects.filter(tenant_id=actor.tenant_id, id=proposal_id).first()
        if row is not None and row.source_tenant is not None:
            there = system_actor(tenant_id=row.source_tenant, request_id=actor.request_id)
            with acting(there):
                _store_answer(there, row, texts_open(row).answer)
    return lambda: None


def _check_draft(draft: ProposalDraft) -> None:
    """Check the draft. Raises Invalid; PiiUnavailable."""
    for name, text, longest in (("content", draft.text, LONGEST_TEXT), ("reason", draft.reason, LONGEST_REASON)):
        if not 1 <= len(text.strip()) <= longest or "\x00" in text:
            raise Invalid(errors=[FieldError(name, f"1 to {longest} characters, and no NUL")])
        try:
            places = find_places(detector(), Texts(text), EVERYWHERE)
        except DetectorFailed as failure:
            raise PiiUnavailable("The proposal was not sent: its text could not be checked.") from failure
        if places:
            raise Invalid(
                errors=[FieldError(name, "holds personal data or a secret, and would leave your organisation")]
            )


def _proposal(actor: Actor, subscription: Subscription, memory: PackMemory) -> PackProposal:
    return PackProposal(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        publication_id=subscription.publication_id,
        pack=subscription.name,
        key=memory.key,
        number=subscription.number,
        member_id=actor.member_id,
        organisation=subscription.publisher,
        state=ProposalState.OPEN,
    )


def _rows(actor: Actor, publication_id: UUID) -> QuerySet[PackProposal]:
    return PackProposal.objects.filter(tenant_id=actor.tenant_id, publication_id=publication_id, source_id=None)


def _target(row: PackProposal) -> Target:
    return Target("proposal", row.id, row.tenant_id)


def _locate_received(actor: Actor, proposal_id: UUID) -> PackProposal:
    rows = PackProposal.objects.filter(tenant_id=actor.tenant_id, id=proposal_id, source_id__isnull=False)
    row = rows.select_for_update().first()
    if row is None:
        raise NotFound
    return row


def _decide_proposal(actor: Actor, proposal_id: UUID, state: ProposalState, answer: str) -> Proposal:
    with acting(actor):
        row = _locate_received(actor, proposal_id)
        authorize(actor, Permission.STORE_MANAGE, _target(row))
        if row.state != ProposalState.OPEN:
            raise Conflict(f"The proposal is {row.state}.")
        if state is ProposalState.DECLINED and not 1 <= len(answer) <= LONGEST_REASON:
            raise Invalid(errors=[FieldError("reason", f"1 to {LONGEST_REASON} characters")])
        texts = replace(texts_open(row), answer=answer)
        row.state, row.decided_at, row.sealed = state, Now(), texts_seal(row, texts)
        row.save(update_fields=["state", "decided_at", "sealed"])
        row.refresh_from_db(fields=["decided_at"])
        verb = Verb.PROPOSAL_ACCEPTED if state is ProposalState.ACCEPTED else Verb.PROPOSAL_DECLINED
        record(actor=actor, verb=verb, object_type="proposal", object_ids=[row.id])
        emit(actor=actor, topic=Topic.STORE_ANSWERED, payload={"proposal": str(row.id)})
    return Proposal(row, texts)


def _store_received(publisher: Actor, sent: PackProposal, texts: ProposalTexts, organisation: str) -> None:
    """Write the publisher's row, with the wording in the publisher's file of that version."""
    publication = Publication.objects.filter(tenant_id=publisher.tenant_id, id=sent.publication_id).first()
    if publication is None or PackProposal.objects.filter(tenant_id=publisher.tenant_id, source_id=sent.id).exists():
        return
    row = PackProposal(
        id=uuid7(),
        tenant_id=publisher.tenant_id,
        source_id=sent.id,
        source_tenant=sent.tenant_id,
        organisation=organisation,
        state=ProposalState.OPEN,
        **{name: getattr(sent, name) for name in ("publication_id", "pack", "key", "number")},
    )
    row.sealed = texts_seal(row, replace(texts, before=_find_wording(publication, sent)))
    row.save(force_insert=True)
    record(actor=publisher, verb=Verb.PROPOSAL_CREATED, object_type="proposal", object_ids=[row.id])


def _find_wording(publication: Publication, sent: PackProposal) -> str:
    """Return the text of the memory in the subscriber's version; empty if that version was erased."""
    version = PackVersion.objects.filter(pack_id=publication.pack_id, number=sent.number, state__in=WITH_FILE).first()
    if version is None or not version.sealed:
        return ""
    return next((item.content for item in file_read(file_open(version)).items if item.id == sent.key), "")


def _store_answer(subscriber: Actor, decided: PackProposal, answer: str) -> None:
    rows = PackProposal.objects.select_for_update().filter(tenant_id=subscriber.tenant_id, source_id=None)
    row = rows.filter(id__in=[decided.source_id]).first()
    if row is None or row.state != ProposalState.OPEN:
        return
    row.state, row.decided_at = decided.state, decided.decided_at
    row.sealed = texts_seal(row, replace(texts_open(row), answer=answer))
    row.save(update_fields=["state", "decided_at", "sealed"])
    verb = Verb.PROPOSAL_ACCEPTED if row.state == ProposalState.ACCEPTED else Verb.PROPOSAL_DECLINED
    record(actor=subscriber, verb=verb, object_type="proposal", object_ids=[row.id])
