"""Vectors are looked through unless words alone have found enough that outweighs whatever they could bring."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from governance.actor import Actor
from tests.factories import World
from tests.vault.outbox import run_jobs
from vault.cubes.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.retrieval import ranker, sql
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search

OLD, ASKED_FOR = datetime(2021, 2, 3, tzinfo=UTC), datetime(2023, 5, 12, tzinfo=UTC)
WANTED = "We went trekking in the mountains on vacation."
QUESTION = "hiking trip in May 2023"


@pytest.fixture
def walker(world: World) -> Actor:
    """Whose twelve other trips have a word of the question, and whose trek has none but the right time."""
    said = [f"Invoice {number} was paid by the bank." for number in range(180)]
    said += [f"Trip {number}." for number in range(12)] + ["Hiking trip."]
    drafts = [CubeDraft(content=content, event_time=OLD) for content in said]
    cubes_add(actor=world.alice.actor, drafts=[*drafts, CubeDraft(content=WANTED, event_time=ASKED_FOR)])
    run_jobs()
    return world.alice.actor


def test_what_fits_the_time_is_found_without_a_word_of_the_question(walker: Actor) -> None:
    assert WANTED in _found(walker, QUESTION)[:2]


def test_the_proof_sees_a_bound_that_forgets_the_time(walker: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = ">= %(w_dense)s + %(w_entity)s + %(w_time)s"
    assert bound in sql.INDEXED
    monkeypatch.setattr(ranker, "INDEXED", sql.INDEXED.replace(bound, ">= %(w_dense)s"))
    assert WANTED not in _found(walker, QUESTION)


def test_vectors_are_left_alone_where_words_have_found_enough(walker: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten trips outweigh what a vector alone could bring to a question that asks for no time and nobody."""
    statement = sql.INDEXED.replace("ORDER BY {distance}", "ORDER BY 1 / (SELECT 0)")  # fails where it is asked
    assert statement != sql.INDEXED
    monkeypatch.setattr(ranker, "INDEXED", statement)
    assert len(_found(walker, "trip")) == 10


def _found(actor: Actor, question: str) -> Sequence[str]:
    return [hit.view.words.content for hit in memories_search(actor=actor, search=SearchQuery(query=question))]
