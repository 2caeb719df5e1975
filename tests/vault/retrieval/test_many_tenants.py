"""Promise 22: isolation costs no recall. Small tenants beside large ones, on one connection, over the vector index.

What the index finds is held against the exact statement, which a filter that lets everything through asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from django.db import connection
from pytest_django import Settings

from benchmarks.search_latency import OPEN
from benchmarks.synthetic import conversation, questions, unknown_questions
from benchmarks.tenants import Caller, drafts_of, fill_tenant, owner_of, reader_of
from governance.actor import Actor
from governance.database import acting
from memos_web.config import EmbedderChoice
from tests.harness.databases import Clone
from tests.harness.evidence import Evidence, Figure
from tests.vault.outbox import run_jobs
from vault.models import Cube
from vault.retrieval import sources, statements
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.vocabulary import SearchMode

pytestmark = pytest.mark.full

ALL_OF_THEM = {"created_at": {"gte": "2000-01-01T00:00:00Z"}}
TOP_K = 10
SEARCHES, SEARCHES_IN_FULL = 40, 200
Figures = dict[str, Figure]


@dataclass(frozen=True)
class Place:
    """A tenant of `size` memories, and questions about them and about what it never heard of."""

    owner: Caller
    size: int
    asked: list[str]  # on and off topic in turn


@dataclass(frozen=True)
class Many:
    small: list[Place]
    large: Place
    reader: Actor  # of the large tenant; sees a tenth of it


@pytest.fixture
def many(database: Clone, settings: Settings, full_size: bool, monkeypatch: pytest.MonkeyPatch) -> Many:
    """Tenants of 10, 100 and 300 beside one of 2,000; at full size of 10, 100 and 10,000 among 100,000."""
    settings.MEMOS_EMBEDDER = EmbedderChoice(family="universal-sentence-encoder", model="", url="", key="")
    if not full_size:  # what a large tenant has is then found in this one
        monkeypatch.setattr(statements, "INDEX_COST", 2)
        monkeypatch.setattr(statements, "COMPARED_ALONE", 1_000)
    sizes, rest = ((10, 100, 10_000), 89_890) if full_size else ((10, 100, 300), 2_000)
    searches = SEARCHES_IN_FULL if full_size else SEARCHES
    small = [_fill_place(size, seed, searches) for seed, size in enumerate(sizes, start=1)]
    large = _fill_place(rest, 50, searches, shown=0.1)
    run_jobs()
    return Many(small, large, reader_of(f"tenant-{rest}").actor)


def _fill_place(size: int, seed: int, searches: int, shown: float = 0.0) -> Place:
    owner = owner_of(f"tenant-{size}")
    turns = conversation(size, seed)
    for number in range(0, size, 1_000):
        drafts = drafts_of(turns[number : number + 1_000], None)
        seen = round(len(drafts) * shown)
        fill_tenant(owner.actor, [replace(draft, namespace=OPEN) for draft in drafts[:seen]] + drafts[seen:])
    half = searches // 2
    pairs = zip(questions(turns, half, seed), unknown_questions(half, seed), strict=True)
    return Place(owner, size, [question for pair in pairs for question in pair])


def test_isolation_costs_no_recall(many: Many, monkeypatch: pytest.MonkeyPatch, evidence: Evidence) -> None:
    """One test, because loading takes longer than all that is asked of it."""
    figures = {
        **_check_small_tenants(many),
        **_check_recall_of_index(many.large),
        **_check_reader_of_a_tenth(many),
    }
    _check_starving_index(many, monkeypatch)
    memories = sum(place.size for place in [*many.small, many.large])
    evidence(row=22, name="isolation-costs-no-recall", figures={"memories": memories, **figures})


def _check_small_tenants(many: Many) -> Figures:
    figures: Figures = {}
    for place in many.small:
        _check_results_are_full_and_own(place.owner.actor, place.asked, place.size)
        figures[f"full and own of {place.size}"] = len(place.asked)
        figures[f"recall@10 of {place.size}"] = recall = round(_measure_recall(place, 20), 4)
        assert recall >= 0.99, place.size
    assert figures[f"recall@10 of {many.small[0].size}"] == 1.0
    return figures


def _check_recall_of_index(large: Place) -> Figures:
    assert any("embedding_nearest" in _explain_search(large.owner.actor, question) for question in large.asked)
    return _measure_recalls(large, f"of {large.size}")


def _check_reader_of_a_tenth(many: Many) -> Figures:
    reader = replace(many.large, owner=replace(many.large.owner, actor=many.reader))
    seen = many.large.size // 10
    _check_results_are_full_and_own(many.reader, reader.asked, seen)
    whose = f"of {seen} among {many.large.size}"
    return {f"full and own {whose}": len(reader.asked), **_measure_recalls(reader, whose)}


def _measure_recalls(place: Place, whose: str) -> Figures:
    """By words and vectors, and by vectors alone."""
    found = {mode: _measure_recall(place, 60, mode=mode) for mode in (SearchMode.HYBRID, SearchMode.DENSE)}
    assert min(found.values()) >= 0.99, found
    return {f"recall@10 {whose}, {mode}": round(recall, 4) for mode, recall in found.items()}


def _check_starving_index(many: Many, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index for everyone, asked once: it ends before it has found what is theirs. The mutant takes that for all."""
    monkeypatch.setattr(statements, "is_index_cheaper", lambda *_, alone: True)
    monkeypatch.setattr(sources, "EF_ALONE", statements.EF_SEARCH)
    monkeypatch.setattr(statements, "STEADY_PLANS", statements.STEADY_PLANS.replace("relaxed_order", "off"))
    assert _measure_recall(many.small[1], 20, mode=SearchMode.DENSE) == 1.0
    monkeypatch.setattr(statements.Ranking, "has_more_vectors", lambda *_: False)
    assert _measure_recall(many.small[1], 20, mode=SearchMode.DENSE) < 0.9


