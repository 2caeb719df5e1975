"""Tests of expired memories: stored until erased, absent from every search, name, place and number."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest

from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]


@pytest.mark.parametrize("is_excepted", [False, True])
@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_author_of_expired_memories_only_is_not_a_speaker(
    world: World, olivia: Contract, bob: Contract, superuser: Superuser, mode: str, is_excepted: bool
) -> None:
    for text in ("The otter swims at noon.", "Zelda met Ada Miller.", "Quiet water sleeps by the weir."):
        olivia.add(text, namespace="/team")
    denied = olivia.add("Nobody knows.", namespace="/team")["id"]
    run_jobs()
    if is_excepted:
        give_grant(olivia, world, "bob", "memory", denied, effect="deny")
    before = _scored_results(bob, "Zelda otter", mode)
    said = _say(olivia, ["Nothing."], name="Zelda")
    assert _scored_results(bob, "Zelda otter", mode) != before
    _expire(superuser, said)
    assert _scored_results(bob, "Zelda otter", mode) == before


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_expired_memory_takes_no_place_among_the_nearest(
    olivia: Contract, bob: Contract, superuser: Superuser, mode: str
) -> None:
    olivia.add("An otter is asleep beneath a weir.", namespace="/team")
    run_jobs()
    question = "otters sleeping weirs beneath"
    (before,) = bob.search(question, mode=mode, explain=True)
    _expire(superuser, _say(olivia, [f"{question} {number}" for number in range(40)], name="Yan"))
    (after,) = bob.search(question, mode=mode, explain=True)
    assert after["score_parts"]["dense"] == before["score_parts"]["dense"] > 0


def test_entity_of_expired_memories_only_begins_no_walk(olivia: Contract, bob: Contract, superuser: Superuser) -> None:
    olivia.add("The yacht belongs to Zorblax Industries.", namespace="/team")
    olivia.add("Quiet water sleeps by the weir.", namespace="/team")
    run_jobs()
    question = "What about Zorblax Industries in quiet water?"
    before = _scored_results(bob, question, "graph")
    _expire(superuser, _say(olivia, [f"Zorblax Industries wrote {number}." for number in range(60)], name="Yan"))
    assert _scored_results(bob, question, "graph") == before


def test_expired_memory_is_not_counted(olivia: Contract, bob: Contract, superuser: Superuser) -> None:
    def results_of_bob() -> Any:
        return _scored_results(bob, "otter heron", "lexical")

    for text in ("The otter swims.", "The heron waits and waits.", "Quiet water sleeps by the weir."):
        olivia.add(text, namespace="/team")
    run_jobs()
    before = results_of_bob()
    longer = (
        "Mountains, harbours, bridges, castles, gardens, markets, stations, libraries and museums, visited in turn."
    )
    _expire(superuser, _say(olivia, [longer] * 9, name="Yan"))
    memory = olivia.add("A tail.", namespace="/team")
    run_jobs()  # which counts the namespace anew
    olivia.delete(f"memories/{memory['id']}/")
    olivia.patch(f"memories/{before[0][0]}/", {"importance": 0.9}, if_match='"1"')
    run_jobs()
    assert results_of_bob() == before


def _scored_results(person: Contract, query: str, mode: str) -> list[tuple[str, float, dict[str, float]]]:
    found = person.search(query, mode=mode, explain=True)
    return [(hit["id"], hit["score"], hit["score_parts"]) for hit in found if hit["content"] != "Nothing."]


def _say(person: Contract, texts: Sequence[str], *, name: str) -> list[str]:
    messages = [{"role": "user", "name": name, "content": text} for text in texts]
    body = {"messages": messages, "infer": False, "session_id": "said", "namespace": "/team"}
    ids = [memory["id"] for memory in person.post("memories/", body).json["results"]]
    run_jobs()
    return ids


def _expire(superuser: Superuser, ids: Sequence[str]) -> None:
    superuser().execute("UPDATE vault_cube SET expires_at = now() WHERE id = ANY(%s::uuid[])", [list(ids)])
