"""Tests of `Location`, `ETag` and `If-None-Match`: where a made thing is, and that nothing unchanged is sent again."""

from typing import Any

from tests.factories import World
from tests.harness.cases import each_case

MADE = [
    ("memories/", {"content": "The heron stands."}, "memories/"),
    ("memories/fuse/", {"ids": "two memories"}, "memories/"),
    ("memories/tool-calls/", {"name": "look_up", "arguments": {}, "outcome": "succeeded"}, "memories/"),
    ("conversations/", {"title": "Birds"}, "conversations/"),
    ("namespaces/", {"path": "/team/birds", "kind": "shared"}, "namespaces/"),
    ("personas/", {"name": "Heron"}, "personas/"),
]


@each_case(("address", "body", "found_at"), MADE, ids=[case[0] for case in MADE])
def test_made_thing_is_read_at_its_location(world: World, address: str, body: dict[str, Any], found_at: str) -> None:
    olivia = world.client("olivia")
    if "ids" in body:
        body = body | {"ids": [_add_memory(world, "olivia", text)["id"] for text in ("It stands.", "It waits.")]}
    made = olivia.post(address, body)
    assert made.status == 201, made.json
    where = made.headers["Location"]
    assert where.startswith(f"/api/v1/{found_at}")
    assert olivia.get(where.removeprefix("/api/v1/")).json["id"] == made.json.get("results", [made.json])[0]["id"]


def test_added_memory_has_the_etag_that_a_change_needs(world: World) -> None:
    made = world.client("alice").post("memories/", {"content": "The heron stands."})
    changed = world.client("alice").patch(
        made.headers["Location"].removeprefix("/api/v1/"), {"title": "Heron"}, if_match=made.headers["ETag"]
    )
    assert (changed.status, changed.headers["ETag"]) == (200, '"2"')


def test_several_made_at_once_have_no_location(world: World) -> None:
    items = [{"content": "The heron stands."}, {"content": "The heron waits."}]
    made = world.client("alice").post("memories/bulk/", {"items": items})
    assert made.status == 201
    assert "Location" not in made.headers


@each_case("offered", ['"1"', 'W/"1"', '"7", "1"', "*"])
def test_memory_that_has_not_changed_is_not_sent_again(world: World, offered: str) -> None:
    memory = _add_memory(world)
    again = world.client("alice").get(f"memories/{memory['id']}/", if_none_match=offered)
    assert (again.status, again.headers["ETag"], again.json) == (304, '"1"', None)


def test_memory_that_has_changed_is_sent(world: World) -> None:
    alice, memory = world.client("alice"), _add_memory(world)
    alice.patch(f"memories/{memory['id']}/", {"title": "Heron"}, if_match='"1"')
    again = alice.get(f"memories/{memory['id']}/", if_none_match='"1"')
    assert (again.status, again.json["title"]) == (200, "Heron")


def test_list_is_sent_again_once_it_has_changed(world: World) -> None:
    alice = world.client("alice")
    tag = alice.get("memories/").headers["ETag"]
    assert alice.get("memories/", if_none_match=tag).status == 304
    _add_memory(world)
    assert alice.get("memories/", if_none_match=tag).status == 200


def test_etag_of_an_answer_tells_nothing_to_who_may_not_read_it(world: World) -> None:
    address = f"memories/{_add_memory(world)['id']}/"
    for name, status in (("bob", 404), ("charlie", 404)):
        refused = world.client(name).get(address, if_none_match='"1"')
        assert (refused.status, "ETag" in refused.headers) == (status, False)


def test_answers_are_private(world: World) -> None:
    kept = set(world.client("alice").get("memories/").headers["Cache-Control"].split(", "))
    assert kept == {"private", "no-cache"}


def _add_memory(world: World, who: str = "alice", text: str = "The heron stands.") -> dict[str, Any]:
    made: dict[str, Any] = world.client(who).post("memories/", {"content": text}).json["results"][0]
    return made
