"""Request rates per clock minute. Redis counts them; while Redis does not answer, each process counts its own.

A request waits for Redis at most RATE_SECONDS. After a failure, Redis is not used for DOWN_SECONDS.
"""

import logging
import threading
import time
from collections.abc import Sequence
from functools import cache

import redis
from django.conf import settings

from governance.actor import Actor
from governance.errors import QuotaExceeded
from governance.policies.active import policies_of_request
from governance.policies.quotas import holders_of
from governance.policies.rules import QuotaTarget, limits_of
from governance.redis_address import redis_client
from governance.vocabulary import Measure

MINUTE = 60
DOWN_SECONDS = 5.0  # without Redis after a failure
logger = logging.getLogger(__name__)


class Counters:
    """Counts by name for the current minute, in the memory of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute = 0
        self._counts: dict[str, int] = {}

    def count(self, names: Sequence[str], minute: int) -> list[int]:
        """Add one to each name. Return the new counts, in the order of `names`."""
        with self._lock:
            if minute != self._minute:
                self._minute, self._counts = minute, {}
            for name in names:
                self._counts[name] = self._counts.get(name, 0) + 1
            return [self._counts[name] for name in names]


class Rates:
    """Counts in Redis, or in this process while Redis does not answer."""

    def __init__(self, address: str, seconds: float) -> None:
        self._redis = redis_client(address, timeout=seconds)
        self._in_process = Counters()
        self._down_until = 0.0

    def count(self, names: Sequence[str], minute: int) -> list[int]:
        """Add one to each name. Return the new counts, in the order of `names`. minute: since the epoch."""
        if time.monotonic() >= self._down_until:
            try:
                return self._count_in_redis(names, minute)
            except redis.RedisError as error:
                logger.warning("requests are counted in this process: %s", type(error).__name__)
                self._down_until = time.monotonic() + DOWN_SECONDS
        return self._in_process.count(names, minute)

    def _count_in_redis(self, names: Sequence[str], minute: int) -> list[int]:
        pipeline = self._redis.pipeline(transaction=False)
        for name in names:
            key = f"rate:{name}:{minute}"
            pipeline.incr(key)
            pipeline.expire(key, 2 * MINUTE)
        return [int(answer) for answer in pipeline.execute()[::2]]


def request_count(actor: Actor) -> None:
    """Count a request against the quotas of its tenant, member and key. Without such quotas Redis is not used.

    Raises QuotaExceeded, with the seconds until the next minute.
    """
    quotas = policies_of_request(actor).quotas
    limited = [
        (holder, limit)
        for holder in (holders_of(actor) if quotas else ())
        if (limit := limits_of(quotas, holder).of(Measure.REQUESTS)) is not None
    ]
    if not limited:
        return
    now = time.time()
    counts = _rates(settings.REDIS_ADDRESS, settings.RATE_SECONDS).count(
        [_name(actor, holder) for holder, _ in limited], int(now // MINUTE)
    )
    for (holder, limit), count in zip(limited, counts, strict=True):
        if count > limit:
            raise QuotaExceeded(
                f"The quota of this {holder.kind.replace('_', ' ')} is {limit} requests a minute.",
                retry_after=int(MINUTE - now % MINUTE) + 1,
            )


def _name(actor: Actor, holder: QuotaTarget) -> str:
    return f"{actor.tenant_id}:{holder.kind}:{holder.id}"


@cache
def _rates(address: str, seconds: float) -> Rates:
    return Rates(address, seconds)
