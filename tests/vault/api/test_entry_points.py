"""Tests of a client's first calls: addresses, content types, the language, the shapes of values."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import API, World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, fields_at_fault

JSON = "application/json"


def browser(person: Contract, **headers: str) -> Client:
    return Client(headers={"authorization": f"Bearer {person.key}", **headers})


@each_case("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_is_sent_without_the_last_slash_is_never_redirected(alice: Contract, method: str) -> None:
    """A client that follows a redirect makes a GET of it, gets 200, and has lost what it sent."""
    reply = browser(alice).generic(method, f"{API}memories", data=b'{"content": "x"}', content_type=JSON)
    assert (reply.status_code, reply["Content-Type"]) == (404, "application/problem+json")
    assert reply.json()["detail"] == "There is nothing at this address. Send this to /api/v1/memories/ instead."
    assert alice.list_contents() == []


def test_who_only_reads_is_led_to_the_whole_address(alice: Contract) -> None:
    reply = browser(alice).get(f"{API}memories?page_size=1")
    assert (reply.status_code, reply["Location"]) == (301, f"{API}memories/?page_size=1")
    assert browser(alice).get(f"{API}nothing").status_code == 404


def test_a_body_of_another_kind_is_415_and_says_which_is_taken(alice: Contract) -> None:
    reply = alice.raw("memories/", b"content=x", content_type="application/x-www-form-urlencoded")
    assert (reply.status, reply.code) == (415, "unsupported_media_type")
    assert "application/json" in reply.json["detail"]


@pytest.mark.parametrize("kind", ["text/html", "application/xml", "text/event-stream"])
def test_an_answer_of_another_kind_is_406(alice: Contract, kind: str) -> None:
    reply = alice.get("memories/", accept=kind)
    assert (reply.status, reply.code) == (406, "not_acceptable")


def test_only_a_new_turn_can_be_streamed(alice: Contract) -> None:
    turns = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    assert alice.get(turns, accept="text/event-stream").status == 406
    assert alice.get(turns, accept="text/event-stream, */*;q=0.1").headers["Content-Type"] == JSON
    assert alice.stream(turns, {"content": "Who?"})[-1].name == "done"


def test_the_kind_of_an_answer_is_asked_for_in_one_way(alice: Contract) -> None:
    for asked in ("json", "xml", "event-stream"):
        assert fields_at_fault(alice.get(f"memories/?format={asked}")) == {"format"}


def test_the_api_speaks_english_whoever_asks(alice: Contract) -> None:
    chinese = browser(alice, **{"accept-language": "zh-CN"})
    english = browser(alice)
    body = b'{"content": "x", "importance": 7, "tags": "x", "sensitivity": "x", "speling": 1, "event_time": 1}'
    both = [item.post(f"{API}memories/", body, content_type=JSON) for item in (chinese, english)]
    assert both[0].json()["errors"] == both[1].json()["errors"]
    assert both[0]["Content-Language"] == "en"
    assert chinese.get(f"{API}nothing/").json()["detail"] == "There is nothing at this address."


NO_MOMENTS = ["2026-05-01T12:00:00", "12:00", 1777636800, "tomorrow", True]


@pytest.mark.parametrize("value", NO_MOMENTS)
def test_a_time_without_its_offset_is_refused_wherever_it_stands(alice: Contract, value: Any) -> None:
    memory = alice.add("One.")["id"]
    for field in ("event_time", "valid_from", "valid_to", "expires_at"):
        assert fields_at_fault(alice.post("memories/", {"content": "x", field: value})) == {field}
        assert fields_at_fault(alice.patch(f"memories/{memory}/", {field: value}, if_match='"1"')) == {field}
    said = {"messages": [{"role": "user", "content": "x", "timestamp": value}]}
    assert fields_at_fault(alice.post("memories/", said)) == {"messages.0.timestamp"}
    assert fields_at_fault(alice.post("memories/search/", {"query": "x", "as_of": value})) == {"as_of"}
    assert fields_at_fault(alice.get(f"memories/?created_after={value}")) == {"created_after"}


@pytest.mark.parametrize("value", [True, "0.7", "1"])
def test_a_number_is_a_number(alice: Contract, value: Any) -> None:
    for field in ("importance", "ttl_seconds"):
        assert fields_at_fault(alice.post("memories/", {"content": "x", field: value})) == {field}
    for field in ("top_k", "min_score"):
        assert fields_at_fault(alice.post("memories/search/", {"query": "x", field: value})) == {field}


@pytest.mark.parametrize("value", ["true", 1, "no"])
def test_a_truth_value_is_one(alice: Contract, value: Any) -> None:
    assert fields_at_fault(alice.post("memories/", {"content": "x", "allow_duplicates": value})) == {"allow_duplicates"}
    assert fields_at_fault(alice.post("memories/search/", {"query": "x", "explain": value})) == {"explain"}


def test_a_search_that_is_too_long_is_reported_of_its_own_field(alice: Contract) -> None:
    reply = alice.post("memories/search/", {"query": "x" * 32_001})
    assert (reply.status, reply.json["detail"]) == (413, "`query` may have 32000 characters.")


def test_calls_without_a_body_refuse_one(world: World, alice: Contract) -> None:
    memory = alice.add("One.")["id"]
    alice.delete(f"memories/{memory}/")
    assert fields_at_fault(alice.post(f"memories/{memory}/restore/", {"speling": 1})) == {"speling"}
    assert alice.get(f"memories/{memory}/").status == 404
    for body in (dict[str, Any](), None):
        assert alice.post(f"memories/{memory}/restore/", body).status == 200
    job = alice.post("memories/?async=true", {"content": "Later."}).json["job"]["id"]
    assert fields_at_fault(alice.post(f"jobs/{job}/retry/", {"speling": 1})) == {"speling"}


def test_write_to_a_missing_home_namespace_is_refused_with_the_reason(world: World) -> None:
    olivia = contract(world, "olivia")
    for path, home in (
        ("/users/nobody", "/users/nobody"),
        ("/users/nobody/notes", "/users/nobody"),
        ("/users", "/users"),
    ):
        reply = olivia.post("memories/", {"content": "x", "namespace": path})
        assert reply.status == 403
        assert reply.json["detail"] == f"Below /users there are only members' homes, and {home} is none."
    editor = contract(world, "alice").post("memories/", {"content": "x", "namespace": "/users/nobody"})
    assert editor.json["detail"] == "The permission memory.create is missing."  # as for a home that is somebody's


def test_duplicate_is_validated_before_it_is_looked_up(alice: Contract) -> None:
    alice.add("One.")
    for field, value in (("expires_at", "2001-01-01T00:00:00Z"), ("valid_to", "2001-01-01T00:00:00Z")):
        body = {"content": "One.", "valid_from": "2002-01-01T00:00:00Z", field: value}
        assert fields_at_fault(alice.post("memories/", body)) == {field}


def test_repeated_message_is_answered_with_the_stored_memory(alice: Contract) -> None:
    def say(content: str) -> dict[str, Any]:
        message = {"role": "user", "content": content, "message_id": "m-1"}
        reply = alice.post("memories/", {"session_id": "s-1", "infer": False, "messages": [message]})
        assert reply.status in {200, 201}
        result: dict[str, Any] = reply.json["results"][0]
        return result

    first = say("I like tea.")
    again = say("I like coffee.")
    assert "duplicate" not in first
    assert (again["duplicate"], again["id"], again["content"]) == (True, first["id"], "I like tea.")
