"""UUIDv7 (RFC 9562 §5.7), made by the application: encryption needs the id, as its context, before INSERT."""

import os
import threading
import time
from datetime import UTC, datetime
from uuid import UUID

_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """Return a new UUIDv7: 48 bits of Unix milliseconds, a counter within the millisecond, and random bits.

    Ids of one process strictly increase: the 12 bits of rand_a hold the part below a millisecond, and if the clock
    stands still or goes back, the last value is raised by one step (RFC 9562 §6.2, method 3).
    """
    global _last
    with _lock:
        step = time.time_ns() * 4096 // 1_000_000
        _last = step if step > _last else _last + 1
        millis, fraction = _last >> 12, _last & 0xFFF
    random = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    return UUID(int=(millis & ((1 << 48) - 1)) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random)


def uuid7_time(identity: UUID) -> datetime:
    """Return the time at which an id was made, to the millisecond."""
    return datetime.fromtimestamp((identity.int >> 80) / 1000, UTC)


def uuid7_floor(moment: datetime) -> UUID:
    """Return the smallest id that can have been made at `moment`, to bound a range of ids by time."""
    millis = max(int(moment.timestamp() * 1000), 0) & ((1 << 48) - 1)
    return UUID(int=millis << 80 | 0x7 << 76 | 0b10 << 62)
