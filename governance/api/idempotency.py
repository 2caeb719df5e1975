"""Idempotency-Key on POST: the same body gets the same stored reply; the key commits with its effect."""

import json
from collections.abc import Callable

from rest_framework.request import Request
from rest_framework.response import Response

from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply, reply_alone, reply_store, reply_stored
from governance.keys.services import token_maker

LONGEST_KEY = 255

Commit = Callable[[Reply], None]
"""Stores the reply; to be used inside the transaction of its effect."""


def idempotent(
    request: Request,
    actor: Actor,
    call: Callable[[Commit], Reply],
    ask: Callable[[], object],
    reader: Callable[[], Actor] | None,
) -> Response:
    """Run `call` once for each Idempotency-Key of this principal.

    `call` gets `commit`, which it must use inside the transaction of its effect, and returns its reply. `ask` raises
    what stands against the call itself (NotFound, Forbidden): before a bad key is told, and before a reply is repeated.
    `reader`: as whom the actor reads what the reply shows, if not as itself.
    Raises Forbidden (the stored reply shows what may not be read now), Invalid (a bad key), KeyReused (another body),
    InFlight (being answered right now).
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return _response(call(lambda reply: None))
    ask()
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise Invalid(errors=[FieldError("Idempotency-Key", f"1 to {LONGEST_KEY} printable characters")])
    fingerprint = _fingerprint(request, actor)
    with reply_alone(actor=actor, key=key):
        stored = reply_stored(actor=actor, key=key, fingerprint=fingerprint, reader=reader)
        if stored is not None:
            return _response(stored)
        return _response(call(lambda reply: reply_store(actor=actor, key=key, fingerprint=fingerprint, reply=reply)))


def _response(reply: Reply) -> Response:
    return Response(reply.body, status=reply.status)


def _fingerprint(request: Request, actor: Actor) -> bytes:
    """Keyed, so that nobody who reads the table can try out what a body was."""
    body = json.dumps(request.data, sort_keys=True, default=str)
    return token_maker(actor.tenant_id).hash(f"{request.method} {request.get_full_path()}\n{body}")
