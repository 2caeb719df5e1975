"""Vectors are looked through unless words alone have found enough that outweighs whatever they could bring."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from governance.actor import Actor
from tests.factories import World
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.retrieval import sources, sql
from vault.retrieval.fusion import Weights
from vault.retrieval.lexical import Candidates
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.retrieval.statements import is_index_cheaper

OLD, ASKED_FOR = datetime(2021, 2, 3, tzinfo=UTC), datetime(2023, 5, 12, tzinfo=UTC)
WANTED = "We went trekking in the mountains on vacation."
QUESTION = "hiking trip in May 2023"


@pytest.fixture
def walker(world: World) -> Actor:
    """A reader with twelve trips that share a word with the question, and a trek that shares only the time."""
    said = [f"Invoice {number} was paid by the bank." for number in range(180)]
    said += [f"Trip {number}." for number in range(12)] + ["Hiking trip."]
    drafts = [CubeDraft(content=content, event_time=OLD) for content in said]
    cubes_add(actor=world.alice.actor, drafts=[*drafts, CubeDraft(content=WANTED, event_time=ASKED_FOR)])
    run_jobs()
    return world.alice.actor


def test_memory_in_the_time_range_is_a_result_without_a_common_word(walker: Actor) -> None:
    assert WANTED in _contents(walker, QUESTION)[:2]


def test_search_without_the_time_source_misses_the_memory(walker: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Weights, "highest_without_words", property(lambda weights: weights.dense))
    monkeypatch.setattr(sources.SpeakerAndTime, "find", lambda *_: Candidates(None))
    assert WANTED not in _contents(walker, QUESTION)


def test_vectors_are_not_asked_when_words_give_enough_candidates(
    walker: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten trips outweigh what a vector alone could bring to a question that asks for no time and nobody."""
    statement = sql.DENSE.replace("ORDER BY {distance}", "ORDER BY 1 / (SELECT 0)")  # fails where it is asked
    assert statement != sql.DENSE
    monkeypatch.setattr(sources, "DENSE", statement)
    assert len(_contents(walker, "trip")) == 10


def _contents(actor: Actor, question: str) -> Sequence[str]:
    return [hit.view.words.content for hit in memories_search(actor=actor, search=SearchQuery(query=question))]


@pytest.mark.parametrize(
    ("visible", "stored", "alone", "pays"),
    [
        (0, 0, False, False),
        (2_000, 2_000, False, False),
        (3_000, 3_000, False, True),  # alone on its server
        (50_000, 5_000_000, False, False),  # one of a hundred
        (100_000, 10_000_000, False, True),
        (150_000, 150_000, True, False),  # all hangs on vectors
        (151_000, 151_000, True, True),
        (151_000, 100_000_000, True, False),  # a small part of what the index holds
    ],
)
def test_vector_index_is_used_where_cheaper(visible: int, stored: int, alone: bool, pays: bool) -> None:
    assert is_index_cheaper(visible, stored, nearest=20, alone=alone) is pays
