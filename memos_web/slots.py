"""A bound on the requests at work, in all and of each caller, and a short wait before it."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

RETRY_SECONDS = 2  # what Retry-After says
QUICK_SECONDS = 1.0  # a request at work for longer waits for something, a model say, and needs no processor
BUSY = "The server is busy. Try again in a few seconds."


class Busy(Exception):
    """Too many wait, or the longest wait is over."""


@dataclass(eq=False)
class Slot:
    """The slot of one running request, which is quick until QUICK_SECONDS are over."""

    caller: str
    is_quick: bool = True


@dataclass(frozen=True, eq=False)
class _Waiter:
    caller: str
    quick: int
    slot: "asyncio.Future[Slot]"


class Slots:
    """`most` run at once, of one caller `each`; `queue` more of each caller wait for up to `seconds`.

    Used in one event loop. Of those who wait the first begins whose caller may: a caller at its bound is passed over.
    """

    def __init__(self, most: int, *, each: int, queue: int = 0, seconds: float = 0.0) -> None:
        self._free = most
        self._each = each
        self._queue = queue
        self._seconds = seconds
        self._at_work: Counter[str] = Counter()
        self._quick: Counter[str] = Counter()
        self._waiting: list[_Waiter] = []
        self._full_since: float | None = None

    async def take(self, caller: str, *, quick: int) -> Slot:
        """quick: the most quick requests of this caller at once, with this one. Raises Busy."""
        if self._may_begin(caller, quick):
            return self._begin(caller)
        if sum(waiter.caller == caller for waiter in self._waiting) >= self._queue:
            raise Busy
        waiter = _Waiter(caller, quick, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(self._seconds):
                return await waiter.slot
        except TimeoutError as error:
            self._remove_waiter(waiter)
            raise Busy from error
        except asyncio.CancelledError:
            self._remove_waiter(waiter)
            raise

    def full_seconds(self) -> float:
        """Return for how many seconds all slots have been taken and none given back; 0 while there is a free one."""
        return 0.0 if self._full_since is None else time.monotonic() - self._full_since

    def give(self, slot: Slot) -> None:
        """The request has ended: the next one begins."""
        self._free += 1
        self._full_since = None
        self._at_work[slot.caller] -= 1
        self._at_work += Counter()  # forgets those who have none
        self._end_quick_phase(slot)

    def _may_begin(self, caller: str, quick: int) -> bool:
        return self._free > 0 and self._at_work[caller] < self._each and self._quick[caller] < quick

    def _begin(self, caller: str) -> Slot:
        slot = Slot(caller)
        self._free -= 1
        if self._free == 0:
            self._full_since = time.monotonic()
        self._at_work[caller] += 1
        self._quick[caller] += 1
        asyncio.get_running_loop().call_later(QUICK_SECONDS, self._end_quick_phase, slot)
        return slot

    def _end_quick_phase(self, slot: Slot) -> None:
        """The request is quick no longer."""
        self._quick[slot.caller] -= slot.is_quick
        self._quick += Counter()
        slot.is_quick = False
        for waiter in tuple(self._waiting):
            if self._may_begin(waiter.caller, waiter.quick) and not waiter.slot.done():
                self._waiting.remove(waiter)
                waiter.slot.set_result(self._begin(waiter.caller))

    def _remove_waiter(self, waiter: _Waiter) -> None:
        """Remove a waiting request that ended; a slot that it was just given goes to the next."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        else:
            self.give(waiter.slot.result())


async def send_busy(scope: Any, send: Any) -> None:
    """503 with Retry-After, made without a thread: there is none to spare."""
    is_api = scope["path"].removeprefix(scope.get("root_path", "")).startswith("/api/")
    kind = "application/problem+json" if is_api else "text/plain; charset=utf-8"
    body = json.dumps(PROBLEM) if is_api else BUSY
    headers = [(b"content-type", kind.encode()), (b"retry-after", str(RETRY_SECONDS).encode())]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


PROBLEM = {
    "type": "urn:memos:problem:busy",
    "title": "Too many requests at once",
    "status": 503,
    "detail": BUSY,
    "code": "busy",
}