def _check_results_are_full_and_own(actor: Actor, asked: Sequence[str], size: int) -> None:
    """Every search returns as many as there are, and nothing that the actor may not see."""
    own = _ids(actor)
    assert len(own) == size
    for question in asked:
        found = _result_ids(actor, question)
        assert len(found) == min(TOP_K, size), question
        assert own.issuperset(found)


def _result_ids(actor: Actor, question: str) -> list[UUID]:
    return [hit.view.cube.id for hit in memories_search(actor=actor, search=SearchQuery(query=question))]


def _measure_recall(place: Place, count: int, *, mode: SearchMode = SearchMode.HYBRID) -> float:
    """Mean share of the first ten that are as good as the exact first ten, over some of the questions."""
    shares = [_share(place.owner.actor, question, mode) for question in place.asked[:count]]
    return sum(shares) / len(shares)


def _share(actor: Actor, question: str, mode: SearchMode) -> float:
    search = SearchQuery(query=question, top_k=TOP_K, mode=mode)
    wanted = memories_search(actor=actor, search=replace(search, filters=ALL_OF_THEM))
    worst = min(hit.score for hit in wanted) - 1e-6  # of equals, either counts
    return sum(hit.score >= worst for hit in memories_search(actor=actor, search=search)) / len(wanted)


def _ids(actor: Actor) -> set[UUID]:
    with acting(actor):
        return set(Cube.objects.visible_to(actor).values_list("id", flat=True))


def _explain_search(actor: Actor, question: str) -> str:
    """Return PostgreSQL's plan for the nearest vectors."""
    told: list[str] = []

    def explain_statement(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if "near AS" in str(sql):
            with connection.cursor() as cursor:
                cursor.cursor.execute(f"EXPLAIN {sql}", params)
                told.extend(str(row[0]) for row in cursor.cursor.fetchall())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain_statement):
        _result_ids(actor, question)
    return "\n".join(told)
