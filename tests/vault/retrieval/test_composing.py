"""Tests of cached statements: one search's statement is never used for another that it does not fit."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import made
from vault.cubes import visibility
from vault.cubes.visibility import ComposedQuery, compose, compose_once
from vault.retrieval import scope

PURPOSES: list[dict[str, Any]] = [{}, {"x_memory_purpose": "treatment"}, {"x_memory_purpose": "billing"}]
PLACES: list[dict[str, Any]] = [{}, {"namespaces": ["/clinic"]}, {"include_archived": True}]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each kept statement is compared with one made anew; the names of those that were."""
    names: list[str] = []

    def both(name: str, rows: Callable[[], Any], *, key: Any) -> ComposedQuery:
        found = compose_once(name, rows, key=key)
        assert found == compose(name, rows())
        names.append(name)
        return found

    monkeypatch.setattr(scope, "compose_once", both)
    return names


def test_cached_statement_equals_a_newly_composed_one(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract, compared: list[str]
) -> None:
    open_note = alice.add("Notes in the clinic.", namespace="/clinic")["id"]
    private = alice.add("Notes of alice.")["id"]
    run_jobs()

    def all_search() -> None:
        for _ in range(2):
            for person in (olivia, alice, bob, charlie):
                for purpose in PURPOSES:
                    for place in PLACES:
                        assert person.post("memories/search/", {"query": "notes", **place}, **purpose).status == 200

    all_search()
    grant = give_grant(alice, world, "bob", "memory", private, conditions={"purpose": ["treatment"]})
    all_search()
    give_grant(olivia, world, "bob", "memory", open_note, effect="deny")
    all_search()
    made(olivia, "purpose", {"where": {"namespace": "/clinic"}, "purposes": ["treatment"]}, name="clinic")
    all_search()
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    all_search()
    assert {"seen", "visible"} == set(compared)


def test_cache_is_bounded(alice: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visibility, "MOST_CACHED", 2)
    for purpose in range(4):
        alice.post("memories/search/", {"query": "notes"}, x_memory_purpose=f"purpose-{purpose}")
        assert len(visibility._cache) <= 2
