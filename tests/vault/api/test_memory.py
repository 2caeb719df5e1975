"""memories/{id}/: read, change, delete, restore, erase, and what it was before."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from governance.vocabulary import Scope
from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id

LATER = "2199-01-01T00:00:00Z"
Superuser = Callable[[], psycopg.Connection]


def at(memory: dict[str, Any]) -> str:
    return f"memories/{memory['id']}/"


def expire(superuser: Superuser, memory: dict[str, Any]) -> None:
    """Let the memory's time run out, without waiting for it."""
    superuser().execute("UPDATE vault_cube SET expires_at = now() - interval '1 second' WHERE id = %s", [memory["id"]])


def test_reading_gives_the_etag_that_a_change_needs(alice: Contract) -> None:
    memory = alice.add("One.")
    reply = alice.get(at(memory))
    assert reply.status == 200
    assert reply.headers["ETag"] == '"1"'
    changed = alice.patch(at(memory), {"title": "New"}, if_match=reply.headers["ETag"])
    assert changed.status == 200
    assert changed.headers["ETag"] == '"2"'
    assert changed.json["version"] == 2
    assert alice.get(at(memory)).headers["ETag"] == '"2"'


CHANGES: list[tuple[str, Any]] = [
    ("content", "新的内容 and new content"),
    ("title", "A title"),
    ("tags", ["a", "b"]),
    ("metadata", {"k": ["v"]}),
    ("semantic_type", "goal"),
    ("sensitivity", "restricted"),
    ("importance", 0.25),
    ("priority", 1.0),
    ("expires_at", LATER),
    ("valid_from", "2026-01-01T00:00:00Z"),
    ("valid_to", LATER),
    ("event_time", "1999-12-31T23:59:59Z"),
]


def test_each_field_of_the_contract_may_be_changed_by_itself(alice: Contract) -> None:
    memory = alice.add("Before.", metadata={"old": 1}, tags=["old"], title="Old")
    for version, (field, value) in enumerate(CHANGES, start=1):
        reply = alice.patch(at(memory), {field: value}, if_match=f'"{version}"')
        assert reply.status == 200, (field, reply)
        assert reply.json[field] == value
    final = alice.get(at(memory)).json
    assert {field: final[field] for field, _ in CHANGES} == dict(CHANGES)
    assert final["version"] == len(CHANGES) + 1


def test_place_persona_and_subject_may_be_changed(alice: Contract, bob: Contract) -> None:
    memory = alice.add("Mine.")
    assert bob.get(at(memory)).status == 404
    moved = alice.patch(at(memory), {"namespace": "/team", "persona": "alice", "subject": "c-1"}, if_match='"1"')
    assert moved.json["namespace"]["path"] == "/team"
    assert moved.json["persona"]["name"] == "alice"
    assert moved.json["subject"]["reference"] == "c-1"
    assert bob.get(at(memory)).json["content"] == "Mine."
    assert bob.search_contents("mine") == ["Mine."]
    assert alice.patch(at(memory), {"namespace": "/users/alice"}, if_match='"2"').status == 200
    assert bob.get(at(memory)).status == 404
    assert bob.search_contents("mine") == []


def test_null_clears_what_may_be_empty(alice: Contract) -> None:
    filled = {"expires_at": LATER, "valid_from": "2026-01-01T00:00:00Z", "valid_to": LATER, "event_time": LATER}
    memory = alice.add("Full.", persona="alice", subject="c-1", **filled)
    cleared = dict.fromkeys((*filled, "persona", "subject"))
    reply = alice.patch(at(memory), cleared, if_match='"1"')
    assert {field: reply.json[field] for field in cleared} == cleared


def test_what_must_not_be_empty_cannot_be_cleared(alice: Contract) -> None:
    memory = alice.add("Full.")
    for field in ("content", "title", "tags", "metadata", "semantic_type", "namespace", "sensitivity", "importance"):
        assert fields_at_fault(alice.patch(at(memory), {field: None}, if_match='"1"')) == {field}
    assert alice.get(at(memory)).json["version"] == 1


def test_unknown_and_unchangeable_fields_are_refused(alice: Contract) -> None:
    memory = alice.add("Full.")
    for field in ("id", "state", "version", "held", "owner", "session_id", "speaker", "speling", "heat", "layer"):
        assert fields_at_fault(alice.patch(at(memory), {field: "x"}, if_match='"1"')) == {field}
    assert alice.patch(at(memory), {}, if_match='"1"').status == 400
    assert alice.patch(at(memory), {"content": "x" * 32_001}, if_match='"1"').status == 413
    assert alice.get(at(memory)).json["version"] == 1


