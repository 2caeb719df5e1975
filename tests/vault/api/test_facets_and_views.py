"""memories/facets/ and views/: counts of what the reader may see, and each member's own saved views."""

from collections.abc import Callable

import psycopg
import pytest

from governance.vocabulary import Scope
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract


@pytest.fixture
def memories(world: World) -> None:
    """Three of alice's, two of them in /team; one of olivia's own."""
    alice = world.client("alice")
    for content, fields in (
        ("Ana travels by train.", {"namespace": "/team", "tags": ["travel", "ana"]}),
        ("Bo likes tea.", {"namespace": "/team", "tags": ["food"], "semantic_type": "preference"}),
        ("Alice sleeps late.", {"tags": ["sleep"]}),
    ):
        assert alice.post("memories/", {"content": content, **fields}).status == 201
    assert world.client("olivia").post("memories/", {"content": "The secret plan.", "tags": ["secret"]}).status == 201


def counts(world: World, who: str, asked: str = "") -> dict[str, dict[str, int]]:
    reply = world.client(who).get(f"memories/facets/{asked}")
    assert reply.status == 200, reply.json
    return {name: {value["value"]: value["count"] for value in values} for name, values in reply.json.items()}


def test_counts_cover_what_the_reader_may_see_and_no_more(world: World, memories: None) -> None:
    found = counts(world, "alice")
    assert found["namespace"] == {"/team": 2, "/users/alice": 1}
    assert found["semantic_type"] == {"fact": 2, "preference": 1}
    assert found["tags"] == {"ana": 1, "food": 1, "sleep": 1, "travel": 1}
    assert counts(world, "bob")["tags"] == {"ana": 1, "food": 1, "travel": 1}
    assert counts(world, "charlie")["tags"] == {}
    assert counts(world, "olivia")["tags"]["secret"] == 1
    assert world.client("ada").get("memories/facets/").status == 403


def test_a_filter_narrows_the_other_facets_and_not_its_own(world: World, memories: None) -> None:
    found = counts(world, "alice", "?tags=travel&tags=food")
    assert found["namespace"] == {"/team": 2, "/users/alice": 0}
    assert found["tags"] == {"ana": 1, "food": 1, "sleep": 1, "travel": 1}
    assert counts(world, "alice", "?tags=travel&semantic_type=preference")["namespace"]["/team"] == 0


def test_large_counts_are_capped(world: World, memories: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vault.listing.facets.COUNTED", 2)
    reply = world.client("alice").get("memories/facets/").json
    assert {row["capped"] for row in reply["state"] if row["count"]} == {True}
    assert sum(row["count"] for row in reply["state"]) == 2


@each_case("asked", ["?colour=red", "?state=lost", "?namespace=team", "?created_after=soon", "?tags=%00"])
def test_a_filter_that_is_unknown_is_invalid(world: World, asked: str) -> None:
    assert world.client("alice").get(f"memories/facets/{asked}").status == 400


def test_a_view_belongs_to_the_member_who_saved_it(world: World, superuser: Callable[[], psycopg.Connection]) -> None:
    alice = world.client("alice")
    body = {"name": "School", "query": "q=school&semantic_type=event"}
    made = alice.post("views/", body, idempotency_key="one")
    assert made.status == 201, made.json
    assert alice.post("views/", body, idempotency_key="one").json == made.json
    assert alice.get("views/").json["results"] == [{"id": made.json["id"], **body}]
    for who, status in (("bob", 404), ("olivia", 404), ("charlie", 404), ("ada", 403)):
        other = world.client(who)
        assert other.delete(f"views/{made.json['id']}/").status in {status, 404}
        assert made.json["id"] not in str(other.get("views/").json)
    sealed = superuser().execute("SELECT sealed FROM vault_savedview").fetchall()
    assert len(sealed) == 1
    assert b"chool" not in bytes(sealed[0][0])
    assert alice.delete(f"views/{made.json['id']}/").status == 204
    assert alice.get("views/").json["results"] == []


@each_case(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 61, "query": ""},
        {"name": "a", "query": "state=lost"},
        {"name": "\t", "query": ""},
    ],
)
def test_a_view_that_cannot_be_shown_is_not_saved(world: World, body: dict[str, str]) -> None:
    alice = world.client("alice")
    assert alice.post("views/", body).status == 400
    assert alice.get("views/").json["count"] == 0


def test_a_member_keeps_so_many_views_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vault.listing.views.MOST_VIEWS", 1)
    alice = world.client("alice")
    assert alice.post("views/", {"name": "One", "query": ""}).status == 201
    assert alice.post("views/", {"name": "Two", "query": ""}).status == 409


def test_a_bound_key_neither_sees_nor_changes_the_views_of_its_member(world: World) -> None:
    alice, olivia = contract(world, "alice"), contract(world, "olivia")
    body = {"name": "Doctor", "query": "q=doctor"}
    view = alice.post("views/", body).json
    asked = {"member": str(world.alice.member.id), "scopes": list(Scope)}
    bonds: list[dict[str, object]] = [
        {"namespaces": ["/team"]},
        {"persona": alice.post("personas/", PERSONA).json["id"]},
    ]
    for bond in bonds:
        key = Contract(key=olivia.post("api-keys/", asked | bond).json["api_key"])
        assert key.get("views/").json["results"] == []
        assert key.post("views/", body).status == 403
        assert key.post("views/", body, idempotency_key="bound").status == 403
        assert key.delete(f"views/{view['id']}/").status == 404
    assert alice.get("views/").json["results"] == [view]


def test_a_key_without_the_scope_to_write_reads_views_and_changes_none(world: World) -> None:
    alice, reader = contract(world, "alice"), contract(world, "alice", Scope.MEMORIES_READ)
    body = {"name": "School", "query": "q=school"}
    view = alice.post("views/", body).json
    assert reader.get("views/").json["results"] == [view]
    assert reader.post("views/", body).status == 403
    assert reader.delete(f"views/{view['id']}/").status == 403
    assert alice.get("views/").json["results"] == [view]
    assert contract(world, "bob").post("views/", body).status == 201, "a viewer keeps views"


PERSONA = {"name": "at work", "kind": "user"}
