"""Latencies counted in buckets, so that the counts of a day take one row and percentiles can still be estimated. Pure.

Stored rows depend on BOUNDS: a change needs a migration.
"""

from bisect import bisect_left
from collections.abc import Sequence

# Upper bounds of the buckets in milliseconds; one more bucket counts what took longer.
BOUNDS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 2_000, 5_000, 10_000, 30_000)
ERROR = 400  # the lowest status that counts as an error


def bucket_of(milliseconds: float) -> int:
    """Return the index of the bucket that counts a latency."""
    return bisect_left(BOUNDS, milliseconds)


def percentile_of(buckets: Sequence[int], share: float) -> float:
    """Estimate the latency in milliseconds below which `share` (0..1) of the counted requests lie; 0 without any.

    Linear within a bucket. Requests above the last bound count as the last bound.
    """
    wanted, below = share * sum(buckets), 0
    for at, count in enumerate(buckets):
        if count and below + count >= wanted:
            low, high = (0 if at == 0 else BOUNDS[at - 1]), BOUNDS[min(at, len(BOUNDS) - 1)]
            return low + (high - low) * (wanted - below) / count
        below += count
    return 0.0
