"""A search as of a time returns nothing that was said later: no later memory, no later words, nothing deleted then."""

from datetime import datetime

import pytest
from django.db.models import Q

from tests.factories import World, database_time
from tests.vault.api.contract import Contract
from vault.listing.neighbourhood import neighbourhood_get
from vault.retrieval import scope

TOLD = [
    {"role": "user", "name": "Ana", "content": "I moved to Lisbon.", "timestamp": "2024-03-01T10:00:00Z"},
    {"role": "user", "name": "Ana", "content": "我搬到了里斯本的老城区。", "timestamp": "2024-06-01T10:00:00Z"},
]


def contents_at(client: Contract, at: str, query: str = "Lisbon 里斯本") -> list[str]:
    return client.search_contents(query, as_of=at, min_score=0.01)


def test_message_is_returned_from_its_own_time_on(alice: Contract) -> None:
    assert alice.post("memories/", {"messages": TOLD, "session_id": "move"}).status == 201
    assert contents_at(alice, "2024-02-28T00:00:00Z") == []
    assert contents_at(alice, "2024-04-01T00:00:00Z") == ["I moved to Lisbon."]
    assert contents_at(alice, "2024-06-02T00:00:00Z") == [
        "我搬到了里斯本的老城区。"
    ]  # a later move, which ended the first


def test_statement_counts_from_the_time_of_its_message_whatever_time_it_names(alice: Contract) -> None:
    message = {
        "role": "user",
        "content": "I lived in Porto in 2010. I like sardines.",
        "timestamp": TOLD[0]["timestamp"],
    }
    assert alice.post("memories/", {"messages": [message]}).status == 201
    assert contents_at(alice, "2015-01-01T00:00:00Z", "Porto sardines") == []
    assert contents_at(alice, "2024-03-02T00:00:00Z", "Porto sardines") != []


def test_memory_that_was_stored_later_is_left_out_unless_its_validity_began(world: World, alice: Contract) -> None:
    before = database_time(world)
    alice.add("Lisbon has trams.")
    alice.add("Ana lived in Lisbon.", valid_from="2019-01-01T00:00:00Z", valid_to="2020-01-01T00:00:00Z")
    assert contents_at(alice, before) == []
    assert contents_at(alice, "2019-06-01T00:00:00Z") == ["Ana lived in Lisbon."]
    assert contents_at(alice, database_time(world)) == ["Lisbon has trams."]


def test_memory_has_the_words_of_then(world: World, alice: Contract, bob: Contract) -> None:
    made = alice.add("Lisbon: the office is in Rua A.", namespace="/team", tags=["old"])
    at = database_time(world)
    changes = {"content": "Lisbon: the office is in Rua B.", "tags": ["new"]}
    assert alice.patch(f"memories/{made['id']}/", changes, if_match='"1"').status == 200
    (then,) = bob.search("Lisbon office", as_of=at, min_score=0.01)
    assert (then["content"], then["tags"], then["version"]) == ("Lisbon: the office is in Rua A.", ["old"], 1)
    (now,) = bob.search("Lisbon office", min_score=0.01)
    assert (now["content"], now["version"]) == ("Lisbon: the office is in Rua B.", 2)


def test_version_that_was_private_then_stays_so(world: World, alice: Contract, bob: Contract) -> None:
    made = alice.add("Lisbon: my own draft.")
    at = database_time(world)
    assert alice.post(f"memories/{made['id']}/move/", {"namespace": "/team"}).status == 200
    assert contents_at(bob, at) == []
    assert contents_at(bob, database_time(world)) == ["Lisbon: my own draft."]


def test_memory_that_was_deleted_then_is_left_out(world: World, alice: Contract) -> None:
    made = alice.add("Lisbon has trams.")
    there = database_time(world)
    assert alice.delete(f"memories/{made['id']}/").status == 204
    gone = database_time(world)
    assert alice.post(f"memories/{made['id']}/restore/").status == 200
    found = [contents_at(alice, at) for at in (there, gone, database_time(world))]
    assert found == [["Lisbon has trams."], [], ["Lisbon has trams."]]


def test_graph_of_a_day_has_the_words_of_that_day(world: World, alice: Contract) -> None:
    made = alice.add("Lisbon: Rua A.")
    at = database_time(world)
    assert alice.patch(f"memories/{made['id']}/", {"content": "Lisbon: Rua B."}, if_match='"1"').status == 200
    shown = neighbourhood_get(actor=world.alice.actor, centre="Lisbon", at=datetime.fromisoformat(at))
    assert [view.words.content for view in shown.views] == ["Lisbon: Rua A."]


def test_search_that_looks_only_at_validity_is_detected(alice: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    assert alice.post("memories/", {"messages": TOLD}).status == 201
    monkeypatch.setattr(scope, "as_of_condition", lambda at: Q(valid_to=None) | Q(valid_to__gt=at))
    assert contents_at(alice, "2024-02-28T00:00:00Z") != []
