"""Reads bodies of requests: bounded before they are read, in memory alone, never in a file."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestAborted

from governance.errors import TooLarge
from memos_web.slots import Busy

DISCARDED_BYTES = 1024 * 1024  # of a refused body: who sends a little too much still reads the refusal
DISCARDED_SECONDS = 2.0
MOST_HELD_BYTES = 128 * 1024 * 1024  # of all large bodies that a process holds at once, and half of it of one caller
Receive = Callable[[], Awaitable[dict[str, Any]]]


class HeldBodies:
    """Counts the bytes of the large bodies in memory, for each caller. Used in one event loop."""

    def __init__(self, most: int = MOST_HELD_BYTES) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    def hold(self, caller: str, size: int) -> None:
        """Count the bytes of a body that is held in memory. Raises Busy if there is no room for so many."""
        if self._held.total() + size > self._most or self._held[caller] + size > self._most // 2:
            raise Busy
        self._held[caller] += size

    def release(self, caller: str, size: int) -> None:
        self._held[caller] -= size
        self._held += Counter()  # forgets those who hold nothing


async def read_body(
    scope: Any, receive: Receive, limit_of_caller: Callable[[], Awaitable[int]], hold: Callable[[int], None]
) -> BytesIO:
    """Read the body. What is longer than anybody may send is read only once `limit_of_caller` says how much they may.

    Before that, `hold` is told how many bytes the body has at most. Raises TooLarge; RequestAborted when the client
    goes; what `limit_of_caller` and `hold` raise.
    """
    limit = settings.BODY_BYTES_UNAUTHENTICATED
    body, announced, is_asked, is_held = BytesIO(), _read_content_length(scope), False, False
    while True:
        if max(announced, body.tell()) > limit and not is_asked:
            limit, is_asked = await limit_of_caller(), True
        if max(announced, body.tell()) > limit:
            await _discard(scope, receive)
            raise TooLarge(_detail(limit))
        if is_asked and not is_held:
            hold(announced or limit)
            is_held = True
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestAborted
        body.write(message.get("body", b""))
        if not message.get("more_body", False) and body.tell() <= limit:
            body.seek(0)
            return body


def add_length(scope: Any, body: BytesIO) -> Any:
    """The scope with the length of a body that came in chunks: REST framework takes a body without one for empty."""
    if any(name == b"content-length" for name, _ in scope["headers"]) or not body.getbuffer().nbytes:
        return scope
    return {**scope, "headers": [*scope["headers"], (b"content-length", str(body.getbuffer().nbytes).encode())]}


def _read_content_length(scope: Any) -> int:
    """Return the value of Content-Length; 0 without one."""
    lengths = [int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    return max(lengths, default=0)


def _detail(limit: int) -> str:
    if limit > settings.BODY_BYTES_UNAUTHENTICATED:
        return f"Send at most {limit:,} bytes to this address."
    return f"Without a valid API key or session, send at most {limit:,} bytes."


async def _discard(scope: Any, receive: Receive) -> None:
    """Read on for a moment, so that a sender who reads no answer before the end of the body gets the refusal."""
    if any(name == b"expect" for name, _ in scope["headers"]):
        return  # this sender waits for the answer
    left = DISCARDED_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARDED_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
