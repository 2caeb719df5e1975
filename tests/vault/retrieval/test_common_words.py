"""Words that many memories contain: counted as a tenant grows, and set aside by a search that loses nothing by it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from benchmarks.search_latency import OPEN
from benchmarks.synthetic import conversation, questions
from benchmarks.tenants import drafts_of
from governance.actor import Actor
from governance.database import acting
from governance.keys.services import token_maker
from governance.models import OutboxEvent
from governance.vocabulary import Topic
from memos_web.config import EmbedderChoice
from tests.factories import World
from tests.governance.grants.test_grants import given
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.cubes import common_words
from vault.cubes.common_words import common_words_count
from vault.cubes.drafts import CubeDraft
from vault.cubes.jobs import cubes_index
from vault.cubes.rules import WORD_KIND
from vault.cubes.services import cube_purge, cubes_add
from vault.models import CommonWord, CommonWordsCount, Embedding
from vault.retrieval import ranker, ranking, sql
from vault.retrieval.queries import SearchQuery
from vault.retrieval.ranking import BEST, most_added, rarity, set_aside
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import SearchMode

COMMON_FROM = 20
SIZE = 500
EVERYTHING = {"created_at": {"gte": "2000-01-01T00:00:00Z"}}


def test_the_commonest_words_are_set_aside_while_the_best_are_likely_without_them() -> None:
    common = {1: 20_000, 2: 8_000, 3: 3_000}
    assert set_aside({1, 2, 3, 4}, common, 100_000).keys() == {1}
    assert most_added(rarity(20_000, 100_000)) < rarity(BEST, 100_000)
    assert set_aside({4, 5}, {}, 100_000) == {}


def test_one_word_always_stays() -> None:
    assert set_aside({1}, {1: 90_000}, 100_000) == {}
    assert set_aside({1, 2}, {1: 90_000, 2: 80_000}, 100_000).keys() == {1}


def test_a_word_of_more_cubes_than_are_counted_weighs_next_to_nothing() -> None:
    assert 0 < rarity(12, 10) < 0.05


@pytest.fixture
def words(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """acme with a conversation in which some words are common, and counted."""
    monkeypatch.setattr(common_words, "COMMON_FROM", COMMON_FROM)
    cubes_add(actor=world.alice.actor, drafts=drafts_of(conversation(SIZE, 3), OPEN))
    run_jobs()
    return world


def test_each_word_of_many_memories_is_counted_where_they_lie(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_words, "COMMON_FROM", 3)
    said = ["A heron stands.", "The heron flies.", "One heron sleeps.", "An otter swims."]
    cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content=content) for content in said])
    run_jobs()
    token = token_maker(world.acme.id).token(WORD_KIND, "heron")
    with acting(world.alice.actor):
        assert list(CommonWord.objects.values_list("term", "cubes")) == [(token, 3)]
        assert CommonWordsCount.objects.get().cubes == 4
    with acting(world.charlie.actor):
        assert not CommonWord.objects.exists()


def test_they_are_counted_again_only_after_the_tenant_has_grown_by_a_fourth(words: World) -> None:
    actor = words.alice.actor
    with acting(actor):
        first = CommonWordsCount.objects.get()
    for more, total in ((SIZE // 10, SIZE), (SIZE // 5, SIZE + SIZE // 10 + SIZE // 5)):
        cubes_add(actor=actor, drafts=[CubeDraft(content=f"Plain fact {total} {n}.") for n in range(more)])
        run_jobs()
        with acting(actor):
            assert CommonWordsCount.objects.get().cubes == total
    assert first.cubes == SIZE


def test_counting_is_a_job_of_its_own_that_keeps_no_vector_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common_words, "COMMON_FROM", 1)
    actor = world.alice.actor
    cubes_add(actor=actor, drafts=[CubeDraft(content="A heron stands.")])
    with acting(actor):
        (event,) = OutboxEvent.objects.filter(topic=Topic.CUBES_WRITTEN)
    write = cubes_index(actor, [event.payload])
    with acting(actor):
        write()
        assert Embedding.objects.count() == 1
        assert not CommonWord.objects.exists()
        assert OutboxEvent.objects.filter(topic=Topic.WORDS_DUE).count() == 1


def test_the_count_of_a_word_goes_with_the_last_memory_that_has_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common_words, "COMMON_FROM", 2)
    actor = world.alice.actor
    drafts = [CubeDraft(content=content) for content in ("A heron stands.", "One heron sleeps.")]
    first, second = [added.cube.id for added in cubes_add(actor=actor, drafts=drafts)]
    run_jobs()
    for cube_id, left in ((first, 1), (second, 0)):
        with acting(actor):
            assert CommonWord.objects.count() == 1
        cube_purge(actor=actor, cube_id=cube_id)
        with acting(actor):
            assert CommonWord.objects.count() == left


def test_two_jobs_do_not_count_the_same_tenant_at_once(words: World, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = words.alice.actor
    monkeypatch.setattr(common_words, "GROWTH", 0.5)  # always due
    monkeypatch.setattr(common_words, "ALONE", "SELECT %s = 'nobody'")
    with acting(actor):
        CommonWord.objects.all().delete()
        common_words_count(actor, [])()
        assert not CommonWord.objects.exists()
    monkeypatch.undo()


def test_a_search_that_sets_words_aside_finds_the_same_by_words(words: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores of BM25 are those of reading every word, also where more words are set aside than is worth it."""
    monkeypatch.setattr(ranking, "BEST", 1)
    asked = [" ".join(turn.text.split()[:4]) for turn in conversation(SIZE, 3)[::10]]
    aside = _recorded(monkeypatch)
    found = _searched(words.alice.actor, asked)
    assert sum(map(bool, aside)) >= 5
    monkeypatch.setattr(ranker, "set_aside", lambda words, common, cubes: {})
    _same(found, _searched(words.alice.actor, asked))


