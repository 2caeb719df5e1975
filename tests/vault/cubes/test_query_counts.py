"""Tests of the number of queries of a call: it must not grow with the rows."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

MANY = 60


@pytest.fixture
def full(alice: Contract) -> Contract:
    """alice with more memories than a page holds, and keys that are known already."""
    items = [{"content": f"Row {number}.", "persona": "alice", "subject": "c"} for number in range(MANY)]
    alice.post("memories/bulk/", {"items": items})
    run_jobs()
    alice.get("memories/")
    return alice


def queries(call: Callable[[], object]) -> int:
    """All statements of a request but the bounds of its transactions; finding the key's holder is four of them."""
    with CaptureQueriesContext(connection) as captured:
        call()
    bounds = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK")
    return sum(not query["sql"].startswith(bounds) for query in captured.captured_queries)


def test_reading_costs_the_same_for_one_and_for_fifty(full: Contract) -> None:
    memory = full.get("memories/?page_size=1").json["results"][0]
    one = queries(lambda: full.get("memories/?page_size=1"))
    assert queries(lambda: full.get("memories/?page_size=50")) == one
    assert one <= 11
    assert queries(lambda: full.get(f"memories/{memory['id']}/")) <= 10


def test_searching_costs_no_more_for_fifty_than_for_one(full: Contract) -> None:
    """The best of sixty that words tell alike is asked of their vectors; fifty of them hold all that could matter."""
    one = queries(lambda: full.search("row", top_k=1))
    fifty = queries(lambda: full.search("row", top_k=50))
    assert 0 < fifty <= one <= 13


def test_adding_costs_the_same_for_two_and_for_a_hundred(full: Contract) -> None:
    def bulk(name: str, count: int) -> int:
        items = [{"content": f"{name} {number}."} for number in range(count)]
        return queries(lambda: full.post("memories/bulk/", {"items": items}))

    assert bulk("two", 2) == bulk("hundred", 100)
    assert bulk("one", 1) <= 16  # four for the locks of heavy calls
    assert queries(lambda: full.add("Just one more.")) <= 12


def test_listing_holds_costs_the_same_for_one_and_for_twenty(olivia: Contract) -> None:
    for number in range(20):
        olivia.post("holds/", {"reason": f"Case {number}.", "subject": "carla"})
    one = queries(lambda: olivia.get("holds/?page_size=1"))
    assert queries(lambda: olivia.get("holds/?page_size=20")) == one
    assert one <= 14
