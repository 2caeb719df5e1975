"""Replay of turns: the share of the used memories that a working set would have had before each turn. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from uuid import UUID

from vault.layers.rules import fit
from vault.scheduler.replacement import Replacement
from vault.scheduler.rules import (
    PREDICTORS,
    Chosen,
    Count,
    Memories,
    PastTurn,
    Predictors,
    learn_weights,
    preload,
)


@dataclass(frozen=True)
class Replayed:
    """The outcome of a replay. hits, recent, found: the mean share of a turn's used memories that were in the working
    set, among the newest memories, and among the last search's results, each with the same budget. turns: those with
    used memories; tokens: mean size of the working set; counts: by predictor, with "" for what none preloaded.
    saved_tokens: of the used memories that were in the working set, all turns together, which no turn had to fetch.
    """

    turns: int
    hits: float
    recent: float
    found: float
    tokens: float
    counts: Mapping[str, Count] = field(default_factory=dict)
    saved_tokens: int = 0

    def saved_seconds(self, seconds: float, tokens: int) -> float | None:
        """Return the time that the saved tokens take to read, as a measured read of `tokens` took `seconds`; None if
        nothing was measured."""
        return round(self.saved_tokens * seconds / tokens, 4) if tokens else None


def replay(
    memories: Memories,
    turns: Sequence[PastTurn],
    policy: Replacement,
    budget: int,
    *,
    learns: bool = True,
    wanted: Sequence[AbstractSet[UUID]] | None = None,
    predictors: Predictors = PREDICTORS,
) -> Replayed:
    """Preload after each turn, and compare the set with what the next turn used. learns: weights follow the counts.

    wanted: what each turn needed, if its answer may have used less than that.
    """
    counts: dict[str, Count] = defaultdict(Count)
    shares: list[list[float]] = []
    held: list[Chosen] = []
    sizes, saved = [], 0
    for at in range(1, len(turns)):
        before, used = turns[:at], (wanted or [turn.used for turn in turns])[at] & memories.by_id.keys()
        weights = learn_weights(counts if learns else {})
        ids = {chosen.id for chosen in held}
        held = preload(
            memories, before, weights=weights, policy=policy, before=ids, budget=budget, predictors=predictors
        )
        sizes.append(sum(chosen.tokens for chosen in held))
        if not used:
            continue
        newest = [candidate.id for candidate in memories.newest if candidate.at <= before[-1].at]
        rivals = [_within(memories, ids, budget) for ids in (newest, before[-1].found)]
        shares.append([_share(used, ids) for ids in ({chosen.id for chosen in held}, *rivals)])
        saved += sum(chosen.tokens for chosen in held if chosen.id in used)
        count_use(counts, held, used)
    hits, recent, found = (sum(column) / len(column) for column in zip(*(shares or [[0.0] * 3]), strict=True))
    return Replayed(len(shares), hits, recent, found, sum(sizes) / max(len(sizes), 1), dict(counts), saved)


def count_use(counts: dict[str, Count], held: Sequence[Chosen], used: AbstractSet[UUID]) -> None:
    """Add a turn to the counts of the predictors. counts: a `defaultdict`."""
    for chosen in held:
        counts[chosen.reason or "kept"].preloaded += 1
        counts[chosen.reason or "kept"].used += chosen.id in used
    counts[""].used += len(used - {chosen.id for chosen in held})


def _share(used: AbstractSet[UUID], held: AbstractSet[UUID]) -> float:
    return len(used & held) / len(used)


def _within(memories: Memories, ids: Sequence[UUID], budget: int) -> set[UUID]:
    there = [cube_id for cube_id in ids if cube_id in memories.by_id]
    return set(fit(there, lambda cube_id: memories.by_id[cube_id].tokens, budget))
