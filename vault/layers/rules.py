"""The three layers of MemoryOS (Kang et al., arXiv 2506.06326), as pure rules over numbers, sets and times."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from math import exp
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Constants:
    """The constants that a tenant, and each of its personas, may set: seconds, counts, and scores in the ranges of
    their formulas.
    """

    stm_pages: int = 7
    theta: float = 0.6  # Fscore over which a page joins a segment
    alpha: float = 1.0  # weight of a segment's visits in its heat
    beta: float = 1.0  # of its pages that are not promoted yet
    gamma: float = 1.0  # of its recency
    mu: float = 1e7  # seconds in which recency falls to 1/e
    tau: float = 5.0  # heat over which a segment is distilled
    segments: int = 200
    entries: int = 100  # of each queue of the long-term layer
    top_segments: int = 5
    top_pages: int = 10
    top_entries: int = 10
    gate: float = 0.1  # score from which a segment, and a page, answers a question
    continuity: float = 0.35  # cosine from which a page continues the topic of the page before
    chain_gap: float = 21_600.0  # seconds after which a page begins a topic of its own


WHOLE = frozenset({"stm_pages", "segments", "entries", "top_segments", "top_pages", "top_entries"})
RANGES: Mapping[str, tuple[float, float]] = {
    "stm_pages": (1, 100),
    "theta": (-1, 2),
    "alpha": (0, 100),
    "beta": (0, 100),
    "gamma": (0, 100),
    "mu": (1, 1e10),
    "tau": (0, 10_000),
    "segments": (1, 200),
    "entries": (1, 1_000),
    "top_segments": (1, 50),
    "top_pages": (1, 100),
    "top_entries": (1, 100),
    "gate": (-1, 2),
    "continuity": (-1, 1),
    "chain_gap": (0, 1e9),
}
NAMES = tuple(field.name for field in fields(Constants))


def merge_constants(*layers: Mapping[str, float]) -> Constants:
    """Return the defaults overridden by `layers`, of which later ones override earlier ones."""
    merged: dict[str, float] = asdict(Constants())
    for layer in layers:
        merged |= {name: value for name, value in layer.items() if name in RANGES}
    values = {name: int(value) if name in WHOLE else float(value) for name, value in merged.items()}
    return Constants(**values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class SegmentState:
    """The values of a segment that decide its place. pages: those not promoted; idle: seconds since its last visit or
    page.
    """

    visits: int
    pages: int
    idle: float
    visited_at: datetime | None = None
    created_at: datetime | None = None


def recency(idle: float, mu: float) -> float:
    """Return exp(-Δt / μ), 1 for a time in the future (§3.3). idle, mu: seconds."""
    return exp(-max(idle, 0.0) / mu)


def heat(segment: SegmentState, constants: Constants) -> float:
    """Return the heat α·N_visit + β·L_interaction + γ·R_recency (§3.3), at the time for which `idle` was computed."""
    return sum(heat_parts(segment, constants))


def heat_parts(segment: SegmentState, constants: Constants) -> tuple[float, float, float]:
    """Return the parts of the heat from visits, pages and recency."""
    fresh = recency(segment.idle, constants.mu)
    return constants.alpha * segment.visits, constants.beta * segment.pages, constants.gamma * fresh


def is_hot(segment: SegmentState, constants: Constants) -> bool:
    """Return whether a segment is to be distilled: its heat is over τ and it has pages that were not promoted."""
    return segment.pages > 0 and heat(segment, constants) > constants.tau


def coldest(segments: Mapping[Key, SegmentState], constants: Constants) -> Key:
    """Return the resident that leaves first. Ties: the older last visit, then the older creation, then the id."""

    def order(key: Key) -> tuple[float, float, float, str]:
        segment = segments[key]
        # Rounded, so that segments that differ only by the run time of a statement count as equal.
        return (
            round(heat(segment, constants), 9),
            _seconds(segment.visited_at),
            _seconds(segment.created_at),
            str(key),
        )

    return min(segments, key=order)


def jaccard(first: AbstractSet[Hashable], other: AbstractSet[Hashable]) -> float:
    """Return |A ∩ B| / |A ∪ B|, 0 if either is empty."""
    return len(first & other) / len(first | other) if first and other else 0.0


def fscore(cosine: float, segment_keywords: AbstractSet[Hashable], page_keywords: AbstractSet[Hashable]) -> float:
    """Return cos(e_s, e_p) + Jaccard of the keywords (§3.2), -1 to 2. The keywords are case-folded."""
    return cosine + jaccard(segment_keywords, page_keywords)


def best_segment(scores: Mapping[Key, float], theta: float) -> Key | None:
    """Return the segment that a page joins, the best one over θ; None: the page opens a new segment."""
    best = max(scores, key=lambda key: (scores[key], str(key)), default=None)
    return best if best is not None and scores[best] > theta else None


def queue_append(queue: Sequence[Item], page: Item, capacity: int) -> tuple[list[Item], list[Item]]:
    """Return the short-term queue after a page was appended, and the pages that left it before, oldest first."""
    leaving = max(len(queue) + 1 - capacity, 0)
    return [*queue[leaving:], page], list(queue[:leaving])


def continues(*, cosine: float, shares_keyword: bool, gap: float, constants: Constants) -> bool:
    """Return whether a page continues the topic of the page before, without a language model. gap: seconds."""
    return gap <= constants.chain_gap and (cosine >= constants.continuity or shares_keyword)


def chains(answers: Sequence[bool]) -> list[int]:
    """Return for each page the index of its chain's first page. answers: each page continues the page before."""
    starts: list[int] = []
    for index, follows in enumerate(answers):
        starts.append(starts[-1] if follows and starts else index)
    return starts


@dataclass(frozen=True)
class Selection:
    """The pages that answer a question, best first, and the segments that it visited, each once."""

    pages: tuple[tuple[Hashable, float], ...]
    visited: tuple[Hashable, ...]


def select_segments(scores: Mapping[Key, float], constants: Constants) -> list[Key]:
    """Return the best `top_segments` that reach the gate, best first (§3.4, first stage)."""
    ranked = sorted(scores, key=lambda key: (-scores[key], str(key)))
    return [key for key in ranked[: constants.top_segments] if scores[key] >= constants.gate]


def select_pages(
    segments: Sequence[Key], pages: Mapping[Key, Mapping[Hashable, float]], constants: Constants
) -> Selection:
    """Return the best pages of the selected segments (§3.4, second stage), each once, even if several segments have it.

    Every segment with a page that reaches the gate counts as visited, even if others' pages are better.
    """
    gated = {
        segment: {page: score for page, score in pages.get(segment, {}).items() if score >= constants.gate}
        for segment in segments
    }
    best: dict[Hashable, float] = {}
    for found in gated.values():
        for page, score in found.items():
            best[page] = max(score, best.get(page, score))
    ranked = sorted(best.items(), key=lambda scored: (-scored[1], str(scored[0])))
    return Selection(tuple(ranked[: constants.top_pages]), tuple(segment for segment in segments if gated[segment]))


def fit(parts: Sequence[Item], tokens: Callable[[Item], int], budget: int) -> list[Item]:
    """Return the parts that fit a budget of tokens, in order; a part that does not fit is skipped."""
    taken: list[Item] = []
    left = budget
    for part in parts:
        if tokens(part) <= left:
            taken.append(part)
            left -= tokens(part)
    return taken


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