@pytest.fixture
def herons(world: World, monkeypatch: pytest.MonkeyPatch) -> Actor:
    """Who has BEST short memories of an otter, 250 of a heron, and three a little longer ones of both."""
    monkeypatch.setattr(common_words, "COMMON_FROM", 100)
    said = [f"Otter {number}." for number in range(BEST)]
    said += [f"Heron {number} and its nest of reeds." for number in range(250)]
    said += [f"Badger {number} and its den of clay." for number in range(600)]
    said += [f"Otter {number} met heron." for number in range(3)]
    cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content=content) for content in said])
    run_jobs()
    return world.alice.actor


@pytest.mark.parametrize("pays", ["true OR", "false AND"])
def test_what_has_a_common_word_too_is_among_the_best_however_it_is_read(
    herons: Actor, monkeypatch: pytest.MonkeyPatch, pays: str
) -> None:
    chosen = "(SELECT score FROM bar) > 0 AND"
    assert chosen in sql.INDEXED_WITH_COMMON
    monkeypatch.setattr(ranker, "INDEXED_WITH_COMMON", sql.INDEXED_WITH_COMMON.replace(chosen, pays))
    assert _best_three(herons, aside=_recorded(monkeypatch)) == 3


def test_the_proof_sees_a_bar_that_is_too_high(herons: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: common words are taken for nothing when the best are chosen."""
    monkeypatch.setattr(ranker, "most_added", lambda weight: 0.0)
    assert _best_three(herons, aside=_recorded(monkeypatch)) == 0


def test_a_filter_that_lets_everything_through_changes_no_score(words: World) -> None:
    for question in questions(conversation(SIZE, 3), 20, 1):
        search = SearchQuery(query=question)
        found = memories_search(actor=words.alice.actor, search=search)
        filtered = memories_search(actor=words.alice.actor, search=replace(search, filters=EVERYTHING))
        _same([found], [filtered])


def test_who_does_not_see_all_of_a_namespace_is_told_of_no_common_word(words: World, alice: Contract) -> None:
    """A word's number of memories would tell of those that are hidden."""
    given(alice, words, "bob", "memory", alice.add("A secret.", namespace=OPEN)["id"], effect="deny")
    statements: list[str] = []

    def record(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        statements.append(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        memories_search(actor=words.bob.actor, search=SearchQuery(query="A secret kept from bob"))
    assert any("hits AS" in sql for sql in statements)
    assert not any("vault_commonword" in sql for sql in statements)


@pytest.mark.parametrize("filters", [{}, EVERYTHING])
def test_what_is_granted_by_itself_is_found_alike_by_key_and_by_table(
    world: World, alice: Contract, monkeypatch: pytest.MonkeyPatch, settings: Settings, filters: dict[str, Any]
) -> None:
    """Whoever has many single grants is answered by another statement, and by the index of vectors by yet another."""
    settings.MEMOS_EMBEDDER = EmbedderChoice(family="wordllama", model="", url="", key="")  # the one with an index
    opened = [alice.add(f"The heron number {number} stands.")["id"] for number in range(3)]
    kept = alice.add("The heron number 9 stands.")["id"]
    run_jobs()
    for memory_id in opened:
        given(alice, world, "bob", "memory", memory_id)
    search = SearchQuery(query="Which heron stands?", filters=filters)
    found = memories_search(actor=world.bob.actor, search=search)
    assert {str(hit.view.cube.id) for hit in found} == set(opened)
    assert all(hit.parts.lexical > 0 and hit.parts.dense > 0 for hit in found)
    monkeypatch.setattr(ranker, "MANY_GRANTED", 1)
    monkeypatch.setattr(ranker, "index_pays", lambda visible, stored, nearest: True)
    statements = _statements(monkeypatch)
    by_key = memories_search(actor=world.bob.actor, search=search)
    _same([found], [by_key])
    (statement,) = statements
    assert statement.count("granted.id = cube_id") == (1 if filters else 2)
    assert kept not in {str(hit.view.cube.id) for hit in by_key}


def _statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ranking statements that are chosen from now on."""
    told: list[str] = []
    choose = ranker._statement

    def chosen(*args: Any) -> str:
        told.append(choose(*args))
        return told[-1]

    monkeypatch.setattr(ranker, "_statement", chosen)
    return told


def _recorded(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, float]]:
    told: list[dict[int, float]] = []

    def recorded(words: set[int], common: dict[int, int], cubes: int) -> dict[int, float]:
        told.append(set_aside(words, common, cubes))
        return told[-1]

    monkeypatch.setattr(ranker, "set_aside", recorded)
    return told


def _best_three(actor: Actor, *, aside: list[dict[int, float]]) -> int:
    """How many of the first three have both words of the question, of which one was set aside."""
    search = SearchQuery(query="otter heron", mode=SearchMode.LEXICAL)
    hits = memories_search(actor=actor, search=search)
    assert len(aside[0]) == 1
    return sum("met heron" in hit.view.words.content for hit in hits[:3])


def _searched(actor: Actor, asked: Sequence[str]) -> list[list[Hit]]:
    searches = [SearchQuery(query=question, mode=SearchMode.LEXICAL) for question in asked]
    return [memories_search(actor=actor, search=search) for search in searches]


def _told(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    return [(str(hit.view.cube.id), round(hit.score, 6)) for hit in hits]


def _same(found: Sequence[Sequence[Hit]], others: Sequence[Sequence[Hit]]) -> None:
    assert [_told(hits) for hits in found] == [_told(hits) for hits in others]
