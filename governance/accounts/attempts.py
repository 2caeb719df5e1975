"""Limits on attempts to guess a secret, counted in Redis, or in this process while Redis does not answer.

An attempt is counted before it is checked, so that simultaneous attempts get no more tries than successive ones. A
successful attempt is subtracted. A count ends a day after its first attempt, and a pause lasts at most an hour, so that
nobody is locked out permanently. The names of counters are keyed hashes: Redis contains no address. Without Redis, each
process has its share of the free attempts.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import redis
from django.conf import settings

from governance.accounts.rules import Limits, wait_after
from governance.errors import TooManyAttempts
from governance.keys.services import credential_hash
from governance.volatile import volatile

COUNTED_FOR = 24 * 3600  # seconds after the first try
MOST_COUNTED = 50_000
IPV6_PREFIX = 64  # what one subscriber has

# KEYS: count, lock. ARGV: free tries, first wait, longest wait, lifetime of counts. Returns the seconds to wait, or the
# negative number of this try.
TRY = """
local left = redis.call('TTL', KEYS[2])
if left > 0 then return left end
local tries = redis.call('INCR', KEYS[1])
if tries == 1 then redis.call('EXPIRE', KEYS[1], ARGV[4]) end
if tries >= tonumber(ARGV[1]) then
  local wait = math.min(ARGV[2] * 2 ^ math.min(tries - ARGV[1], 30), tonumber(ARGV[3]))
  redis.call('SET', KEYS[2], 1, 'EX', wait)
end
return -tries
"""
# No other try is counted during a pause, so this removes the pause that this try caused.
UNDO = """
redis.call('DEL', KEYS[2])
if redis.call('DECR', KEYS[1]) <= 0 then redis.call('DEL', KEYS[1]) end
"""


@dataclass(frozen=True)
class Counter:
    """Counts the tries of one `kind` by one `who`; the first `free` tries of a day cause no pause."""

    kind: str
    who: tuple[str, ...]
    free: int

    @property
    def name(self) -> str:
        return f"memos:attempts:{self.kind}:{credential_hash('/'.join(self.who)).hex()[:32]}"

    @property
    def limits(self) -> Limits:
        return Limits(
            free=self.free,
            first_wait=settings.ATTEMPTS_FIRST_WAIT_SECONDS,
            longest_wait=settings.ATTEMPTS_LONGEST_WAIT_SECONDS,
        )


def counter(kind: str, *who: str, free: int | None = None) -> Counter:
    return Counter(kind, who, free or settings.ATTEMPTS_FREE)


def address_group(address: str) -> str:
    """Return the addresses that belong to one subscriber, as text: an IPv4 address, or the /64 of an IPv6 address."""
    with suppress(ValueError):
        parsed: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
        if isinstance(parsed, IPv6Address):
            mapped = parsed.ipv4_mapped
            return str(mapped or ip_network((parsed, IPV6_PREFIX), strict=False))
        return str(parsed)
    return address


def attempts_count(counters: Sequence[Counter]) -> bool:
    """Count one try in each counter, or in none. Return whether a pause begins. Raises TooManyAttempts in a pause."""
    counted: list[Counter] = []
    is_last = False
    for counter in counters:
        try:
            is_last |= _count(counter)
        except TooManyAttempts:
            attempts_undo(counted)
            raise
        counted.append(counter)
    return is_last


def attempts_undo(counters: Sequence[Counter]) -> None:
    """Subtract the last try from each counter, because it succeeded or was not made."""
    for counter in counters:
        keys = [f"{counter.name}:count", f"{counter.name}:lock"]
        volatile(lambda client, keys=keys: client.eval(UNDO, 2, *keys))  # type: ignore[misc]
        _here.undo(counter.name)


def attempt_count(kind: str, *who: str, free: int | None = None) -> bool:
    """Count one try in a single counter, as `attempts_count` does."""
    return attempts_count([counter(kind, *who, free=free)])


def attempts_forget(kind: str, *who: str) -> None:
    """Reset the counters after a success."""
    name = counter(kind, *who).name
    volatile(lambda client: client.delete(f"{name}:count", f"{name}:lock"))
    _here.forget(name)


def _count(counter: Counter) -> bool:
    answer = volatile(lambda client: _try_in_redis(client, counter.name, counter.limits))
    free = counter.free
    if answer is None:
        free = max(1, counter.free // settings.WEB_PROCESSES)
        answer = _here.attempt(counter.name, replace(counter.limits, free=free))
    if answer > 0:
        raise TooManyAttempts(retry_after=answer)
    return -answer >= free


def _try_in_redis(client: redis.Redis, name: str, limits: Limits) -> int:
    keys = [f"{name}:count", f"{name}:lock"]
    return int(client.eval(TRY, 2, *keys, limits.free, limits.first_wait, limits.longest_wait, COUNTED_FOR))


@dataclass(frozen=True)
class Tries:
    """The tries in one counter: their number, the first, and the end of the wait, in seconds of the counter's clock."""

    number: int
    since: float
    until: float = 0.0


class CountedHere:
    """Counters of attempts in this process. `clock`: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._tries: dict[str, Tries] = {}

    def attempt(self, name: str, limits: Limits) -> int:
        now = self._clock()
        with self._lock:
            before = self._tries.get(name)
            if before is None or before.since + COUNTED_FOR <= now:
                before = Tries(0, now)
            if before.until > now:
                return max(1, round(before.until - now))
            if len(self._tries) >= MOST_COUNTED:
                self._tries.pop(next(iter(self._tries)))
            number = before.number + 1
            self._tries[name] = Tries(number, before.since, now + wait_after(number, limits))
            return -number

    def undo(self, name: str) -> None:
        with self._lock:
            before = self._tries.pop(name, None)
            if before is not None and before.number > 1:
                self._tries[name] = Tries(before.number - 1, before.since)

    def forget(self, name: str) -> None:
        with self._lock:
            self._tries.pop(name, None)

    def forget_all(self) -> None:
        with self._lock:
            self._tries.clear()


_here = CountedHere()


def forget_local_attempts() -> None:
    """Reset the counters of this process, as a restart would."""
    _here.forget_all()
