"""Server-sent events of a turn: services yield them in a thread, and each is sent at once."""

import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from asgiref.sync import sync_to_async
from django.db import Error
from django.http import StreamingHttpResponse

from governance.actor import Actor
from governance.denials import record_and_return_denial
from governance.errors import DomainError, Forbidden
from governance.failures import database_failure
from vault.chat.services import TurnEvent

Explain = Callable[[DomainError], str]  # returns the detail of a failure for the reader
Encode = Callable[[TurnEvent], tuple[str, Mapping[str, Any]]]  # the event's name, and its data


def failure_detail(failure: DomainError) -> str:
    """Return the detail of a failure, unchanged."""
    return failure.detail


class EventStream(AsyncIterator[bytes]):
    """Encodes `events` as server-sent events (`event: name`, `data: json`); a failure becomes a last `error` {code,
    detail}.

    A denial is recorded for `actor`. Each step runs in the request's own thread, and so does `close`, which Django
    calls at the end of the response or when the client disconnects: it waits for the running step, then closes the
    generator.
    """

    def __init__(
        self, events: Iterator[TurnEvent], encode: Encode, *, actor: Actor, path: str, explain: Explain = failure_detail
    ) -> None:
        self._events = events
        self._encode = encode
        self._actor = actor
        self._path = path
        self._explain = explain
        self._failed = False

    async def __anext__(self) -> bytes:
        block = await sync_to_async(self._next_event, thread_sensitive=True)()
        if block is None:
            raise StopAsyncIteration
        return block

    def close(self) -> None:
        if isinstance(self._events, Generator):
            self._events.close()

    def _next_event(self) -> bytes | None:
        if self._failed:
            return None
        try:
            event = next(self._events, None)
        except DomainError as failure:
            return self._encode_failure(failure)
        except Error as error:
            known = database_failure(error)
            if known is None:
                raise
            return self._encode_failure(known)
        return None if event is None else _encode_event(*self._encode(event))

    def _encode_failure(self, failure: DomainError) -> bytes:
        self._failed = True
        if isinstance(failure, Forbidden):
            failure = record_and_return_denial(actor=self._actor, denial=failure, path=self._path)
        return _encode_event("error", {"code": failure.code, "detail": self._explain(failure)})


def event_response(
    events: Iterator[TurnEvent], encode: Encode, *, actor: Actor, path: str, explain: Explain = failure_detail
) -> StreamingHttpResponse:
    """Return the streaming response, with headers that stop proxies from buffering. actor, path: for recorded
    denials."""
    return StreamingHttpResponse(
        EventStream(events, encode, actor=actor, path=path, explain=explain),
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def file_stream(
    blocks: Iterator[bytes], *, name: str, content_type: str, actor: Actor, path: str
) -> StreamingHttpResponse:
    """Return a file download. Each block is produced after the one before was sent; the first block is produced here.

    An error in the first block is raised here; a later denial is recorded and breaks the connection.
    """
    first = list(islice(blocks, 1))
    return StreamingHttpResponse(
        _file_blocks(chain(first, blocks), actor, path),
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


async def _file_blocks(blocks: Iterator[bytes], actor: Actor, path: str) -> AsyncIterator[bytes]:
    def step() -> bytes | None:
        try:
            return next(blocks, None)
        except Forbidden as denial:
            raise record_and_return_denial(actor=actor, denial=denial, path=path) from denial

    while (block := await sync_to_async(step, thread_sensitive=True)()) is not None:
        yield block


def _encode_event(name: str, data: Mapping[str, Any]) -> bytes:
    """Encode a server-sent event. JSON contains no line feed, so the data fits on one line."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
