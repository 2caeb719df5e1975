"""Detection of unusual reads. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

FEWEST_READS = 20  # below that, nothing is unusual
LIMIT = 3.5  # of the modified z-score, as its authors recommend


@dataclass(frozen=True)
class Usual:
    """The usual number of reads a day: the median, and the median of the differences from it."""

    median: float
    spread: float


def measure_usual(days: Sequence[int]) -> Usual:
    """Return the usual number of reads. `days`: the reads on each earlier day, 0 for a day without any."""
    middle = median(days)
    return Usual(median=middle, spread=median(abs(reads - middle) for reads in days))


def score(reads: int, usual: Usual) -> float:
    """Return the modified z-score, 0.6745·(x − median) / MAD (Iglewicz and Hoaglin 1993, How to detect and handle
    outliers).

    A MAD below one read a day counts as one: three reads are not unusual where two are usual.
    """
    return 0.6745 * (reads - usual.median) / max(usual.spread, 1.0)


def is_unusual(reads: int, usual: Usual) -> bool:
    return reads >= FEWEST_READS and score(reads, usual) > LIMIT
