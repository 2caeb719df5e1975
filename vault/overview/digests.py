"""A digest of each member's open items, mailed in the morning of their time zone if some are new.

A mail has kinds, counts and the addresses of pages, never the content of a memory.
"""

import logging
from collections.abc import Mapping, Sequence

from django.conf import settings

from governance.access.decisions.services import is_allowed
from governance.accounts.digests import DueDigest, digest_note, digests_due
from governance.accounts.mail import mail_send
from governance.actor import Actor, CallContext, system_actor
from governance.database import acting
from governance.errors import Forbidden, Unavailable
from governance.ids import uuid7
from governance.outbox.routes import AGAIN, Payload, Write
from governance.outbox.services import emit, is_asked
from governance.tenants.principals import reload_actor
from governance.tenants.selectors import me_get, tenant_ids
from governance.vocabulary import Channel, Permission, PrincipalKind, Topic
from vault.overview.attention import Attention, attention_list
from vault.overview.selectors import SOON, overview_get

MOST = 25  # members of one run
logger = logging.getLogger(__name__)


def digests_ask() -> int:
    """Request the digests of every tenant in which one is due; return the number of tenants."""
    asked = 0
    for tenant_id in tenant_ids():
        actor = system_actor(tenant_id=tenant_id, request_id=f"digest-{uuid7()}")
        with acting(actor):
            if digests_due(actor, most=1) and not is_asked(actor=actor, topic=Topic.DIGESTS_DUE, seconds=0):
                emit(actor=actor, topic=Topic.DIGESTS_DUE, payload={})
                asked += 1
    return asked


def digests_send(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Mail the due digests of the actor's tenant, each before it is recorded: a mail may come twice, but none is lost.

    If mail cannot be sent, the remaining digests stay due.
    """
    due = digests_due(actor, most=MOST)
    for digest in due:
        try:
            counts = _send_digest(actor, digest)
        except Unavailable as error:
            logger.warning("digest not sent: tenant=%s error=%s", actor.tenant_id, error.code)
            return _write_nothing
        digest_note(actor, digest, counts)
    return _repeat_later if len(due) == MOST else _write_nothing


def _send_digest(actor: Actor, due: DueDigest) -> Mapping[str, int]:
    """Mail the member's open items if some are new. Raises Unavailable."""
    try:
        member = reload_actor(
            tenant_id=actor.tenant_id,
            kind=PrincipalKind.MEMBER,
            principal_id=due.member_id,
            request_id=actor.request_id,
            context=CallContext(channel=Channel.WORKER),
        )
    except Forbidden:  # removed since then
        return {}
    waiting = _list_open_items(member)
    counts = {_item_name(item): item.count for item in waiting}
    if any(count > due.counts.get(name, 0) for name, count in counts.items()):
        tenant = " ".join(me_get(actor=member).tenant_name.split())
        context: dict[str, object] = {"waiting": waiting, "tenant": tenant, "url": settings.PUBLIC_URL}
        mail_send(actor.tenant_id, "vault/mail/digest.txt", due.email, context)
    return counts


def _list_open_items(member: Actor) -> list[Attention]:
    with acting(member):
        if not is_allowed(member, Permission.MEMORY_READ):
            return []
        return attention_list(actor=member, overview=overview_get(actor=member, days=SOON))


def _item_name(item: Attention) -> str:
    return f"{item.kind}.{item.about}" if item.about else str(item.kind)


def _write_nothing() -> None:
    """Write nothing more: each digest was recorded when it was sent."""


def _repeat_later() -> object:
    return AGAIN
