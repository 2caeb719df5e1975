"""Tests of index eligibility: memories leave postings and vectors with the searchable states, and return with them."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest

from governance.actor import Actor
from governance.database import acting
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.cubes import eligibility
from vault.cubes.eligibility import index_cubes, unindex_expired_cubes
from vault.index.facets import LAYERS, TYPES
from vault.models import ArchivedPosting, Cube, Embedding, NamespaceSize, Posting
from vault.vocabulary import Layer, MemoryType, State

Superuser = Callable[[], psycopg.Connection]
ARCHIVED = {"include_archived": True}


def change_state(actor: Actor, memory: dict[str, Any], state: State) -> list[str]:
    """Change the state of a memory as a service does; return the ids that became searchable."""
    with acting(actor):
        Cube.objects.filter(id=memory["id"]).update(state=state)
        return [
            str(cube_id)
            for cube_id in index_cubes(list(Cube.objects.filter(id=memory["id"]).select_related("namespace")))
        ]


def has_index_rows(actor: Actor) -> tuple[bool, bool, bool]:
    """Return whether there are postings, archived postings, vectors."""
    with acting(actor):
        return Posting.objects.exists(), ArchivedPosting.objects.exists(), Embedding.objects.exists()


def search_contents(who: Contract, query: str, **fields: Any) -> list[str]:
    return [hit["content"] for hit in who.search(query, **fields)]


@pytest.mark.parametrize("state", [State.MERGED, State.EXPIRED, State.ARCHIVED])
def test_memory_that_leaves_the_searchable_states_leaves_the_index_and_comes_back(
    world: World, alice: Contract, state: State
) -> None:
    memory = alice.add("The heron nests by the mill.")
    run_jobs()
    before = alice.search("heron", explain=True)
    assert change_state(world.alice.actor, memory, state) == []
    assert has_index_rows(world.alice.actor) == (False, state is State.ARCHIVED, False)
    run_jobs()
    assert has_index_rows(world.alice.actor) == (False, state is State.ARCHIVED, False)
    assert alice.search("heron") == []
    assert change_state(world.alice.actor, memory, State.ACTIVATED) == [memory["id"]]
    assert has_index_rows(world.alice.actor) == (True, False, False)
    assert [hit["id"] for hit in alice.search("heron")] == [hit["id"] for hit in before]


def test_archived_memories_are_searched_on_request_by_those_who_may_read_them(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    said = {"messages": [{"role": "user", "name": "Ada", "content": "The heron left."}], "infer": False}
    (mine,) = alice.post("memories/", {**said, "session_id": "s1"}).json["results"]
    shared = alice.add("The heron came back.", namespace="/team")
    alice.add("The heron stays.", namespace="/team")
    for memory in (mine, shared):
        change_state(world.alice.actor, memory, State.ARCHIVED)
    assert search_contents(bob, "heron") == ["The heron stays."]
    assert set(search_contents(bob, "heron", **ARCHIVED)) == {"The heron stays.", "The heron came back."}
    assert search_contents(charlie, "heron", **ARCHIVED) == []
    assert search_contents(alice, "heron", session_id="s1", **ARCHIVED) == ["The heron left."]
    assert search_contents(alice, "heron", session_id="s1") == []
    hits = {hit["id"]: hit for hit in alice.search("heron", explain=True, **ARCHIVED)}
    assert hits[mine["id"]]["score_parts"]["lexical"] > 0
    with acting(world.alice.actor):
        assert Cube.objects.get(id=mine["id"]).state == State.ARCHIVED


def test_change_of_an_archived_memory_stays_archived(world: World, alice: Contract) -> None:
    memory = alice.add("The heron left.")
    change_state(world.alice.actor, memory, State.ARCHIVED)
    alice.patch(f"memories/{memory['id']}/", {"content": "The otter left."}, if_match='"1"')
    run_jobs()
    assert has_index_rows(world.alice.actor) == (False, True, False)
    assert search_contents(alice, "otter", **ARCHIVED) == ["The otter left."]


def expire(superuser: Superuser, ids: Sequence[str], ago: str = "1 second") -> None:
    superuser().execute(
        f"UPDATE vault_cube SET expires_at = now() - interval '{ago}' WHERE id = ANY(%s::uuid[])".encode(), [list(ids)]
    )


def test_search_is_full_however_many_of_the_best_have_just_expired(
    alice: Contract, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More memories have expired than a search leaves out by their ids, and than it examines first."""
    monkeypatch.setattr(eligibility, "EXPIRED_TOGETHER", 10_000)
    items = [{"content": "heron heron heron", "allow_duplicates": True} for _ in range(1_100)]
    ids = []
    for start in range(0, len(items), 550):
        reply = alice.post("memories/bulk/", {"items": items[start : start + 550]}).json
        ids += [item["memory"]["id"] for item in reply["results"]]
    for number in range(12):
        alice.add(f"A heron among {number} other birds of the lake.")
    expire(superuser, ids)
    found = alice.search("heron", mode="lexical", explain=True)
    assert len(found) == 10
    assert all(hit["score_parts"]["lexical"] > 0 for hit in found)


def test_expired_memories_leave_the_index_by_a_job_once_there_are_enough(
    world: World, alice: Contract, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eligibility, "EXPIRED_TOGETHER", 2)
    alice.add("The otter swims.")
    gone = [alice.add(f"The heron number {number} nests.")["id"] for number in range(2)]
    run_jobs()
    expire(superuser, gone[:1])
    with acting(world.alice.actor):
        assert unindex_expired_cubes(world.alice.actor) == 0
    expire(superuser, gone)
    alice.search("otter")
    run_jobs()  # what counts this read also clears the index
    with acting(world.alice.actor):
        assert not Posting.objects.filter(cube_id__in=gone).exists()
        assert Embedding.objects.count() == NamespaceSize.objects.get().cubes == 1
        assert Cube.objects.filter(is_indexed=False).count() == 2


def test_single_expired_memory_leaves_the_index_after_an_hour(
    world: World, alice: Contract, superuser: Superuser
) -> None:
    memory = alice.add("The heron nests.")
    expire(superuser, [memory["id"]], ago="2 hours")
    with acting(world.alice.actor):
        assert unindex_expired_cubes(world.alice.actor) == 1


def test_every_layer_and_type_has_a_number() -> None:
    """Stored numbers keep their meaning."""
    assert LAYERS == {Layer.SHORT_TERM: 1, Layer.MID_TERM: 2, Layer.LONG_TERM: 3}
    assert TYPES == {MemoryType.PLAINTEXT: 1, MemoryType.ACTIVATION: 2, MemoryType.PARAMETER: 3}
    assert set(LAYERS) == set(Layer)
    assert set(TYPES) == set(MemoryType)
    assert max([*LAYERS.values(), *TYPES.values()]) < 2**8
