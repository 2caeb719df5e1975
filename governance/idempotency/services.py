"""Idempotency records: stored responses of a POST that may be repeated. Each commits with the effect of its POST.

The caller checks the permission of the call first, for a repeated response as for a new one.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, hold_free_lock
from governance.errors import Forbidden, InFlight, KeyReused, Unavailable
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.models import IdempotencyKey
from governance.vocabulary import Permission, Verb

Closed = Callable[[Actor, Collection[UUID]], bool]
"""Whether one of these objects is there and closed to the actor now; ids of other kinds do not count. One query."""
_closed: list[Closed] = []


@dataclass(frozen=True)
class Reply:
    """The response of a POST: its status and JSON body. `shows`: the objects whose content is in the body."""

    status: int
    body: Any = field(repr=False)
    shows: tuple[UUID, ...] = ()


def register_closed_check(closed: Closed) -> None:
    """Register the check of a package whose objects appear in stored responses."""
    _closed.append(closed)


@contextmanager
def reply_lock(*, actor: Actor, key: str) -> Iterator[None]:
    """Let one request at a time use a key. A killed process leaves no lock behind. Raises InFlight."""
    name = f"{actor.tenant_id}/{actor.principal_id}/{key}"
    with hold_free_lock([name]) as held:
        if held is None:
            raise InFlight
        yield


def find_reply(*, actor: Actor, key: str, fingerprint: bytes, reader: Actor) -> Reply | None:
    """Return the stored response of this principal's key, or None. `reader`: the actor that reads the response.

    If the reader has lost a right since, by a revoked grant, a move or a policy, the response is refused, and the call
    is not repeated either. Raises KeyReused (the key came with another request); Forbidden (the response shows an
    object that the reader may no longer read); Unavailable. Writes: AuditEntry; deletes an expired IdempotencyKey.
    """
    with acting(actor):
        found = IdempotencyKey.objects.filter(principal_id=actor.principal_id, key=key)
        found.filter(created_at__lt=Now() - timedelta(hours=settings.IDEMPOTENCY_HOURS)).delete()
        row = found.first()
        if row is None:
            return None
        if bytes(row.request_hash) != fingerprint:
            raise KeyReused
        _refuse_closed(reader, row.object_ids)
        # The reply may hold content: to send it again is a read of that content.
        record(actor=actor, verb=Verb.REPLY_REPEATED, object_type="idempotency_key", object_ids=[row.id])
    plaintext = open_sealed(tenant_id=actor.tenant_id, place=_sealing_context(actor, key), blob=row.sealed_reply)
    if plaintext is None:
        raise Unavailable("The stored reply can no longer be opened.")
    return Reply(status=row.status, body=json.loads(plaintext), shows=tuple(row.object_ids))


def reply_store(*, actor: Actor, key: str, fingerprint: bytes, reply: Reply) -> None:
    """Store `reply` in the caller's transaction. Raises KeyUnavailable. Writes: IdempotencyKey."""
    sealed = seal_for(
        tenant_id=actor.tenant_id,
        scope=GENERAL,
        place=_sealing_context(actor, key),
        plaintext=json.dumps(reply.body, default=str).encode(),
    )
    row = IdempotencyKey(
        tenant_id=actor.tenant_id,
        principal_id=actor.principal_id,
        key=key,
        request_hash=fingerprint,
        status=reply.status,
        sealed_reply=sealed,
        object_ids=list(reply.shows),
    )
    IdempotencyKey.objects.bulk_create([row])


def replies_forget(*, actor: Actor, object_ids: Sequence[UUID]) -> int:
    """Delete the tenant's stored responses that show one of `object_ids`, in the transaction that hides or erases them.

    The caller has checked the permission. Return the number of deleted responses. Scans the tenant's responses of one
    day, because row-level security prevents the use of an array index.
    """
    with acting(actor):
        removed, _ = IdempotencyKey.objects.filter(object_ids__overlap=list(object_ids)).delete()
    return removed


def _refuse_closed(reader: Actor, shows: Sequence[UUID]) -> None:
    if shows and any(closed(reader, shows) for closed in _closed):
        raise Forbidden(
            "This was done before, and its reply shows what you may not read now.",
            permission=Permission.MEMORY_READ,
            rule="reply_closed",
        )


def _sealing_context(actor: Actor, key: str) -> bytes:
    return b"idempotency" + actor.principal_id.bytes + key.encode()
