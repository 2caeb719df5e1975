"""The rules of the layers, held to figures worked out from the paper (memoryos.json beside this file)."""

import json
from datetime import UTC, datetime, timedelta
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from vault.layers.rules import (
    RANGES,
    Constants,
    SegmentState,
    best_segment,
    chains,
    coldest,
    continues,
    fit,
    fscore,
    heat,
    is_hot,
    jaccard,
    merge_constants,
    queue_append,
    recency,
    select_pages,
    select_segments,
)
from vault.layers.search import best_entries
from vault.vocabulary import EntryQueue

FIGURES: dict[str, Any] = json.loads(Path(__file__).with_name("memoryos.json").read_text(encoding="utf-8"))
DEFAULTS = Constants()
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def cosine(first: list[float], other: list[float]) -> float:
    product = sum(left * right for left, right in zip(first, other, strict=True))
    return product / sqrt(sum(part * part for part in first)) / sqrt(sum(part * part for part in other))


@pytest.mark.parametrize("row", FIGURES["recency"]["rows"], ids=lambda row: f"{row['seconds']} s")
def test_recency_follows_the_formula(row: dict[str, float]) -> None:
    assert recency(row["seconds"], DEFAULTS.mu) == pytest.approx(row["recency"], abs=1e-6)


def test_recency_of_a_future_visit_is_one() -> None:
    assert recency(-86_400, DEFAULTS.mu) == FIGURES["recency"]["future"]


@pytest.mark.parametrize("row", FIGURES["heat"], ids=str)
def test_heat_and_promotion_follow_the_formula(row: dict[str, Any]) -> None:
    segment = SegmentState(row["visits"], row["pages"], row["seconds"])
    assert heat(segment, DEFAULTS) == pytest.approx(row["heat"], abs=1e-6)
    assert is_hot(segment, DEFAULTS) is (row["is_hot"] and row["pages"] > 0)


@pytest.mark.parametrize("row", FIGURES["fscore"]["rows"], ids=lambda row: row["case"])
def test_fscore_decides_whether_a_page_joins(row: dict[str, Any]) -> None:
    near = cosine(row["segment"], row["page"])
    of_segment, of_page = ({word.casefold() for word in row[name]} for name in ("segment_keywords", "page_keywords"))
    score = fscore(near, of_segment, of_page)
    assert near == pytest.approx(row["cosine"], abs=1e-6)
    assert jaccard(of_segment, of_page) == pytest.approx(row["jaccard"], abs=1e-6)
    assert score == pytest.approx(row["fscore"], abs=FIGURES["fscore"]["tolerance"])
    assert (best_segment({"S": round(score, 6)}, FIGURES["fscore"]["theta"]) == "S") is row["joins"]


def test_page_joins_the_segment_with_the_best_fscore() -> None:
    row = FIGURES["choose_best_segment"]
    page = row["P"]
    scores = {
        name: fscore(cosine(row[name]["e"], page["e"]), set(row[name]["K"]), set(page["K"])) for name in ("A", "B")
    }
    assert scores == pytest.approx(row["scores"], abs=1e-6)
    assert best_segment(scores, DEFAULTS.theta) == row["expected_segment"]


def test_full_queue_passes_on_one_page_before_each_append() -> None:
    queue: list[str] = []
    moved: list[str] = []
    for step in FIGURES["fifo"]["steps"]:
        queue, leaving = queue_append(queue, step["add"], FIGURES["fifo"]["capacity"])
        moved += leaving
        assert (queue, moved) == (step["queue"], step["moved"])


def test_page_without_an_answer_moves_on_like_others() -> None:
    row = FIGURES["fifo"]["one_side"]
    queue: list[str] = []
    moved: list[str] = []
    for query, _ in row["adds"]:
        queue, leaving = queue_append(queue, query, row["capacity"])
        moved += leaving
    assert (queue, moved) == (row["queue"], row["moved"])


