"""Tests of predictors, learned weights, replacement and replays. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from vault.lifecycle.forgetting_policies import Use
from vault.scheduler.replacement import REPLACEMENTS, Held, ReplacementName
from vault.scheduler.replay import replay
from vault.scheduler.rules import (
    HIGHEST_WEIGHT,
    LEAST_WEIGHT,
    PREDICTORS,
    Candidate,
    Chosen,
    Count,
    Memories,
    PastTurn,
    learn_weights,
    preload,
)

BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
KEEP = REPLACEMENTS[ReplacementName.KEEP]


def vector(*values: float) -> np.ndarray:
    found = np.zeros(4, dtype=np.float32)
    found[: len(values)] = values
    return found


def memory(number: int, **more: object) -> Candidate:
    fields = {"tokens": 10, "at": BEGIN + timedelta(minutes=number), "vector": vector(0, 0, 1)} | more
    return Candidate(UUID(int=number), **fields)  # type: ignore[arg-type]


def turn(number: int, used: tuple[int, ...] = (), found: tuple[int, ...] = (), **more: object) -> PastTurn:
    at = BEGIN + timedelta(days=1, minutes=number)
    return PastTurn(
        **{  # type: ignore[arg-type]
            "at": at,
            "vector": vector(1),
            "used": frozenset(UUID(int=one) for one in used),
            "found": tuple(UUID(int=one) for one in found),
        }
        | more
    )


def only(name: str) -> Mapping[str, float]:
    return {predictor: float(predictor == name) for predictor in PREDICTORS}


def choose(
    name: str, memories: Memories, *turns: PastTurn, before: frozenset[UUID] = frozenset(), budget: int = 1_000
) -> list[Chosen]:
    """Return what one predictor preloads."""
    found = preload(memories, turns, weights=only(name), policy=KEEP, before=before, budget=budget)
    return [chosen for chosen in found if chosen.score > 0 and (chosen.reason == name or chosen.id in before)]


def numbers(found: list[Chosen]) -> list[int]:
    return [chosen.id.int for chosen in found]


CASES: list[tuple[str, list[Candidate], list[PastTurn], list[int]]] = [
    ("recent", [memory(1), memory(2), memory(5_000)], [turn(0)], [2, 1]),  # what was said later is not there yet
    ("results", [memory(1), memory(2), memory(3)], [turn(0, found=(3, 1))], [3, 1]),
    ("topic", [memory(1, vector=vector(0.1, 1)), memory(2, vector=vector(1)), memory(3)], [turn(0)], [2, 1]),
    ("beside", [memory(1, place=(7, 1)), memory(2, place=(7, 2)), memory(3, place=(8, 2))], [turn(0, (2,))], [2, 1]),
    ("session", [memory(1, place=(7, 90)), memory(2, place=(7, 2)), memory(3, place=(8, 2))], [turn(0, (2,))], [1, 2]),
    ("together", [memory(1), memory(2), memory(3)], [turn(0, (1, 2)), turn(1, (3,)), turn(2, (1,))], [1, 2]),
    ("hour", [memory(1), memory(2)], [turn(-1440, (1,)), turn(-700, (2,)), turn(0)], [1]),
    ("dates", [memory(1, due=BEGIN + timedelta(days=3)), memory(2, due=BEGIN + timedelta(days=30))], [turn(0)], [1]),
]


@pytest.mark.parametrize(("name", "candidates", "turns", "expected"), CASES, ids=[case[0] for case in CASES])
def test_each_predictor_names_its_memories_best_first(
    name: str, candidates: list[Candidate], turns: list[PastTurn], expected: list[int]
) -> None:
    assert numbers(choose(name, Memories(candidates), *turns)) == expected


def test_neighbours_in_the_graph_are_preloaded() -> None:
    memories = Memories([memory(1), memory(2), memory(3)], {UUID(int=1): [UUID(int=3)]})
    assert numbers(choose("graph", memories, turn(0, (1,)))) == [3]


def test_set_stays_within_its_budget_and_takes_the_next_that_fits() -> None:
    memories = Memories([memory(1, tokens=30), memory(2, tokens=80), memory(3, tokens=60)])
    found = choose("results", memories, turn(0, found=(3, 2, 1)), budget=100)
    assert numbers(found) == [3, 1]


def test_memories_of_the_last_set_stay_and_leave_with_a_new_topic() -> None:
    memories = Memories([memory(1), memory(2)])
    before = frozenset({UUID(int=1)})
    same = choose("results", memories, turn(0, found=(2,)), before=before)
    other = choose("results", memories, turn(0, found=(2,), is_new_topic=True), before=before)
    assert numbers(same) == numbers(other) == [2, 1]
    assert other[1].score < same[1].score


@pytest.mark.parametrize("used", [0, 1, 50, 10_000])
def test_weights_follow_the_counts_within_their_bounds(used: int) -> None:
    weights = learn_weights({"results": Count(10_000, used), "topic": Count(10_000, 50)})
    assert all(LEAST_WEIGHT <= weight <= HIGHEST_WEIGHT for weight in weights.values())
    if used != 50:
        assert (weights["results"] > weights["topic"]) == (used > 50)


def test_policies_prefer_what_they_name() -> None:
    fresh, old = Use(timedelta(0), 5, 0.5, 0.5), Use(timedelta(days=90), 0, 0.5, 0.5)
    for name in (ReplacementName.KEEP, ReplacementName.LRU, ReplacementName.HEAT):
        assert REPLACEMENTS[name].score(Held(fresh, 0, 0)) > REPLACEMENTS[name].score(Held(old, 1, 1))
    assert REPLACEMENTS[ReplacementName.SEMANTIC].score(Held(old, 0.9, 0)) > 0.5
    assert REPLACEMENTS[ReplacementName.LABEL].score(Held(old, 0, 0.9)) > 0.5
    for policy in REPLACEMENTS.values():
        for held in (Held(fresh, 1, 1), Held(old, -1, 0), Held(Use(timedelta(0), 10**6, 1, 1), 1, 1)):
            assert 0 <= policy.score(held) <= 1


def test_replay_compares_the_set_with_the_newest_and_the_last_results() -> None:
    memories = Memories([memory(number, place=(1, number)) for number in range(1, 40)])
    turns = [turn(at, used=(at + 1,), found=(at + 1, 39)) for at in range(10)]
    outcome = replay(memories, turns, KEEP, budget=60)
    assert outcome.turns == 9
    assert outcome.hits == 1  # each turn uses the neighbour of what the last one cites
    assert (outcome.recent, outcome.found) == (0, 0)
    assert outcome.tokens <= 60
    assert outcome.saved_tokens == 9 * memory(1).tokens
    assert outcome.saved_seconds(2.0, 9) == 2.0 * memory(1).tokens
    assert outcome.saved_seconds(2.0, 0) is None
    assert outcome.counts["beside"].used > 0
    assert outcome.counts[""].used == 0


def test_replay_without_cited_memories_counts_nothing() -> None:
    outcome = replay(Memories([]), [turn(0), turn(1)], KEEP, budget=60)
    assert (outcome.turns, outcome.hits, outcome.saved_tokens) == (0, 0, 0)
