"""The order of numbers and times as whole numbers, whose prefixes an index looks up. Pure.

A range is the union of few prefixes, as in numeric range queries by tries (Schindler and Diepenbroek 2008, Computers &
Geosciences 34:12).
"""

import math
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

STEP, LEVELS = 4, 16  # bits of a level, and levels: 64 bits
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.]\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
_MIDDLE = 2**63


def order_key(value: Any) -> tuple[str, int] | None:
    """Return kind and place of a value among those of its kind, 0..2^64-1; None for what has no order here.

    Numbers are compared as doubles, times to the microsecond; a time without an offset is in UTC, a date its start.
    """
    if isinstance(value, str):
        microseconds = _read_microseconds(value)
        return None if microseconds is None else ("t", microseconds + _MIDDLE)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return ("n", _order_bits(number)) if math.isfinite(number) else None


def cover_range(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the fewest prefixes that cover low..high, both included, each as its level and value."""
    last = 2**STEP - 1
    for level in range(LEVELS):
        while low <= high and (low & last or level == LEVELS - 1):
            yield level, low
            low += 1
        while low <= high and high & last != last:
            yield level, high
            high -= 1
        if low > high:
            return
        low, high = low >> STEP, high >> STEP


def _order_bits(number: float) -> int:
    """Return the bits of a double so that they are ordered as the numbers are; -0.0 is 0.0."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    return int(bits ^ (2**64 - 1) if bits >= _MIDDLE else bits | _MIDDLE)


def _read_microseconds(text: str) -> int | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
