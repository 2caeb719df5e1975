"""A bound on what runs at once, and a short queue before it in which callers take turns."""

import asyncio
import json
import math
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

RETRY_SECONDS = 2  # what Retry-After says
BUSY = "The server is busy. Try again in a few seconds."
CROWD_SECONDS = 10.0  # so long after its last request, a caller may be a crowd to others
QUICK_SECONDS = 1.0  # a request at work for longer waits for something, a model say, and needs no processor
USE_SECONDS = 10.0  # in which what a caller has used counts for 1/e
CROWD_USE = 0.05 * USE_SECONDS  # seconds of use, 5 % of a processor: who has used more is a crowd between requests
MUCH = 4.0  # times what another has used
TENANT = "tenant "  # how the name of a caller begins that showed a valid credential
CHECK = "check "  # how the name of a caller begins that is a crowd to nobody: a health check


class Busy(Exception):
    """The queue is full, or its longest wait is over."""


@dataclass(frozen=True, eq=False)
class Slot:
    """The slot of one running request."""

    caller: str
    since: float


class Slots:
    """`most` run at once, of one caller `each`; `queue` more wait for up to `seconds`. Used in one event loop.

    While another caller has something at work or waiting, or has used more than a little, each has `crowded` quick
    requests at work, and none begins beside a quick one of a caller who has used much less: whoever sends many takes no
    processor from who sends few. Of those who wait, the one who has used least is next; a full queue drops the last
    request of who waits with most.
    """

    def __init__(
        self,
        most: int,
        *,
        each: int | None = None,
        crowded: int | None = None,
        queue: int = 0,
        seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free = most
        self._each = each or most
        self._crowded = crowded or most
        self._queue = queue
        self._seconds = seconds
        self._clock = clock
        self._at_work: defaultdict[str, set[Slot]] = defaultdict(set)
        self._waiting: OrderedDict[str, deque[asyncio.Future[Slot]]] = OrderedDict()  # whose turn it is comes first
        self._seen: OrderedDict[str, float] = OrderedDict()  # when each caller last asked, the latest last
        self._used: dict[str, tuple[float, float]] = {}  # seconds at work, as they counted at a moment, of those seen
        self._tenants = 0  # of those seen
        self._loading: set[str] = set()  # of those seen, who had used more than CROWD_USE when a request ended

    async def take(self, caller: str = "") -> Slot:
        """Raises Busy."""
        self._note(caller)
        if caller not in self._waiting and self._may_begin(caller):
            return self._begin(caller)
        waiter = self._wait(caller)
        try:
            async with asyncio.timeout(self._seconds):
                return await waiter
        except TimeoutError as error:
            self._leave(caller, waiter)
            raise Busy from error
        except asyncio.CancelledError:
            self._leave(caller, waiter)
            raise

    def give(self, slot: Slot) -> None:
        """The request has ended: the next one begins."""
        at_work = self._at_work[slot.caller]
        at_work.remove(slot)
        if not at_work:
            del self._at_work[slot.caller]
        self._free += 1
        if slot.caller in self._seen:
            now = self._clock()
            used = self._use(slot.caller) + min(now - slot.since, QUICK_SECONDS)
            self._used[slot.caller] = (used, now)
            if used > CROWD_USE:
                self._loading.add(slot.caller)
        self._begin_waiting()

    def _note(self, caller: str) -> None:
        now = self._clock()
        self._tenants += caller not in self._seen and caller.startswith(TENANT)
        self._seen[caller] = now
        self._seen.move_to_end(caller)
        while self._seen and next(iter(self._seen.values())) < now - CROWD_SECONDS:
            oldest, _ = self._seen.popitem(last=False)
            self._tenants -= oldest.startswith(TENANT)
            self._used.pop(oldest, None)
            self._loading.discard(oldest)

    def _may_begin(self, caller: str) -> bool:
        at_work = self._at_work.get(caller, set())
        if not self._free or len(at_work) >= self._each:
            return False
        if not self._is_crowded(caller):
            return True
        use = self._use(caller)
        beside = [one for one in self._at_work if one == caller or use > MUCH * self._use(one)]
        return all(self._quick(one) < (self._crowded if one == caller else 1) for one in beside)

    def _is_crowded(self, caller: str) -> bool:
        """Return whether another tenant was active recently, or another caller runs, waits, or has used more than
        CROWD_USE.

        A light request now and then of a stranger is a crowd only while it is at work.
        """
        if self._tenants > caller.startswith(TENANT):
            return True
        loading = (one for one in self._loading if self._use(one) > CROWD_USE)
        others = chain(self._at_work, self._waiting, loading)
        return any(one != caller and one in self._seen and not one.startswith(CHECK) for one in others)

    def _quick(self, caller: str) -> int:
        since = self._clock() - QUICK_SECONDS
        return sum(slot.since > since for slot in self._at_work.get(caller, ()))

    def _use(self, caller: str) -> float:
        """Seconds at work, of which the latest count most."""
        used, at = self._used.get(caller, (0.0, 0.0))
        return used * math.exp((at - self._clock()) / USE_SECONDS)

    def _begin(self, caller: str) -> Slot:
        slot = Slot(caller, self._clock())
        self._at_work[caller].add(slot)
        self._free -= 1
        return slot

    def _wait(self, caller: str) -> "asyncio.Future[Slot]":
        """Raises Busy where the queue is full and nobody waits with more than this caller would."""
        if sum(map(len, self._waiting.values())) >= self._queue:
            longest = max(self._waiting, key=lambda one: len(self._waiting[one]), default=None)
            if longest is None or len(self._waiting[longest]) <= len(self._waiting.get(caller, ())) + 1:
                raise Busy
            dropped = self._waiting[longest].pop()
            if not dropped.done():
                dropped.set_exception(Busy())
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Slot] = loop.create_future()
        self._waiting.setdefault(caller, deque()).append(waiter)
        loop.call_later(QUICK_SECONDS, self._begin_waiting)  # by then what is at work may no longer be quick
        return waiter

    def _leave(self, caller: str, waiter: "asyncio.Future[Slot]") -> None:
        """Remove a waiting request that ended; a slot that it was just given goes to the next."""
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            self.give(waiter.result())
            return
        queue = self._waiting.get(caller, deque())
        if waiter in queue:
            queue.remove(waiter)
        if not queue:
            self._waiting.pop(caller, None)

    def _begin_waiting(self) -> None:
        """Hand out slots to whoever has used least, and in turn, while there are any."""
        while (caller := min(filter(self._may_begin, self._waiting), key=self._use, default=None)) is not None:
            queue = self._waiting.pop(caller)
            waiter = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # behind the others
            if not waiter.done():
                waiter.set_result(self._begin(caller))


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
