"""Guessing is slowed down: tries are counted before they are made, in Redis, else in this process.

Counted first, so that many at once get no more tries than one after the other. What is counted is a keyed hash: who
reads Redis learns no address. Redis down, each process counts for itself: more lenient, never open.
"""

import threading
import time

import redis
from django.conf import settings

from governance.accounts.rules import Limits, wait_after
from governance.errors import TooManyAttempts
from governance.keys.services import credential_hash
from governance.volatile import volatile

COUNTED_FOR = 24 * 3600  # seconds after the last try
MOST_COUNTED = 50_000

# KEYS: count, lock; ARGV: free tries, first wait, longest wait, how long counts live. Answers the seconds to wait, or
# minus the number of this try.
TRY = """
local left = redis.call('TTL', KEYS[2])
if left > 0 then return left end
local tries = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], ARGV[4])
if tries >= tonumber(ARGV[1]) then
  local wait = math.min(ARGV[2] * 2 ^ math.min(tries - ARGV[1], 30), tonumber(ARGV[3]))
  redis.call('SET', KEYS[2], 1, 'EX', wait)
end
return -tries
"""


def attempt_count(kind: str, *who: str, free: int | None = None) -> bool:
    """Count one try of `kind` by `who`. Whether a wait follows it. Raises TooManyAttempts while one lasts."""
    limits = Limits(
        free=free or settings.ATTEMPTS_FREE,
        first_wait=settings.ATTEMPTS_FIRST_WAIT_SECONDS,
        longest_wait=settings.ATTEMPTS_LONGEST_WAIT_SECONDS,
    )
    name = _name(kind, who)
    answer = volatile(lambda client: _try_in_redis(client, name, limits))
    if answer is None:
        answer = _here.attempt(name, limits)
    if answer > 0:
        raise TooManyAttempts(retry_after=answer)
    return -answer >= limits.free


def attempts_forget(kind: str, *who: str) -> None:
    """It was the right one: the count begins anew."""
    name = _name(kind, who)
    volatile(lambda client: client.delete(f"{name}:count", f"{name}:lock"))
    _here.forget(name)


def _name(kind: str, who: tuple[str, ...]) -> str:
    return f"memos:attempts:{kind}:{credential_hash('/'.join(who)).hex()[:32]}"


def _try_in_redis(client: redis.Redis, name: str, limits: Limits) -> int:
    keys = [f"{name}:count", f"{name}:lock"]
    return int(client.eval(TRY, 2, *keys, limits.free, limits.first_wait, limits.longest_wait, COUNTED_FOR))


class CountedHere:
    """The same, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tries: dict[str, tuple[int, float]] = {}  # number, and until when nothing is tried

    def attempt(self, name: str, limits: Limits) -> int:
        now = time.monotonic()
        with self._lock:
            tries, until = self._tries.get(name, (0, 0.0))
            if until > now:
                return max(1, round(until - now))
            if len(self._tries) >= MOST_COUNTED:
                self._tries.pop(next(iter(self._tries)))
            self._tries[name] = (tries + 1, now + wait_after(tries + 1, limits))
            return -(tries + 1)

    def forget(self, name: str) -> None:
        with self._lock:
            self._tries.pop(name, None)

    def forget_all(self) -> None:
        with self._lock:
            self._tries.clear()


_here = CountedHere()


def counted_here_forget() -> None:
    """A new process would know nothing either."""
    _here.forget_all()