def test_a_change_into_the_past_or_out_of_order_is_refused(alice: Contract) -> None:
    memory = alice.add("Full.", valid_from="2026-01-01T00:00:00Z")
    for field, value in (("expires_at", "2001-01-01T00:00:00Z"), ("valid_to", "2025-01-01T00:00:00Z")):
        assert fields_at_fault(alice.patch(at(memory), {field: value}, if_match='"1"')) == {field}
    assert alice.get(at(memory)).json["version"] == 1


def test_checks_come_in_the_order_of_the_contract(world: World, alice: Contract) -> None:
    memory = alice.add("One.")
    bad = {"speling": 1}
    nobody = Contract(key="mos_x_y")
    assert nobody.patch(at(memory), bad).status == 401
    assert alice.patch(f"memories/{MISSING}/", bad).status == 404
    assert contract(world, "bob").patch(at(memory), bad).status == 404
    assert alice.patch(at(memory), bad).status == 428
    assert alice.patch(at(memory), bad).code == "precondition_required"
    assert alice.patch(at(memory), bad, if_match='"7"').status == 412
    assert alice.patch(at(memory), bad, if_match='"1"').status == 400
    assert alice.get(at(memory)).json["version"] == 1


def test_a_header_that_is_no_etag_of_ours_matches_no_version(world: World, alice: Contract) -> None:
    memory = alice.add("One.")
    for method, body in (("PATCH", {"title": "x"}), ("DELETE", None)):
        for header in ('"0"', '"abc"', '"2", "3"'):
            assert alice.send(method, f"memories/{MISSING}/", body, if_match=header).status == 404
            assert contract(world, "bob").send(method, at(memory), body, if_match=header).status == 404
            assert alice.send(method, at(memory), body, if_match=header).status == 412
    assert alice.get(at(memory)).json["version"] == 1


def test_of_two_who_edit_the_second_learns_of_the_first(alice: Contract, olivia: Contract) -> None:
    memory = alice.add("One.", namespace="/team")
    assert alice.patch(at(memory), {"content": "Two."}, if_match='"1"').status == 200
    late = olivia.patch(at(memory), {"content": "Three."}, if_match='"1"')
    assert (late.status, late.code) == (412, "version_conflict")
    assert alice.get(at(memory)).json["content"] == "Two."


# Delete, restore, erase


def test_deleted_memory_is_404_until_it_is_restored(alice: Contract) -> None:
    memory = alice.add("Delete me, please.")
    assert alice.delete(at(memory)).status == 204
    missing = alice.get(f"memories/{MISSING}/")
    for reply in (
        alice.get(at(memory)),
        alice.get(at(memory) + "versions/"),
        alice.patch(at(memory), {"title": "x"}, if_match='"1"'),
        alice.delete(at(memory)),
    ):
        assert without_id(reply) == without_id(missing)
    assert alice.list_contents() == alice.search_contents("delete") == []
    restored = alice.post(at(memory) + "restore/")
    assert restored.status == 200
    assert restored.headers["ETag"] == '"1"'
    assert restored.json["deleted_at"] is None
    assert alice.list_contents() == alice.search_contents("delete") == ["Delete me, please."]


def test_an_erased_memory_cannot_be_restored(alice: Contract) -> None:
    first, second = alice.add("One."), alice.add("Two.")
    alice.delete(at(second))
    for memory in (first, second):
        assert alice.delete(at(memory) + "?purge=true").status == 204
        assert alice.get(at(memory)).status == 404
        assert alice.post(at(memory) + "restore/").status == 404
        assert alice.delete(at(memory) + "?purge=true").status == 404


def test_a_deletion_cannot_be_taken_back_after_the_grace_period(alice: Contract, superuser: Superuser) -> None:
    memory = alice.add("One.")
    alice.delete(at(memory))
    superuser().execute("UPDATE vault_cube SET deleted_at = deleted_at - interval '31 days'")
    assert alice.post(at(memory) + "restore/").status == 404


def test_a_dry_run_says_what_would_go_and_changes_nothing(alice: Contract) -> None:
    memory = alice.add("One.")
    for asked in ("?dry_run=true", "?dry_run=true&purge=true"):
        reply = alice.delete(at(memory) + asked)
        assert reply.status == 200
        assert (reply.json["count"], reply.json["ids"]) == (1, [memory["id"]])
        assert alice.delete(f"memories/{MISSING}/{asked}").status == 404
    assert alice.get(at(memory)).status == 200
    assert fields_at_fault(alice.delete(at(memory) + "?dry_run=maybe")) == {"dry_run"}