def test_chain_restarts_where_a_topic_ends_and_shares_its_last_meta() -> None:
    row = FIGURES["dialogue_chain"]
    starts = chains(row["continues"])
    pages = list(row["meta_of"])
    last = dict(zip(starts, row["metas"], strict=True))
    assert {page: last[start] for page, start in zip(pages, starts, strict=True)} == row["meta_of"]
    before = {page: pages[at - 1] if starts[at] != at else None for at, page in enumerate(pages)}
    assert before == row["before"]


@pytest.mark.parametrize(
    ("cosine_before", "shares", "gap", "expected"),
    [(0.5, False, 60, True), (0.1, True, 60, True), (0.1, False, 60, False), (0.9, True, 86_400, False)],
)
def test_page_continues_a_topic_by_meaning_or_keyword_within_the_gap(
    cosine_before: float, shares: bool, gap: float, expected: bool
) -> None:
    assert continues(cosine=cosine_before, shares_keyword=shares, gap=gap, constants=DEFAULTS) is expected


def test_first_promotion_is_strictly_over_tau() -> None:
    row = FIGURES["promotion"]
    hot = next(pages for pages in range(1, 10) if is_hot(SegmentState(0, pages, 0), DEFAULTS))
    assert hot == row["first_heat_over_tau_at_pages"]
    assert heat(SegmentState(0, hot, 0), DEFAULTS) == row["heat_then"]


def test_promoted_segment_keeps_its_visits_and_is_no_longer_hot() -> None:
    assert FIGURES["promotion"]["after"] == {"visits": "unchanged", "pages": 0}
    assert heat(SegmentState(30, 0, 0), DEFAULTS) == 31.0
    assert not is_hot(SegmentState(30, 0, 0), DEFAULTS)


def test_every_hot_segment_with_unpromoted_pages_is_promoted() -> None:
    rows = FIGURES["promotion"]["starvation"]
    states = {
        name: SegmentState(int(row["heat"] - 1 - row["pages"]), row["pages"], 0)
        for name, row in rows["segments"].items()
    }
    assert [name for name, state in states.items() if is_hot(state, DEFAULTS)] == rows["promoted"]


def test_coldest_resident_is_evicted_before_the_new_segment_enters() -> None:
    row = FIGURES["eviction"]
    states = {name: SegmentState(item["visits"], item["pages"], 0) for name, item in row["before"].items()}
    assert coldest(states, DEFAULTS) == row["evicted"]


def test_least_visited_segment_stays_where_its_heat_is_higher() -> None:
    row = FIGURES["eviction"]["lfu_vs_heat"]
    states = {name: SegmentState(item["visits"], item["pages"], 0) for name, item in row["segments"].items()}
    assert coldest(states, DEFAULTS) == row["evicted"]


def test_idle_segment_is_evicted_among_equals() -> None:
    rows = FIGURES["eviction"]["recency_breaks_tie"]
    states = {row["segment"]: SegmentState(row["visits"], row["pages"], row["days"] * 86_400) for row in rows}
    for row in rows:
        assert heat(states[row["segment"]], DEFAULTS) == pytest.approx(row["heat"], abs=1e-6)
    assert coldest(states, DEFAULTS) == FIGURES["eviction"]["recency_evicts"]


def test_ties_are_broken_by_last_visit_then_creation_then_id() -> None:
    row = FIGURES["eviction"]["tie"]
    equal = {
        name: SegmentState(0, 1, 0, NOON, NOON + timedelta(seconds=at)) for at, name in enumerate(row["order_added"])
    }
    assert coldest(equal, DEFAULTS) == row["evicted"]
    visited = {**equal, "S3": SegmentState(0, 1, 0, NOON - timedelta(seconds=1), NOON + timedelta(hours=1))}
    assert coldest(visited, DEFAULTS) == "S3"
    assert coldest({"b": SegmentState(0, 1, 0, NOON, NOON), "a": SegmentState(0, 1, 0, NOON, NOON)}, DEFAULTS) == "a"


def test_heat_falls_while_a_segment_is_idle() -> None:
    row = FIGURES["eviction"]["after_30_days"]
    idle = SegmentState(row["visits"], row["pages"], 30 * 86_400)
    assert heat(idle, DEFAULTS) == pytest.approx(row["heat"], abs=1e-6)
    assert is_hot(idle, DEFAULTS) is row["is_hot"]


