"""versions/{n}/, diff/, rollback/ and move/ over the API: alice may, bob may not, charlie is another tenant's."""

from collections.abc import Callable

import psycopg
import pytest

from tests.factories import ApiReply, World
from tests.harness.cases import each_case

TRAIN, BUS = "Ana travels by train. Always.", "Ana travels by bus and boat. Always."


@pytest.fixture
def memory(world: World) -> str:
    """A shared memory of two versions; its path."""
    client = world.client("alice")
    reply = client.post("memories/", {"content": TRAIN, "tags": ["travel"], "namespace": "/team"})
    path = f"memories/{reply.json['results'][0]['id']}/"
    changes = {"content": BUS, "tags": ["boat"], "expires_at": "2099-01-01T00:00:00Z"}
    assert client.patch(path, changes, if_match='"1"').status == 200
    return path


def versions(superuser: Callable[[], psycopg.Connection]) -> int:
    row = superuser().execute("SELECT count(*) FROM vault_cubeversion").fetchone()
    assert row is not None
    return int(row[0])


def test_a_diff_tells_words_and_fields_and_gives_back_both_texts(world: World, memory: str) -> None:
    reply = world.client("bob").get(f"{memory}diff/?from=1&to=2")
    assert reply.status == 200, reply.json
    changes = reply.json["content"]["changes"]
    assert "".join(change["text"] for change in changes if change["edit"] != "insert") == TRAIN
    assert "".join(change["text"] for change in changes if change["edit"] != "delete") == BUS
    assert (reply.json["content"]["inserted"], reply.json["content"]["deleted"]) == (3, 1)
    assert (reply.json["tags_added"], reply.json["tags_removed"]) == (["boat"], ["travel"])
    assert [row["field"] for row in reply.json["fields_changed"]] == ["expires_at"]
    assert world.client("alice").get(f"{memory}versions/1/").json["content"] == TRAIN


@each_case("asked", ["", "?from=1", "?from=0&to=1", "?from=1&to=9", "?from=x&to=1", "?from=1&to=2&x=1"])
def test_a_diff_of_versions_that_are_not_there_is_invalid(world: World, memory: str, asked: str) -> None:
    assert world.client("alice").get(f"{memory}diff/{asked}").status == 400


def test_a_rollback_makes_a_new_version_and_keeps_place_and_expiry(world: World, memory: str) -> None:
    client = world.client("alice")
    reply = client.post(f"{memory}rollback/", {"version": 1, "reason": "The correction was wrong."})
    assert reply.status == 200, reply.json
    assert (reply.json["content"], reply.json["tags"], reply.json["version"]) == (TRAIN, ["travel"], 3)
    assert reply.json["expires_at"] == "2099-01-01T00:00:00Z"
    assert reply.headers["ETag"] == '"3"'
    newest = client.get(f"{memory}versions/").json["results"][0]
    assert (newest["version"], newest["reason"]) == (3, "The correction was wrong.")
    found = client.post("memories/search/", {"query": "train", "mode": "lexical", "namespaces": ["/team"]}).json
    assert found["results"][0]["content"] == TRAIN


def test_a_move_lays_the_memory_elsewhere(world: World, memory: str) -> None:
    reply = world.client("alice").post(f"{memory}move/", {"namespace": "/team/notes"})
    assert reply.status == 200, reply.json
    assert (reply.json["namespace"]["path"], reply.json["version"]) == ("/team/notes", 3)


CHANGES = [("rollback/", {"version": 1}), ("move/", {"namespace": "/team/notes"})]


@each_case(("call", "body"), CHANGES)
@each_case(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_whoever_may_not_change_it_changes_nothing(
    world: World,
    memory: str,
    superuser: Callable[[], psycopg.Connection],
    call: str,
    body: dict[str, object],
    who: str,
    status: int,
) -> None:
    before = versions(superuser)
    assert world.client(who).post(f"{memory}{call}", body).status == status
    assert versions(superuser) == before


@pytest.mark.parametrize(("call", "body"), CHANGES)
def test_a_change_on_another_version_is_refused_and_one_key_changes_once(
    world: World, memory: str, superuser: Callable[[], psycopg.Connection], call: str, body: dict[str, object]
) -> None:
    client = world.client("alice")

    def send(**headers: str) -> ApiReply:
        return client.post(f"{memory}{call}", body, **headers)

    assert send(if_match='"1"').code == "version_conflict"
    once = send(if_match='"2"', idempotency_key="once")
    again = send(if_match='"2"', idempotency_key="once")
    assert (once.status, again.status) == (200, 200)
    assert once.json == again.json
    assert versions(superuser) == 3


@pytest.mark.parametrize(("call", "body"), CHANGES)
def test_what_is_held_stays_as_it_is(world: World, memory: str, call: str, body: dict[str, object]) -> None:
    assert world.client("olivia").post(f"{memory}freeze/", {"reason": "Case 17"}).status == 200
    assert world.client("alice").post(f"{memory}{call}", body).code == "held"


@each_case("body", [{}, {"version": 0}, {"version": 9}, {"version": 1, "reason": "x" * 501}, {"versions": 1}])
def test_a_rollback_to_what_is_not_there_is_invalid(world: World, memory: str, body: dict[str, object]) -> None:
    assert world.client("alice").post(f"{memory}rollback/", body).status == 400


def test_removed_words_do_not_come_back(world: World, memory: str) -> None:
    client = world.client("alice")
    assert client.post(f"{memory}redact/", {"version": 1}).status == 200
    refused = client.post(f"{memory}rollback/", {"version": 1})
    assert (refused.status, refused.code) == (409, "conflict")
