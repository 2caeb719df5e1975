"""Rewordings that subscribers proposed and the publisher accepted. The next build of the pack uses them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.vocabulary import Permission
from vault.models import PackProposal, Publication
from vault.vocabulary import ProposalState


@dataclass(frozen=True)
class ProposalTexts:
    """The texts of a proposal. before: the pack's wording, on the publisher's side only; text: the proposed wording;
    answer: the reason of a refusal."""

    text: str = field(repr=False)
    reason: str = field(repr=False)
    before: str = field(default="", repr=False)
    answer: str = field(default="", repr=False)


@dataclass(frozen=True)
class Rewording:
    """A wording of a memory, and the accepted wording that replaces it."""

    before: str = field(repr=False)
    after: str = field(repr=False)


Rewordings = Mapping[UUID, tuple[Rewording, ...]]


def rewordings_of(*, actor: Actor, pack_id: UUID) -> Rewordings:
    """Return the accepted rewordings of a pack by memory id, in the order of acceptance. Raises Forbidden."""
    authorize(actor, Permission.STORE_MANAGE, Target("pack", pack_id, actor.tenant_id))
    found: dict[UUID, tuple[Rewording, ...]] = {}
    with acting(actor):
        publications = Publication.objects.filter(tenant_id=actor.tenant_id, pack_id=pack_id).values("id")
        rows = PackProposal.objects.filter(tenant_id=actor.tenant_id, publication_id__in=publications)
        accepted = rows.filter(state=ProposalState.ACCEPTED, source_id__isnull=False)
        for row in accepted.order_by("decided_at", "id"):
            texts = texts_open(row)
            found[row.key] = (*found.get(row.key, ()), Rewording(texts.before, texts.text))
    return found


def rewordings_apply(text: str, rewordings: tuple[Rewording, ...]) -> str:
    """Apply the accepted rewordings to a text, in order. A rewording of another original text is skipped."""
    for rewording in rewordings:
        if text == rewording.before:
            text = rewording.after
    return text


def texts_seal(row: PackProposal, texts: ProposalTexts) -> bytes:
    """Seal the texts. Raises KeyUnavailable."""
    plaintext = json.dumps(asdict(texts), ensure_ascii=False).encode()
    return seal_for(tenant_id=row.tenant_id, scope=GENERAL, place=_encryption_context(row), plaintext=plaintext)


def texts_open(row: PackProposal) -> ProposalTexts:
    """Decrypt the texts of a proposal; they are empty once their key was destroyed. Raises KeyUnavailable."""
    plaintext = open_sealed(tenant_id=row.tenant_id, place=_encryption_context(row), blob=row.sealed)
    return ProposalTexts(**json.loads(plaintext)) if plaintext else ProposalTexts("", "")


def _encryption_context(row: PackProposal) -> bytes:
    return b"proposal" + row.id.bytes
