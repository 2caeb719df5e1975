"""Tests of the postings that a question reads: of which memories, of which terms, and how many at most."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count
from pytest_django import Settings

from benchmarks.search_latency import OPEN
from benchmarks.synthetic import conversation, questions
from benchmarks.tenants import drafts_of
from governance.database import acting
from governance.models import Persona
from governance.personas.services import PersonaDraft, persona_create
from memos_web.config import EmbedderChoice
from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.index.facets import LAYERS
from vault.models import Cube, Embedding, Posting
from vault.retrieval import sql, statements
from vault.retrieval.queries import SearchQuery
from vault.retrieval.question import QuestionText, Terms
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import Layer, SearchMode

SIZE = 500
EVERYTHING = {"created_at": {"gte": "2000-01-01T00:00:00Z"}}
MIDDLE = {"event_time": {"gte": "2026-01-06T00:00:00Z", "lt": "2026-01-09T00:00:00Z"}}
ASKED = [*questions(conversation(SIZE, 3), 20, 1), *(" ".join(turn.text.split()[:4]) for turn in conversation(90, 3))]


@pytest.fixture
def talk_world(world: World) -> World:
    """acme with a conversation."""
    cubes_add(actor=world.alice.actor, drafts=drafts_of(conversation(SIZE, 3), OPEN))
    run_jobs()
    return world


@pytest.fixture
def copies_world(talk_world: World) -> World:
    """The same said in a second namespace."""
    cubes_add(actor=talk_world.alice.actor, drafts=drafts_of(conversation(SIZE, 3), None))
    run_jobs()
    return talk_world


def test_memories_outside_the_named_namespace_count_for_no_term(
    copies_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filtered = _search_all(copies_world, filters=EVERYTHING)
    _assert_same_results(_search_all(copies_world), filtered)
    wall = "AND posting.namespace_id = ANY(%(namespaces)s::uuid[])"
    assert wall in sql.WORDS
    monkeypatch.setattr(statements, "WORDS", sql.WORDS.replace(wall, ""))
    assert [_scored_contents(hits) for hits in _search_all(copies_world)] != [
        _scored_contents(hits) for hits in filtered
    ]


@pytest.fixture
def lengths(talk_world: World) -> list[tuple[int, int]]:
    """The terms of many memories, each with the number of its postings; the rarest first."""
    with acting(talk_world.alice.actor):
        counted = Posting.objects.filter(frequency__gt=0).values("term").annotate(postings=Count("cube_id"))
        return list(counted.filter(postings__gt=20).order_by("postings", "term").values_list("term", "postings"))


def test_postings_are_read_whole_while_each_term_has_its_share(
    talk_world: World, lengths: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = [term for term, _ in lengths]
    found = _score_words(talk_world, terms)
    monkeypatch.setattr(statements, "MOST_POSTINGS", len(terms) * lengths[-1][1])
    assert lengths[-1][1] < SIZE
    assert _score_words(talk_world, terms) == found


def test_commonest_terms_are_left_out_of_a_question_with_too_many_postings(
    talk_world: World, lengths: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (rarest, few), (next_rarest, more), (commonest, _) = lengths[0], lengths[1], lengths[-1]
    monkeypatch.setattr(statements, "MOST_POSTINGS", few + more)
    assert _score_words(talk_world, [commonest, rarest, next_rarest]) == _score_words(talk_world, [rarest, next_rarest])


def test_newest_postings_are_read_of_a_single_term_with_too_many(
    talk_world: World, lengths: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    commonest, count = lengths[-1]
    with acting(talk_world.alice.actor):
        holding = Posting.objects.filter(term=commonest).order_by("-cube_id").values_list("cube_id", flat=True)
        newest = {str(cube_id) for cube_id in holding[: count // 2]}
    monkeypatch.setattr(statements, "MOST_POSTINGS", count // 2)
    found = _score_words(talk_world, [commonest])
    assert len(found) == 10
    assert {cube_id for cube_id, _ in found} <= newest


def test_filter_that_passes_everything_changes_no_score(talk_world: World) -> None:
    for question in questions(conversation(SIZE, 3), 20, 1):
        search = SearchQuery(query=question)
        found = memories_search(actor=talk_world.alice.actor, search=search)
        filtered = memories_search(actor=talk_world.alice.actor, search=replace(search, filters=EVERYTHING))
        _assert_same_results([found], [filtered])


FILTERS: list[dict[str, Any]] = [
    {"layer": "mid_term"},
    {"layer": {"in": ["mid_term", "short_term"]}, "type": {"eq": "plaintext"}},
    {"type": "parameter"},
    {"persona": "heron"},
    {"persona": {"in": ["heron", "otter"]}},
    {"AND": [{"layer": "mid_term"}, {"persona": "otter"}]},
    MIDDLE,
    {"session_id": "session-2"},
    {"persona": "nobody"},
]


def test_filter_on_columns_of_the_index_finds_what_the_whole_condition_finds(talk_world: World) -> None:
    """By words, by vector, by speaker. The other search asks every memory it may see."""
    for name in ("heron", "otter"):
        persona_create(actor=talk_world.alice.actor, draft=PersonaDraft(name=name))
    with acting(talk_world.alice.actor):
        everyone = {persona.name: persona.id for persona in Persona.objects.all()}
        for number, cube in enumerate(Cube.objects.order_by("id")):
            cube.layer = [Layer.LONG_TERM, Layer.MID_TERM, Layer.SHORT_TERM][number % 3]
            cube.persona_id = [everyone["heron"], everyone["otter"], None][number % 7 % 3]
            fields = {"layer": LAYERS[cube.layer], "persona_id": cube.persona_id}
            Cube.objects.filter(id=cube.id).update(layer=cube.layer, persona_id=cube.persona_id)
            Posting.objects.filter(cube_id=cube.id).update(**fields)
            Embedding.objects.filter(cube_id=cube.id).update(**fields)
    _add_newer(talk_world)
    run_jobs()
    for filters in FILTERS:
        _check_equal_results(talk_world, filters)


def _check_equal_results(talk_world: World, filters: dict[str, Any]) -> None:
    whole = {"AND": [filters, {"OR": [EVERYTHING, EVERYTHING]}]}
    for question in [*ASKED[:5], "nothing that anybody knows"]:
        for mode in (SearchMode.HYBRID, SearchMode.LEXICAL, SearchMode.DENSE):
            search = SearchQuery(query=question, mode=mode, filters=filters)
            found = memories_search(actor=talk_world.alice.actor, search=search)
            _assert_same_results(
                [found], [memories_search(actor=talk_world.alice.actor, search=replace(search, filters=whole))]
            )


@pytest.mark.parametrize("filters", [{}, EVERYTHING])
def test_granted_memories_have_equal_results_by_key_and_by_table(
    world: World, alice: Contract, monkeypatch: pytest.MonkeyPatch, settings: Settings, filters: dict[str, Any]
) -> None:
    """An actor with many single grants gets another statement, and another one for the index of vectors."""
    settings.MEMOS_EMBEDDER = EmbedderChoice(
        family="universal-sentence-encoder", model="", url="", key=""
    )  # the one with an index
    opened = [alice.add(f"The heron number {number} stands.")["id"] for number in range(3)]
    kept = alice.add("The heron number 9 stands.")["id"]
    run_jobs()
    for memory_id in opened:
        give_grant(alice, world, "bob", "memory", memory_id)
    search = SearchQuery(query="Which heron stands?", filters=filters)
    found = memories_search(actor=world.bob.actor, search=search)
    assert {str(hit.view.cube.id) for hit in found} == set(opened)
    assert all(hit.parts.lexical > 0 and hit.parts.dense > 0 for hit in found)
    monkeypatch.setattr(statements, "MANY_GRANTED", 1)
    monkeypatch.setattr(statements, "is_index_cheaper", lambda *_, alone: True)
    with _statements() as told:
        by_key = memories_search(actor=world.bob.actor, search=search)
    _assert_same_results([found], [by_key])
    assert sum(statement.count("granted.id = cube_id") for statement in told) == (0 if filters else 1)
    assert kept not in {str(hit.view.cube.id) for hit in by_key}


@contextmanager
def _statements() -> Iterator[list[str]]:
    """All that PostgreSQL is asked meanwhile."""
    told: list[str] = []

    def record(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        told.append(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        yield told


def _add_newer(world: World) -> None:
    said = [f"{' '.join(question.rstrip('?').split()[-2:])} newer {number}" for number, question in enumerate(ASKED)]
    cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content=content, namespace=OPEN) for content in said])


def _search_all(world: World, **narrowed: Any) -> list[list[Hit]]:
    searches = [SearchQuery(query=question, namespaces=(OPEN,), **narrowed) for question in ASKED[:30]]
    return [memories_search(actor=world.alice.actor, search=search) for search in searches]


def _score_words(world: World, terms: Sequence[int]) -> list[tuple[str, float]]:
    """Return the result of a question with these terms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuestionText, "make_terms", lambda *_, **__: Terms(list(terms), [], bare=False))
        search = SearchQuery(query="any", mode=SearchMode.LEXICAL)
        return [row for row in _scored_contents(memories_search(actor=world.alice.actor, search=search)) if row[1]]


def _scored_contents(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    return [(str(hit.view.cube.id), round(hit.score, 6)) for hit in hits]


def _assert_same_results(found: Sequence[Sequence[Hit]], others: Sequence[Sequence[Hit]]) -> None:
    assert [_scored_contents(hits) for hits in found] == [_scored_contents(hits) for hits in others]
