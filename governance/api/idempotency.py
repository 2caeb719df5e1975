"""Idempotency-Key on POST: the same body gets the same stored reply; the key commits with its effect."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rest_framework.request import Request
from rest_framework.response import Response

from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply, find_reply, reply_lock, reply_store
from governance.keys.services import token_maker

LONGEST_KEY = 255


class Once:
    """The response to a POST. `reply`: the stored response if the call is repeated; else None until `store`."""

    def __init__(self, actor: Actor, key: str = "", fingerprint: bytes = b"", reply: Reply | None = None) -> None:
        self.reply = reply
        self._actor = actor
        self._key = key
        self._fingerprint = fingerprint

    def store(self, reply: Reply) -> None:
        """Answer with `reply`, and store it for a repeated call; use inside the transaction of its effect."""
        if self._key:
            reply_store(actor=self._actor, key=self._key, fingerprint=self._fingerprint, reply=reply)
        self.reply = reply

    def response(self) -> Response:
        assert self.reply is not None, "a POST stores its reply"
        return Response(self.reply.body, status=self.reply.status)


@contextmanager
def once(
    request: Request, actor: Actor, *, ask: Callable[[], object], reader: Callable[[], Actor] | None
) -> Iterator[Once]:
    """Look up the stored response of the request's Idempotency-Key, and lock the key while the request is answered.

    ask: raises the errors of the call (NotFound, Forbidden), which come before the error of a bad key and before a
    stored response. reader: returns the actor who must be able to read the memories of the response, if it is another
    one. Raises Forbidden (the actor may no longer read what the stored response shows), Invalid (a bad key), KeyReused
    (another body), InFlight (the first call is still running).
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        yield Once(actor)
        return
    ask()
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise Invalid(errors=[FieldError("Idempotency-Key", f"1 to {LONGEST_KEY} printable characters")])
    fingerprint = _fingerprint(request, actor)
    with reply_lock(actor=actor, key=key):
        as_whom = reader() if reader else actor
        stored = find_reply(actor=actor, key=key, fingerprint=fingerprint, reader=as_whom)
        yield Once(actor, key, fingerprint, stored)


def _fingerprint(request: Request, actor: Actor) -> bytes:
    """Return a keyed hash of the request: a reader of the table cannot test guesses of a body."""
    body = json.dumps(request.data, sort_keys=True, default=str)
    return token_maker(actor.tenant_id).hash(f"{request.method} {request.get_full_path()}\n{body}")
