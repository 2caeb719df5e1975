"""Redis for data that may be lost: counters and notes. A call waits 0.2 s; failures pause calls for a while."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import redis
from django.conf import settings

from governance.redis_address import redis_client

PATIENCE = 0.2  # seconds
REST = 5.0  # seconds for which a server that did not answer is not asked again
Answer = TypeVar("Answer")

_rest_until: dict[str, float] = {}


def volatile(ask: Callable[[redis.Redis], Answer]) -> Answer | None:
    """Return the result of `ask`, or None if Redis does not answer: the caller must have a fallback."""
    address = settings.REDIS_ADDRESS
    if _rest_until.get(address, 0.0) > time.monotonic():
        return None
    try:
        return ask(_client(address))
    except (redis.RedisError, OSError):
        _rest_until[address] = time.monotonic() + REST
        return None


@lru_cache(maxsize=4)
def _client(address: str) -> redis.Redis:
    return redis_client(address, timeout=PATIENCE, decode_responses=True)
