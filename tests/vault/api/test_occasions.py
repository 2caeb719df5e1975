"""The same sentence said again is another occasion of one memory (mem0 issue 1674)."""

from typing import Any

import pytest

from tests.factories import World
from tests.vault.api.contract import Contract, contract

CANOE = "I own a red canoe."


@pytest.fixture
def alice(world: World) -> Contract:
    """Editor in acme."""
    return contract(world, "alice")


def say(client: Contract, content: str = CANOE, **message: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": content, **message}], "session_id": "s"}
    reply = client.post("memories/", body)
    assert reply.status in {200, 201}
    found: list[dict[str, Any]] = reply.json["results"]
    return found[-1]


def test_repeated_sentence_is_answered_with_its_memory_and_the_time(alice: Contract) -> None:
    first = say(alice, timestamp="2026-05-01T10:00:00Z")
    again = say(alice, timestamp="2026-06-01T10:00:00Z")
    within = say(alice, f"Hello! {CANOE} How are you?", timestamp="2026-07-01T10:00:00Z")
    assert (again["id"], again["duplicate"], within["id"]) == (first["id"], True, first["id"])
    assert [moment[:7] for moment in within["occasions"]] == ["2026-05", "2026-06", "2026-07"]
    assert len(alice.search("canoe")) == 2, "the message that says more, and the statement"
    assert alice.list_contents() == [f"Hello! {CANOE} How are you?", CANOE]
    filters = '{"dialogue_only": true}'
    kept = alice.get(f"memories/?filters={filters}").json["results"]
    assert [row["content"] for row in kept] == [CANOE, CANOE], "the conversation keeps each message"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("I own a blue canoe.", {}),
        (CANOE, {"name": "Ben"}),
        ("I went running yesterday.", {"timestamp": "2026-06-01T10:00:00Z"}),
    ],
)
def test_other_statement_is_a_memory_of_its_own(alice: Contract, content: str, message: dict[str, Any]) -> None:
    first = say(alice, "I went running yesterday." if "running" in content else CANOE, timestamp="2026-05-01T10:00:00Z")
    other = say(alice, content, **message)
    assert other["id"] != first["id"]
    assert len(other["occasions"]) == 1


def test_deleted_statement_is_stored_anew(alice: Contract) -> None:
    first = say(alice)
    say(alice)
    assert alice.delete(f"memories/{first['id']}/").status == 204
    assert alice.list_contents() == []
    anew = say(alice)
    assert anew["id"] != first["id"]
    assert alice.list_contents() == [CANOE]


def test_repeated_sentence_of_another_member_is_not_shown_to_them(world: World, alice: Contract) -> None:
    first = say(alice)
    olivia = contract(world, "olivia")
    assert say(olivia)["id"] != first["id"]
    assert alice.get(f"memories/{first['id']}/").json["occasions"] == first["occasions"]
    charlie = contract(world, "charlie")
    assert charlie.get(f"memories/{first['id']}/").status == 404
