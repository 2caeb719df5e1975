"""Server-sent events of a turn: what the services yield in a thread, sent as it comes."""

import json
import logging
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from django.http import StreamingHttpResponse

from governance.errors import DomainError, Unavailable
from vault.chat.services import TurnEvent

Encode = Callable[[TurnEvent], tuple[str, Mapping[str, Any]]]  # the event's name, and its data
logger = logging.getLogger(__name__)


class EventStream(AsyncIterator[bytes]):
    """`event: name`, `data: json`, for each of `events`; a failure on the way is one last `error` {code, detail}.

    Each step runs in the request's own thread, and so does `close`, which Django calls when the response ends or the
    reader has gone away: a step that still runs is waited for, and the events then learn that nobody listens.
    """

    def __init__(self, events: Iterator[TurnEvent], encode: Encode) -> None:
        self._events = events
        self._encode = encode
        self._failed = False

    async def __anext__(self) -> bytes:
        block = await sync_to_async(self._step, thread_sensitive=True)()
        if block is None:
            raise StopAsyncIteration
        return block

    def close(self) -> None:
        if isinstance(self._events, Generator):
            self._events.close()

    def _step(self) -> bytes | None:
        if self._failed:
            return None
        try:
            event = next(self._events, None)
        except DomainError as failure:
            return self._failure(failure)
        except (OperationalError, InterfaceError) as error:
            logger.warning("the database does not answer: %s", type(error).__name__)
            return self._failure(Unavailable("The database does not answer."))
        return None if event is None else _block(*self._encode(event))

    def _failure(self, failure: DomainError) -> bytes:
        self._failed = True
        return _block("error", {"code": failure.code, "detail": failure.detail})


def event_stream(events: Iterator[TurnEvent], encode: Encode) -> EventStream:
    """The body of a streamed answer."""
    return EventStream(events, encode)


def event_response(events: Iterator[TurnEvent], encode: Encode) -> StreamingHttpResponse:
    """The whole answer, with the headers that keep proxies from holding it back."""
    return StreamingHttpResponse(
        event_stream(events, encode),
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def _block(name: str, data: Mapping[str, Any]) -> bytes:
    """JSON has no bare line break, so one data line holds it."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
