"""Words that many memories contain: read packed, a search finds what reading all rows would find."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
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
from vault.cubes.drafts import CubeDraft
from vault.cubes.index import compaction
from vault.cubes.index.facets import LAYERS
from vault.cubes.services import cubes_add
from vault.models import CompactedPostings, CompactedTerm, Compaction, Cube, Embedding, Posting
from vault.retrieval import ranker, sql
from vault.retrieval import statements as ranking_statements
from vault.retrieval.queries import SearchQuery
from vault.retrieval.question import Question, Terms
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import Layer, SearchMode

SIZE = 500
PACKED_FROM = 20
EVERYTHING = {"created_at": {"gte": "2000-01-01T00:00:00Z"}}
MIDDLE = {"event_time": {"gte": "2026-01-06T00:00:00Z", "lt": "2026-01-09T00:00:00Z"}}
ASKED = [*questions(conversation(SIZE, 3), 20, 1), *(" ".join(turn.text.split()[:4]) for turn in conversation(90, 3))]


@pytest.fixture
def words(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """acme with a conversation of which some words are packed."""
    monkeypatch.setattr(compaction, "PACKED_FROM", PACKED_FROM)
    monkeypatch.setattr(compaction, "SETTLED_SECONDS", 0.0)
    cubes_add(actor=world.alice.actor, drafts=drafts_of(conversation(SIZE, 3), OPEN))
    run_jobs()
    with acting(world.alice.actor):
        assert CompactedTerm.objects.filter(is_packed=True).count() > 10
    return world


def test_compacted_postings_give_the_results_of_rows(words: World) -> None:
    found = _searched(words)
    assert sum(hit.parts.lexical > 0 for hits in found for hit in hits) > 5 * len(ASKED)
    with _in_rows(words):
        _same(found, _searched(words))


def test_rows_newer_than_compacted_postings_are_searched_too(words: World) -> None:
    _add_newer(words)
    found = _searched(words)
    assert any("newer" in hit.view.words.content for hits in found for hit in hits)
    with _in_rows(words):
        _same(found, _searched(words))


def test_the_proof_sees_a_search_that_forgets_what_is_newer(words: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _add_newer(words)
    newer = "posting.cube_id > asked.until"
    assert newer in sql.WORDS
    found = _searched(words)
    monkeypatch.setattr(ranker, "WORDS", sql.WORDS.replace(newer, f"{newer} AND asked.until = {sql.NONE}"))
    assert [_scored_contents(hits) for hits in found] != [_scored_contents(hits) for hits in _searched(words)]


def test_expired_memory_in_compacted_postings_does_not_count(words: World) -> None:
    with acting(words.alice.actor):
        every_other = [cube_id for index, cube_id in enumerate(_all_ids()) if index % 2]
        Cube.objects.filter(id__in=every_other).update(expires_at=datetime.now(UTC) - timedelta(days=1))
    found = _searched(words)
    assert not {hit.view.cube.id for hits in found for hit in hits} & set(every_other)
    with _in_rows(words):
        _same(found, _searched(words))


@pytest.fixture
def both(words: World) -> World:
    """The same said in a second namespace, and packed there, too."""
    cubes_add(actor=words.alice.actor, drafts=drafts_of(conversation(SIZE, 3), None))
    run_jobs()
    with acting(words.alice.actor):
        packed = CompactedPostings.objects.values("term").annotate(namespaces=Count("namespace_id"))
        assert packed.filter(namespaces=2).count() > 10
    return words


def test_what_lies_in_a_namespace_that_is_not_asked_for_counts_for_no_word(both: World) -> None:
    """The statement of filters, which reads nothing packed, says the same."""
    _same(_within(both), _within(both, filters=EVERYTHING))


@pytest.mark.parametrize(
    "wall",
    ["AND packed.namespace_id = ANY(%(namespaces)s::uuid[])", "AND posting.namespace_id = ANY(%(namespaces)s::uuid[])"],
)
def test_the_proof_sees_a_namespace_that_is_read_though_it_is_not_asked_for(
    both: World, monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    cubes_add(actor=both.alice.actor, drafts=drafts_of(conversation(SIZE // 9, 3), None))  # in rows
    filtered = _within(both, filters=EVERYTHING)
    _same(_within(both), filtered)
    assert wall in sql.WORDS
    monkeypatch.setattr(ranker, "WORDS", sql.WORDS.replace(wall, ""))
    assert [_scored_contents(hits) for hits in _within(both)] != [_scored_contents(hits) for hits in filtered]


def test_the_commonest_words_are_left_out_where_a_question_has_too_many(
    words: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with acting(words.alice.actor):
        sizes = {one.term: len(one.postings) for one in CompactedPostings.objects.all()}
    rarest, commonest = min(sizes, key=lambda term: sizes[term]), max(sizes, key=lambda term: sizes[term])
    assert sizes[rarest] < sizes[commonest]
    monkeypatch.setattr(ranker, "WORDS", sql.WORDS.replace(str(sql.MOST_BYTES), str(sizes[rarest])))
    both, one, least = (_lexical(words, terms) for terms in ((rarest, commonest), (rarest,), (commonest,)))
    assert both == one
    assert least  # one word is always read


def test_a_filter_that_lets_everything_through_changes_no_score(words: World) -> None:
    for question in questions(conversation(SIZE, 3), 20, 1):
        search = SearchQuery(query=question)
        found = memories_search(actor=words.alice.actor, search=search)
        filtered = memories_search(actor=words.alice.actor, search=replace(search, filters=EVERYTHING))
        _same([found], [filtered])


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


def test_filter_on_columns_of_the_index_finds_what_the_whole_condition_finds(words: World) -> None:
    """In packed values and in rows; by words, by vector, by speaker. The other search asks every memory it may see."""
    for name in ("heron", "otter"):
        persona_create(actor=words.alice.actor, draft=PersonaDraft(name=name))
    with acting(words.alice.actor):
        everyone = {one.name: one.id for one in Persona.objects.all()}
        for number, cube in enumerate(Cube.objects.order_by("id")):
            cube.layer = [Layer.LONG_TERM, Layer.MID_TERM, Layer.SHORT_TERM][number % 3]
            cube.persona_id = [everyone["heron"], everyone["otter"], None][number % 7 % 3]
            fields = {"layer": LAYERS[cube.layer], "persona_id": cube.persona_id}
            Cube.objects.filter(id=cube.id).update(layer=cube.layer, persona_id=cube.persona_id)
            Posting.objects.filter(cube_id=cube.id).update(**fields)
            Embedding.objects.filter(cube_id=cube.id).update(**fields)
        CompactedTerm.objects.all().delete()
        CompactedPostings.objects.all().delete()
        Compaction.objects.all().delete()
    _add_newer(words)
    run_jobs()
    with acting(words.alice.actor):
        assert CompactedTerm.objects.filter(is_packed=True).exists()
    for filters in FILTERS:
        _finds_the_same(words, filters)


def _finds_the_same(words: World, filters: dict[str, Any]) -> None:
    whole = {"AND": [filters, {"OR": [EVERYTHING, EVERYTHING]}]}
    for question in [*ASKED[:12], "nothing that anybody knows"]:
        for mode in (SearchMode.HYBRID, SearchMode.LEXICAL, SearchMode.DENSE):
            search = SearchQuery(query=question, mode=mode, filters=filters)
            found = memories_search(actor=words.alice.actor, search=search)
            _same([found], [memories_search(actor=words.alice.actor, search=replace(search, filters=whole))])


def test_denied_memory_leaves_no_trace_in_compacted_postings(words: World, alice: Contract) -> None:
    """The frequency of a word there would reveal denied memories."""
    with acting(words.alice.actor):
        hidden = list(Cube.objects.order_by("id").values_list("id", flat=True)[: SIZE // 3])
    for one in hidden[:40]:
        give_grant(alice, words, "bob", "memory", str(one), effect="deny")
    searches = [SearchQuery(query=question) for question in ASKED[:20]]
    packed = [memories_search(actor=words.bob.actor, search=search) for search in searches]
    with _in_rows(words):
        _same(packed, [memories_search(actor=words.bob.actor, search=search) for search in searches])
    assert not {hit.view.cube.id for hits in packed for hit in hits} & set(hidden[:40])


@pytest.mark.parametrize("filters", [{}, EVERYTHING])
def test_granted_memories_have_equal_results_by_key_and_by_table(
    world: World, alice: Contract, monkeypatch: pytest.MonkeyPatch, settings: Settings, filters: dict[str, Any]
) -> None:
    """An actor with many single grants gets another statement, and another one for the index of vectors."""
    settings.MEMOS_EMBEDDER = EmbedderChoice(family="wordllama", model="", url="", key="")  # the one with an index
    opened = [alice.add(f"The heron number {number} stands.")["id"] for number in range(3)]
    kept = alice.add("The heron number 9 stands.")["id"]
    run_jobs()
    for memory_id in opened:
        give_grant(alice, world, "bob", "memory", memory_id)
    search = SearchQuery(query="Which heron stands?", filters=filters)
    found = memories_search(actor=world.bob.actor, search=search)
    assert {str(hit.view.cube.id) for hit in found} == set(opened)
    assert all(hit.parts.lexical > 0 and hit.parts.dense > 0 for hit in found)
    monkeypatch.setattr(ranker, "MANY_GRANTED", 1)
    monkeypatch.setattr(ranking_statements, "index_pays", lambda *_, alone: True)
    with _statements() as statements:
        by_key = memories_search(actor=world.bob.actor, search=search)
    _same([found], [by_key])
    assert sum(statement.count("granted.id = cube_id") for statement in statements) == (0 if filters else 1)
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


@contextmanager
def _in_rows(world: World) -> Iterator[None]:
    """Nothing is packed meanwhile."""
    with acting(world.alice.actor):
        packed = CompactedTerm.objects.filter(is_packed=True)
        assert packed.update(is_packed=False) > 0
    yield
    with acting(world.alice.actor):
        CompactedTerm.objects.update(is_packed=True)


def _add_newer(world: World) -> None:
    said = [f"{' '.join(question.rstrip('?').split()[-2:])} newer {number}" for number, question in enumerate(ASKED)]
    cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content=content, namespace=OPEN) for content in said])


def _within(world: World, **narrowed: Any) -> list[list[Hit]]:
    searches = [SearchQuery(query=question, namespaces=(OPEN,), **narrowed) for question in ASKED[:30]]
    return [memories_search(actor=world.alice.actor, search=search) for search in searches]


def _lexical(world: World, terms: Sequence[int]) -> list[tuple[str, float]]:
    """Return the result of a question with these terms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Question, "terms", lambda *_, **__: Terms(list(terms), [], bare=False))
        search = SearchQuery(query="any", mode=SearchMode.LEXICAL)
        return [one for one in _scored_contents(memories_search(actor=world.alice.actor, search=search)) if one[1]]


def _all_ids() -> list[Any]:
    return list(Cube.objects.order_by("id").values_list("id", flat=True))


def _searched(world: World) -> list[list[Hit]]:
    return [memories_search(actor=world.alice.actor, search=SearchQuery(query=question)) for question in ASKED]


def _scored_contents(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    return [(str(hit.view.cube.id), round(hit.score, 6)) for hit in hits]


def _same(found: Sequence[Sequence[Hit]], others: Sequence[Sequence[Hit]]) -> None:
    assert [_scored_contents(hits) for hits in found] == [_scored_contents(hits) for hits in others]
