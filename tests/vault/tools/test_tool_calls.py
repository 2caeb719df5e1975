"""Tool calls as memories: stored, recalled by name, arguments and outcome, and shown with what failed before."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from vault.content.tool_calls import ToolCall, call_metadata, call_text, read_call
from vault.tools.rules import similarity
from vault.vocabulary import ToolOutcome

Superuser = Callable[[], psycopg.Connection]
BERLIN = {"from": "Berlin", "to": "Lisbon", "seats": 2}
ADD, RECALL = "memories/tool-calls/", "memories/tool-calls/search/"


def store_call(client: Contract, arguments: dict[str, Any], outcome: str = "failed", **more: Any) -> dict[str, Any]:
    body = {"name": "book_flight", "arguments": arguments, "outcome": outcome, "namespace": "/team", **more}
    reply = client.post(ADD, body)
    assert reply.status == 201, reply.json
    found: dict[str, Any] = reply.json["results"][0]
    return found


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        ({}, {}, 1.0),
        ({"a": 1}, {"a": 1.0}, 1.0),
        ({"a": "Tea"}, {"a": "tea"}, 1.0),
        ({"a": "green tea"}, {"a": "black tea"}, 1 / 3),
        ({"a": 1}, {"b": 1}, 0.0),
        ({"a": 10}, {"a": 8}, 0.8),
        ({"a": True}, {"a": 1}, 0.0),
        ({"a": [1, 2]}, {"a": [1]}, 0.5),
        ({"a": {"b": "x"}}, {"a": {"b": "x"}}, 1.0),
        ({"a": None}, {"a": None}, 1.0),
        ({"a": -1}, {"a": 1}, 0.0),
    ],
)
def test_similarity_of_arguments(first: Any, other: Any, expected: float) -> None:
    assert similarity(first, other) == pytest.approx(expected)
    assert similarity(other, first) == pytest.approx(expected)


def test_a_call_is_read_from_the_metadata_that_it_wrote() -> None:
    call = ToolCall("book_flight", BERLIN, ToolOutcome.FAILED, error="No seats left.", duration_ms=120)
    assert read_call(call_metadata(call)) == call
    assert call_text(call) == "book_flight(from=Berlin, to=Lisbon, seats=2) failed:\nNo seats left."
    assert read_call({"tool": "x"}) is None


def test_a_call_is_stored_as_a_memory_that_search_and_filters_find(alice: Contract) -> None:
    stored = store_call(alice, BERLIN, error="No seats left.", duration_ms=120)
    assert (stored["modality"], stored["semantic_type"], stored["title"]) == ("tool_call", "tool_trace", "book_flight")
    assert stored["metadata"]["arguments"] == BERLIN
    assert (stored["metadata"]["duration_ms"], stored["metadata"]["error"]) == (120, "No seats left.")
    found = alice.post("memories/search/", {"query": "seats to Lisbon", "filters": {"modality": "tool_call"}}).json
    assert [row["id"] for row in found["results"]] == [stored["id"]]
    by_outcome = {"query": "flight", "filters": {"metadata.outcome": "succeeded"}}
    assert alice.post("memories/search/", by_outcome).json["results"] == []
    assert store_call(alice, BERLIN)["id"] != stored["id"]


def test_calls_are_recalled_by_name_arguments_and_outcome(alice: Contract) -> None:
    same = store_call(alice, BERLIN)["id"]
    near = store_call(alice, BERLIN | {"seats": 3})["id"]
    far = store_call(alice, {"from": "Oslo", "to": "Rome", "seats": 9})["id"]
    done = store_call(alice, BERLIN, "succeeded")["id"]
    other = alice.post(ADD, {"name": "book_hotel", "arguments": BERLIN, "outcome": "failed", "namespace": "/team"})

    def recall_ids(**body: Any) -> list[str]:
        return [row["memory"]["id"] for row in alice.post(RECALL, body).json["results"]]

    assert recall_ids(name="book_flight", arguments=BERLIN, outcome="failed") == [same, near]
    assert recall_ids(name="book_flight", arguments=BERLIN) == [done, same, near]
    assert recall_ids(name="book_flight", arguments=BERLIN, min_similarity=0)[-1] == far
    assert recall_ids(name="book_flight", arguments=BERLIN, top_k=1) == [done]
    assert recall_ids(name="BOOK_FLIGHT", outcome="succeeded") == [done]
    assert recall_ids(name="book_hotel") == [other.json["results"][0]["id"]]
    assert recall_ids(name="book_train", arguments=BERLIN) == []
    assert recall_ids(namespaces=["/elsewhere"]) == []


def test_what_failed_before_is_reported(alice: Contract) -> None:
    asked = {"name": "book_flight", "arguments": BERLIN}
    assert alice.post(RECALL, asked).json == {"results": [], "failed_before": False}
    store_call(alice, BERLIN, "succeeded")
    assert not alice.post(RECALL, asked).json["failed_before"]
    store_call(alice, BERLIN | {"seats": 4})
    reply = alice.post(RECALL, asked).json
    assert reply["failed_before"]
    assert [row["similarity"] for row in reply["results"]] == [1.0, 0.8333]


def test_who_may_not_store_or_read_calls_is_refused(world: World, alice: Contract, superuser: Superuser) -> None:
    store_call(alice, BERLIN)
    body = {"name": "book_flight", "arguments": BERLIN, "outcome": "failed", "namespace": "/team"}
    assert world.client("bob").post(ADD, body).status == 403
    assert superuser().execute("SELECT count(*) FROM vault_cube").fetchone() == (1,)
    assert world.client("ada").post(RECALL, {"name": "book_flight"}).status == 403
    assert len(world.client("bob").post(RECALL, {"name": "book_flight"}).json["results"]) == 1
    assert world.client("charlie").post(RECALL, {"name": "book_flight"}).json["results"] == []


@each_case(
    ("body", "field"),
    [
        ({"name": "x", "outcome": "maybe"}, "outcome"),
        ({"name": "x", "outcome": "failed", "arguments": [1]}, "arguments"),
        ({"name": "x", "outcome": "failed", "duration_ms": -1}, "duration_ms"),
        ({"outcome": "failed"}, "name"),
        ({"name": "x", "outcome": "failed", "result": "x" * 16_001}, "result"),
    ],
)
def test_a_call_that_cannot_be_stored_names_its_field(alice: Contract, body: dict[str, Any], field: str) -> None:
    reply = alice.post(ADD, body)
    assert reply.status == 400
    assert {error["field"].partition(".")[0] for error in reply.json["errors"]} == {field}


def test_its_page_shows_the_call_and_what_failed_before(world: World, alice: Contract) -> None:
    before = store_call(alice, BERLIN, error="<b>No seats</b>", duration_ms=90_000)
    now = store_call(alice, BERLIN | {"seats": 3}, "succeeded", result="Booked.")
    browser = signed_in(world.alice)
    page = browser.get(f"/memories/{now['id']}/").content.decode()
    assert "<h3>Before</h3>" in page
    assert f"/memories/{before['id']}/" in page
    assert "&lt;b&gt;No seats&lt;/b&gt;" in page
    first = browser.get(f"/memories/{before['id']}/").content.decode()
    assert "<h3>Before</h3>" not in first
    assert "1 min 30 s" in first
    note = alice.add("A plain note.", namespace="/team")
    assert "tool-title" not in browser.get(f"/memories/{note['id']}/").content.decode()
