"""Traces a leaked text to the subscriber whose copy it comes from, and exports a subscriber's copy as a file."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid
from governance.vocabulary import Permission, Verb
from vault.models import Contract, PackVersion
from vault.store.contracts import contract_locate, contract_target
from vault.store.files import file_copy, file_read
from vault.store.leaks import Match, find_bits, merge_bits, rank_matches
from vault.store.lookup import pack_locate, pack_target
from vault.store.selectors import file_open
from vault.store.wordings import has_second, items_personalise, wordings_open

LONGEST_LEAK = 1_000_000  # characters
MOST_CANDIDATES = 1_000


@dataclass(frozen=True)
class Candidate:
    """A subscriber, with the match of its copy and the text. state: of its latest contract."""

    subscriber: str
    state: str
    match: Match


@dataclass(frozen=True)
class Trace:
    """The result of a trace. marked: marked sentences of all versions; compared: those in the text.

    candidates: the most likely first.
    """

    marked: int
    compared: int
    candidates: tuple[Candidate, ...]


def leak_trace(*, actor: Actor, pack_id: UUID, text: str) -> Trace:
    """Compare a text with the copies of all past and present subscribers. Nothing of the text is stored.

    Raises NotFound; Forbidden; Invalid; KeyUnavailable. Writes: AuditEntry.
    """
    with acting(actor):
        pack = pack_locate(actor, pack_id)
        authorize(actor, Permission.STORE_MANAGE, pack_target(pack))
        if not text.strip() or len(text) > LONGEST_LEAK:
            raise Invalid(errors=[FieldError("text", f"1 to {LONGEST_LEAK} characters")])
        versions = PackVersion.objects.filter(tenant_id=actor.tenant_id, pack=pack).exclude(wordings=b"")
        wordings = [wordings_open(row) for row in versions.defer("sealed").order_by("parts")]
        contracts = list(_contracts(actor, pack_id))
        record(actor=actor, verb=Verb.PACK_READ, object_type="pack", object_ids=[pack.id], detail={"leak": True})
    bits = merge_bits(find_bits(text, marked) for marked in wordings)
    latest = {contract.subscriber_id: contract for contract in contracts}  # in order of time
    copies = {
        subscriber_id: {key: has_second(actor.tenant_id, subscriber_id, key) for key in bits}
        for subscriber_id in list(latest)[-MOST_CANDIDATES:]
    }
    found = [
        Candidate(latest[match.recipient_id].subscriber, latest[match.recipient_id].state, match)
        for match in rank_matches(bits, copies)
    ]
    return Trace(len({key for marked in wordings for key in marked}), len(bits), tuple(found))


def contract_file(*, actor: Actor, contract_id: UUID) -> tuple[str, bytes]:
    """Return the name and the signed file of a subscriber's installed version, with that subscriber's wordings.

    Raises NotFound; Forbidden; Conflict; KeyUnavailable. Writes: AuditEntry.
    """
    with acting(actor):
        contract = contract_locate(actor, contract_id)
        authorize(actor, Permission.STORE_MANAGE, contract_target(contract))
        pack = contract.publication.pack
        version = PackVersion.objects.filter(pack=pack, number=contract.number).first()
        if version is None:
            raise Conflict("The subscriber has no version installed.")
        file = file_read(file_open(version))
        record(actor=actor, verb=Verb.PACK_VERSION_READ, object_type="pack_version", object_ids=[version.id])
        items = items_personalise(version, file.items, contract.subscriber_id)
    return f"{pack.name}-{version.number}.mempack", file_copy(file, items)


def _contracts(actor: Actor, pack_id: UUID) -> QuerySet[Contract]:
    return Contract.objects.filter(tenant_id=actor.tenant_id, publication__pack_id=pack_id).order_by("id")
