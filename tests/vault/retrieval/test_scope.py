"""Tests of the scope of a search: cached statements fit each search, and filters narrow them as a queryset."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from governance.database import acting
from governance.personas.services import PersonaDraft, persona_create
from governance.prepared import prepared_cursor
from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy
from vault.content.drafts import CubeDraft
from vault.cubes import visibility
from vault.cubes.services import cubes_add
from vault.cubes.visibility import ComposedQuery, compose, compose_once
from vault.models import Namespace
from vault.retrieval import scope
from vault.retrieval.queries import SearchQuery
from vault.retrieval.scope import resolve_scope
from vault.vocabulary import Layer

PURPOSES: list[dict[str, Any]] = [{}, {"x_memory_purpose": "treatment"}, {"x_memory_purpose": "billing"}]
PLACES: list[dict[str, Any]] = [{}, {"namespaces": ["/clinic"]}, {"include_archived": True}]


@pytest.fixture
def compared_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each kept statement is compared_statements with one made anew; the names of those that were."""
    names: list[str] = []

    def compose_twice(name: str, rows: Callable[[], Any], *, key: Any) -> ComposedQuery:
        found = compose_once(name, rows, key=key)
        assert found == compose(name, rows())
        names.append(name)
        return found

    monkeypatch.setattr(scope, "compose_once", compose_twice)
    return names


def test_cached_statement_equals_a_newly_composed_one(
    world: World,
    olivia: Contract,
    alice: Contract,
    bob: Contract,
    charlie: Contract,
    compared_statements: list[str],
    pytestconfig: pytest.Config,
) -> None:
    """Each time a third of all searches is asked twice, drawn by --seed."""
    draw = random.Random(pytestconfig.getoption("--seed"))
    searches = list(product((olivia, alice, bob, charlie), PURPOSES, PLACES))
    open_note = alice.add("Notes in the clinic.", namespace="/clinic")["id"]
    private = alice.add("Notes of alice.")["id"]
    run_jobs()

    def search_as_everyone() -> None:
        for person, purpose, place in 2 * draw.sample(searches, len(searches) // 3):
            assert person.post("memories/search/", {"query": "notes", **place}, **purpose).status == 200

    search_as_everyone()
    grant = give_grant(alice, world, "bob", "memory", private, conditions={"purpose": ["treatment"]})
    search_as_everyone()
    give_grant(olivia, world, "bob", "memory", open_note, effect="deny")
    search_as_everyone()
    create_policy(olivia, "purpose", {"where": {"namespace": "/clinic"}, "purposes": ["treatment"]}, name="clinic")
    search_as_everyone()
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    search_as_everyone()
    assert {"seen", "visible"} == set(compared_statements)


def test_cache_is_bounded(alice: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visibility, "MOST_CACHED", 2)
    for purpose in range(4):
        alice.post("memories/search/", {"query": "notes"}, x_memory_purpose=f"purpose-{purpose}")
        assert len(visibility._cache) <= 2


FILTERS: list[dict[str, Any]] = [
    {"layer": "mid_term"},
    {"namespace": "/clinic"},
    {"persona": "heron"},
    {"speaker": "Ada"},
    {"metadata.kind": {"ne": "note"}},
    {"tags": {"in": ["red", "blue"]}},
    {"heat": {"lt": 1}, "importance": {"gte": 0.7}},
    {"OR": [{"namespace": "/clinic"}, {"NOT": {"importance": {"gte": 0.3}}}]},
    {"event_time": {"gte": "2026-05-01", "lt": "2026-06-01"}},
]


def test_filtered_statement_selects_the_rows_of_its_queryset(world: World) -> None:
    actor = world.alice.actor
    persona_create(actor=actor, draft=PersonaDraft(name="heron"))
    may = datetime(2026, 5, 7, tzinfo=UTC)
    drafts = [
        CubeDraft("A note.", layer=Layer.MID_TERM, namespace="/clinic", tags=("red",), importance=0.9),
        CubeDraft("Another note.", persona="heron", metadata={"kind": "note"}, event_time=may),
        CubeDraft("It rained.", speaker="Ada", importance=0.1),
    ]
    cubes_add(actor=actor, drafts=drafts)
    run_jobs()
    for filters in FILTERS:
        with acting(actor):
            asked = resolve_scope(actor, SearchQuery("note", filters=filters))
            namespaces = list(Namespace.objects.values_list("id", flat=True))
            rows = asked.compose_statement("rows", ("id",), namespaces)
            with prepared_cursor() as cursor:
                cursor.execute(rows.statement, rows.parameters)
                ids = {cube_id for (cube_id,) in cursor.fetchall()}
            assert ids == set(asked.select_cubes(namespaces).values_list("id", flat=True))
        assert 0 < len(ids) < len(drafts), filters