def test_deleting_heeds_an_etag_if_there_is_one(alice: Contract) -> None:
    memory = alice.add("One.")
    for asked in ("", "?purge=true", "?dry_run=true"):
        assert alice.delete(at(memory) + asked, if_match='"2"').status == 412
    assert alice.delete(at(memory), if_match='"1"').status == 204
    assert alice.post(at(memory) + "restore/", if_match='"2"').status == 412
    assert alice.post(at(memory) + "restore/", if_match='"1"').status == 200


def test_restoring_what_was_not_deleted_changes_nothing(alice: Contract) -> None:
    memory = alice.add("One.")
    assert alice.post(at(memory) + "restore/").json["updated_at"] == memory["updated_at"]


def test_an_expired_memory_is_unreadable_by_every_path(alice: Contract, superuser: Superuser) -> None:
    memory = alice.add("Short-lived.", ttl_seconds=3600)
    expire(superuser, memory)
    missing = alice.get(f"memories/{MISSING}/")
    for reply in (
        alice.get(at(memory)),
        alice.get(at(memory) + "versions/"),
        alice.patch(at(memory), {"expires_at": LATER}, if_match='"1"'),
        alice.delete(at(memory)),
    ):
        assert without_id(reply) == without_id(missing)
    assert alice.list_contents() == alice.search_contents("short lived") == []


def test_a_deleted_memory_that_expired_meanwhile_cannot_be_restored(alice: Contract, superuser: Superuser) -> None:
    memory = alice.add("Short-lived.", ttl_seconds=3600)
    alice.delete(at(memory))
    expire(superuser, memory)
    assert alice.post(at(memory) + "restore/").status == 404


# Versions


def test_versions_tell_the_whole_past_newest_first(alice: Contract) -> None:
    memory = alice.add("One.", title="T1", tags=["a"])
    alice.patch(at(memory), {"content": "Two.", "tags": ["b"]}, if_match='"1"')
    alice.patch(at(memory), {"title": "T3"}, if_match='"2"')
    reply = alice.get(at(memory) + "versions/")
    assert reply.json["count"] == 3
    got = reply.json["results"]
    told = [(memory["version"], memory["content"], memory["title"], memory["tags"]) for memory in got]
    assert told == [(3, "Two.", "T3", ["b"]), (2, "Two.", "T1", ["b"]), (1, "One.", "T1", ["a"])]
    assert [row["previous_hash"] for row in got] == [got[1]["hash"], got[2]["hash"], None]
    assert {row["author"]["kind"] for row in got} == {"api_key"}


def test_versions_come_in_pages(alice: Contract) -> None:
    memory = alice.add("One.")
    for version in range(1, 5):
        alice.patch(at(memory), {"title": f"T{version}"}, if_match=f'"{version}"')
    first = alice.get(at(memory) + "versions/?page_size=2").json
    second = alice.get(first["next"].removeprefix("http://testserver")).json
    third = alice.get(second["next"].removeprefix("http://testserver")).json
    numbers = [[version["version"] for version in page["results"]] for page in (first, second, third)]
    assert numbers == [[5, 4], [3, 2], [1]]
    assert third["next"] is None


# Who may


@pytest.mark.parametrize("name", ["bob", "ada"])
def test_who_may_only_read_changes_nothing(world: World, alice: Contract, name: str) -> None:
    memory = alice.add("Ours.", namespace="/team")
    client = contract(world, name)
    for reply in (
        client.patch(at(memory), {"title": "x"}, if_match='"1"'),
        client.delete(at(memory)),
        client.delete(at(memory) + "?purge=true"),
        client.delete(at(memory) + "?dry_run=true"),
        client.post(at(memory) + "restore/"),
    ):
        assert reply.status == 403
    assert alice.get(at(memory)).json["version"] == 1


def test_a_key_that_may_only_write_does_not_read(world: World, alice: Contract) -> None:
    memory = alice.add("Ours.", namespace="/team")
    writer = contract(world, "alice", Scope.MEMORIES_WRITE)
    assert writer.get(at(memory)).status == 403
    assert writer.get("memories/").status == 403
    assert writer.post("memories/search/", {"query": "ours"}).status == 403
    assert writer.get(at(memory) + "versions/").status == 403


def test_an_owner_reaches_private_memory_and_it_is_in_the_audit_log(alice: Contract, olivia: Contract) -> None:
    memory = alice.add("Private.")
    assert olivia.get(at(memory)).json["content"] == "Private."
