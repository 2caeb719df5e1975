"""Idempotency-Key on POST: the same body gets the same stored reply; the key commits with its effect."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from rest_framework.request import Request
from rest_framework.response import Response

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, InFlight, Invalid, KeyReused, Unavailable
from governance.keys.services import GENERAL, open_sealed, seal_for, token_maker
from governance.models import IdempotencyKey
from governance.vocabulary import Verb

LONGEST_KEY = 255


@dataclass(frozen=True)
class Reply:
    """What a POST answered: its status and JSON body."""

    status: int
    body: Any


def idempotent(request: Request, actor: Actor, call: Callable[[Callable[[Reply], None]], Reply]) -> Response:
    """Run `call` once for each Idempotency-Key of this principal.

    `call` gets `commit`, which it must use inside the transaction of its effect, and returns its reply.
    Raises Invalid (a bad key), KeyReused (another body), InFlight (being answered right now).
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return _response(call(lambda reply: None))
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise Invalid(errors=[FieldError("Idempotency-Key", f"1 to {LONGEST_KEY} printable characters")])
    fingerprint = _fingerprint(request, actor)
    with _alone(actor, key):
        stored = _stored(actor, key, fingerprint)
        if stored is not None:
            return _response(stored)
        return _response(call(lambda reply: _store(actor, key, fingerprint, reply)))


def _response(reply: Reply) -> Response:
    return Response(reply.body, status=reply.status)


def _fingerprint(request: Request, actor: Actor) -> bytes:
    """Keyed, so that nobody who reads the table can try out what a body was."""
    body = json.dumps(request.data, sort_keys=True, default=str)
    return token_maker(actor.tenant_id).hash(f"{request.method} {request.get_full_path()}\n{body}")


@contextmanager
def _alone(actor: Actor, key: str) -> Iterator[None]:
    """A lock of the connection, not of a transaction: a killed process leaves neither lock nor key behind."""
    name = f"{actor.tenant_id}/{actor.principal_id}/{key}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 1))", [name])
        if not cursor.fetchone()[0]:
            raise InFlight
    try:
        yield
    finally:
        if connection.connection is not None and not connection.connection.closed:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 1))", [name])


def _stored(actor: Actor, key: str, fingerprint: bytes) -> Reply | None:
    with acting(actor):
        found = IdempotencyKey.objects.filter(principal_id=actor.principal_id, key=key)
        found.filter(created_at__lt=Now() - timedelta(hours=settings.IDEMPOTENCY_HOURS)).delete()
        row = found.first()
        if row is None:
            return None
        if bytes(row.request_hash) != fingerprint:
            raise KeyReused
        # The reply may hold content: telling it again is a read like any other.
        record(actor=actor, verb=Verb.REPLY_REPEATED, object_type="idempotency_key", object_ids=[row.id])
    plaintext = open_sealed(tenant_id=actor.tenant_id, place=_place(actor, key), blob=row.sealed_reply)
    if plaintext is None:
        raise Unavailable("The stored reply can no longer be opened.")
    return Reply(status=row.status, body=json.loads(plaintext))


def _store(actor: Actor, key: str, fingerprint: bytes, reply: Reply) -> None:
    sealed = seal_for(
        tenant_id=actor.tenant_id,
        scope=GENERAL,
        place=_place(actor, key),
        plaintext=json.dumps(reply.body, default=str).encode(),
    )
    IdempotencyKey.objects.bulk_create(
        [
            IdempotencyKey(
                tenant_id=actor.tenant_id,
                principal_id=actor.principal_id,
                key=key,
                request_hash=fingerprint,
                status=reply.status,
                sealed_reply=sealed,
            )
        ]
    )


def _place(actor: Actor, key: str) -> bytes:
    return b"idempotency" + actor.principal_id.bytes + key.encode()
