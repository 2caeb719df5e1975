"""A bound on what runs at once, with a short queue before it."""

import asyncio
import json
from typing import Any

RETRY_SECONDS = 2  # what Retry-After says
BUSY = "The server is busy. Try again in a few seconds."


class Busy(Exception):
    """The queue is full, or its longest wait is over."""


class Slots:
    """`most` run at once; `queue` more wait for up to `seconds`. Used in one event loop."""

    def __init__(self, most: int, *, queue: int = 0, seconds: float = 0.0) -> None:
        self._free = asyncio.Semaphore(most)
        self._queue = queue
        self._seconds = seconds
        self._waiting = 0

    async def take(self) -> None:
        """Raises Busy."""
        if self._free.locked() and self._waiting >= self._queue:
            raise Busy
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds if self._free.locked() else None):
                await self._free.acquire()
        except TimeoutError as error:
            raise Busy from error
        finally:
            self._waiting -= 1

    def give(self) -> None:
        self._free.release()


async def send_busy(scope: Any, send: Any) -> None:
    """503 with Retry-After, made without a thread: there is none to spare."""
    is_api = scope["path"].startswith("/api/")
    kind = "application/problem+json" if is_api else "text/plain; charset=utf-8"
    body = json.dumps(_problem()) if is_api else BUSY
    headers = [(b"content-type", kind.encode()), (b"retry-after", str(RETRY_SECONDS).encode())]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def _problem() -> dict[str, Any]:
    return {
        "type": "urn:memos:problem:busy",
        "title": "Too many requests at once",
        "status": 503,
        "detail": BUSY,
        "code": "busy",
    }
