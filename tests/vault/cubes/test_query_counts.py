"""Tests that the number of queries of a call does not grow with the number of rows."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.cubes.services import EVENT_CHUNK

MANY = 60


@pytest.fixture
def full(alice: Contract) -> Contract:
    """Return alice with more memories than a page holds, and cached keys."""
    items = [{"content": f"Row {number}.", "persona": "alice", "subject": "c"} for number in range(MANY)]
    alice.post("memories/bulk/", {"items": items})
    run_jobs()
    alice.get("memories/")
    return alice


def count_queries(call: Callable[[], object]) -> int:
    """Count the statements of a call without those that begin and end transactions; four authenticate the key."""
    with CaptureQueriesContext(connection) as captured:
        call()
    bounds = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK")
    return sum(not query["sql"].startswith(bounds) for query in captured.captured_queries)


def test_reading_costs_the_same_for_one_and_for_fifty(full: Contract) -> None:
    memory = full.get("memories/?page_size=1").json["results"][0]
    first = count_queries(lambda: full.get("memories/?page_size=1"))
    assert count_queries(lambda: full.get("memories/?page_size=50")) == first
    assert first <= 11
    assert count_queries(lambda: full.get(f"memories/{memory['id']}/")) <= 10


def test_searching_costs_no_more_for_fifty_than_for_one(full: Contract) -> None:
    """A search for one hit compares the vectors of sixty equal lexical scores; a search for fifty needs no more."""
    first = count_queries(lambda: full.search("row", top_k=1))
    fifty = count_queries(lambda: full.search("row", top_k=50))
    assert 0 < fifty <= first <= 13


def test_adding_costs_the_same_for_two_and_for_eighty(full: Contract) -> None:
    def count_bulk(name: str, count: int) -> int:
        items = [{"content": f"{name} {number}."} for number in range(count)]
        return count_queries(lambda: full.post("memories/bulk/", {"items": items}))

    assert count_bulk("two", 2) == count_bulk("eighty", EVENT_CHUNK)  # as many as one event has
    assert count_bulk("one", 1) <= 18  # four for the locks of heavy calls, two for the models that reconcile
    assert count_queries(lambda: full.add("Just one more.")) <= 13  # one for the models that reconcile


def test_listing_holds_costs_the_same_for_one_and_for_twenty(olivia: Contract) -> None:
    for number in range(20):
        olivia.post("holds/", {"reason": f"Case {number}.", "subject": "carla"})
    first = count_queries(lambda: olivia.get("holds/?page_size=1"))
    assert count_queries(lambda: olivia.get("holds/?page_size=20")) == first
    assert first <= 14
