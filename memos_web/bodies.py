"""Reads bodies of requests: bounded before they are read, in memory alone, never in a file."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestAborted

from governance.errors import TooLarge

DISCARDED_BYTES = 1024 * 1024  # of a refused body: who sends a little too much still reads the refusal
DISCARDED_SECONDS = 2.0
Receive = Callable[[], Awaitable[dict[str, Any]]]


async def read_body(scope: Any, receive: Receive, limit_of_caller: Callable[[], Awaitable[int]]) -> BytesIO:
    """Read the body. What is longer than anybody may send is read only once `limit_of_caller` says how much they may.

    Raises TooLarge; RequestAborted when the client goes; what `limit_of_caller` raises.
    """
    limit = settings.BODY_BYTES_UNAUTHENTICATED
    body, announced, is_asked = BytesIO(), _announced(scope), False
    while True:
        if max(announced, body.tell()) > limit and not is_asked:
            limit, is_asked = await limit_of_caller(), True
        if max(announced, body.tell()) > limit:
            await _discard(scope, receive)
            raise TooLarge(_detail(limit))
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestAborted
        body.write(message.get("body", b""))
        if not message.get("more_body", False) and body.tell() <= limit:
            body.seek(0)
            return body


def with_length(scope: Any, body: BytesIO) -> Any:
    """The scope with the length of a body that came in chunks: REST framework takes a body without one for empty."""
    if any(name == b"content-length" for name, _ in scope["headers"]) or not body.getbuffer().nbytes:
        return scope
    return {**scope, "headers": [*scope["headers"], (b"content-length", str(body.getbuffer().nbytes).encode())]}


def _announced(scope: Any) -> int:
    """What Content-Length says; 0 where nothing does."""
    sizes = [int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    return max(sizes, default=0)


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