def test_pages_come_from_the_best_segments_and_each_once() -> None:
    rows = FIGURES["retrieval"]
    scores = {name: row["cos_to_query"] for name, row in rows["segments"].items()}
    pages = {name: row["pages_cos"] for name, row in rows["segments"].items()}
    chosen = select_segments(scores, DEFAULTS)
    assert chosen == ["A", "B", "C"]
    found = select_pages(chosen, pages, DEFAULTS)
    assert [page for page, _ in found.pages] == ["C1", "B1", "A1", "B2", "A2"]
    assert found.visited == ("A", "B", "C")
    few = select_pages(chosen, pages, merge_constants({"top_pages": 1}))
    assert ([page for page, _ in few.pages], few.visited) == (["C1"], ("A", "B", "C"))
    twice = select_pages(["A", "B"], {"A": {"P": 0.4}, "B": {"P": 0.9}}, DEFAULTS)
    assert twice.pages == (("P", 0.9),)


def test_keywords_of_the_question_count_for_its_segments() -> None:
    rows = FIGURES["retrieval"]
    found = rows["keywords"]
    two = merge_constants({"top_segments": 2, "top_pages": 3})
    chosen = select_segments(found["scores"], two)
    assert chosen == found["top_m_2"]
    pages = {name: row["pages_cos"] for name, row in rows["segments"].items()}
    assert [page for page, _ in select_pages(chosen, pages, two).pages] == found["top_k_3_pages"]


def test_full_queue_of_entries_loses_its_oldest() -> None:
    queue: list[str] = []
    for entry in FIGURES["lpm"]["add_order"]:
        queue, _ = queue_append(queue, entry, FIGURES["lpm"]["capacity"])
    assert queue == FIGURES["lpm"]["queue_after"]


def test_entries_are_ranked_by_their_cosine_and_cut_to_the_best() -> None:
    row = FIGURES["lpm"]
    rows = [(EntryQueue.KNOWLEDGE, name, row["cosines"][name]) for name in row["queue_after"]]
    assert [name for name, _ in best_entries(rows, DEFAULTS)] == row["ranked"]
    assert [name for name, _ in best_entries(rows, merge_constants({"top_entries": 2}))] == row["ranked"][:2]
    profile = [(EntryQueue.PROFILE, name, near) for _, name, near in rows]
    assert [name for name, _ in best_entries(profile, merge_constants({"top_entries": 1}))] == row["ranked"]


def test_every_figure_is_used() -> None:
    """Each part of the file is named by a test, and no row was lost from it."""
    folder = Path(__file__).parent
    tests = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("test_*.py")))
    parts = [*FIGURES, *(name for part in FIGURES.values() if isinstance(part, dict) for name in part)]
    assert [name for name in parts if f'"{name}"' not in tests] == []
    rows = {name: len(part["rows"]) for name, part in FIGURES.items() if isinstance(part, dict) and "rows" in part}
    assert rows == {"recency": 9, "fscore": 10}
    assert (len(FIGURES["heat"]), len(FIGURES["fifo"]["steps"]), len(FIGURES["robustness"])) == (11, 10, 4)


def test_constants_have_the_values_of_the_paper_and_stay_in_their_ranges() -> None:
    assert (DEFAULTS.stm_pages, DEFAULTS.theta, DEFAULTS.tau, DEFAULTS.mu) == (7, 0.6, 5.0, 1e7)
    assert (DEFAULTS.segments, DEFAULTS.entries, DEFAULTS.top_segments, DEFAULTS.top_pages) == (200, 100, 5, 10)
    for name, (low, high) in RANGES.items():
        assert low <= getattr(DEFAULTS, name) <= high


def test_persona_overrides_the_tenant_and_the_tenant_the_default() -> None:
    merged = merge_constants({"theta": 0.4, "tau": 3}, {"tau": 9})
    assert (merged.theta, merged.tau, merged.mu) == (0.4, 9.0, 1e7)


def test_context_passes_over_what_does_not_fit() -> None:
    assert fit(["aaa", "bbbbbb", "cc"], len, 5) == ["aaa", "cc"]
