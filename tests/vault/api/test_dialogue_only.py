"""Messages in which the reader finds nothing to keep: stored as dialogue, and shown only to who asks for dialogue."""

import json
from typing import Any

import pytest

from governance.database import acting
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.listing.queries import query_read
from vault.models import Cube

GREETINGS = [
    {"role": "user", "content": "Hello there!"},
    {"role": "assistant", "content": "How can I help you today?"},
    {"role": "user", "content": "What is the capital of Norway?"},
    {"role": "user", "content": "你好！"},
]
STATEMENT = "I moved to Bergen last spring."
DIALOGUE = {"semantic_type": "dialogue"}


def list_dialogue_flags(world: World) -> list[bool]:
    """Return for each memory of acme, oldest first, whether it is dialogue only."""
    with acting(world.olivia.actor):
        return list(Cube.objects.order_by("id").values_list("is_dialogue_only", flat=True))


@pytest.fixture
def talk(alice: Contract) -> Contract:
    """Four messages that state nothing, a statement, and a message that states something beside a greeting."""
    said = [
        *GREETINGS,
        {"role": "user", "content": STATEMENT},
        {"role": "user", "content": "Hi! My dog is called Fjord. How are you?"},
    ]
    reply = alice.post("memories/", {"messages": said, "session_id": "s1", "namespace": "/team"})
    assert reply.status == 201
    return alice


def test_addition_of_greetings_only_answers_created_without_results(world: World, alice: Contract) -> None:
    reply = alice.post("memories/", {"messages": GREETINGS, "session_id": "s1"})
    assert (reply.status, reply.json["results"]) == (201, [])
    assert list_dialogue_flags(world) == [True] * 4


def test_results_hold_statements_and_the_messages_that_make_them(world: World, alice: Contract) -> None:
    said = [*GREETINGS, {"role": "user", "content": STATEMENT}]
    results = alice.post("memories/", {"messages": said, "session_id": "s1"}).json["results"]
    assert [(result["content"], result["dialogue_only"]) for result in results] == [(STATEMENT, False)]
    assert list_dialogue_flags(world) == [True] * 4 + [False]


def test_verbatim_messages_are_returned_and_listed(alice: Contract) -> None:
    body = {"messages": GREETINGS, "session_id": "s1", "infer": False}
    assert len(alice.post("memories/", body).json["results"]) == 4
    assert len(alice.list_contents()) == 4
    assert "Hello there!" in alice.search_contents("hello there")


def test_a_bulk_addition_names_the_items_of_what_it_returns(alice: Contract) -> None:
    items = [{"messages": GREETINGS[:1]}, {"content": "Rain in Oslo."}, {"messages": [GREETINGS[1]]}]
    reply = alice.post("memories/bulk/", {"items": items})
    assert reply.status == 201
    assert [(row["index"], row["memory"]["content"]) for row in reply.json["results"]] == [(1, "Rain in Oslo.")]


def test_job_that_adds_names_the_stored_statements(alice: Contract) -> None:
    said = [*GREETINGS, {"role": "user", "content": STATEMENT}]
    job = alice.post("memories/?async=true", {"messages": said, "session_id": "s1"}).json["job"]
    run_jobs()
    (kept,) = alice.get(f"jobs/{job['id']}/").json["result"]["memory_ids"]
    assert alice.get(f"memories/{kept}/").json["content"] == STATEMENT


def test_a_repeated_message_that_states_nothing_is_no_result_either(alice: Contract) -> None:
    body = {"messages": [GREETINGS[0] | {"message_id": "m1"}], "session_id": "s1"}
    assert alice.post("memories/", body).status == 201
    again = alice.post("memories/", body)
    assert (again.status, again.json["results"]) == (200, [])


@each_case(
    ("asked", "greets"),
    [
        ("", False),
        ("session_id=s1", False),
        ("semantic_type=fact", False),
        ("semantic_type=dialogue", True),
        ("filters=" + json.dumps({"semantic_type": {"in": ["fact", "dialogue"]}}), True),
        ("filters=" + json.dumps({"OR": [{"semantic_type": "dialogue"}, {"layer": "long_term"}]}), True),
        ("filters=" + json.dumps({"semantic_type": {"ne": "fact"}}), False),
        ("filters=" + json.dumps({"NOT": {"semantic_type": {"in": ["fact", "dialogue"]}}}), False),
        ("filters=" + json.dumps({"dialogue_only": True}), True),
        ("filters=" + json.dumps({"dialogue_only": False}), False),
        ("filters=" + json.dumps({"NOT": {"dialogue_only": False}}), True),
    ],
)
def test_a_list_shows_them_where_dialogue_is_asked_for(talk: Contract, asked: str, greets: bool) -> None:
    assert ("Hello there!" in talk.list_contents(asked)) is greets


@each_case("mode", ["hybrid", "lexical", "dense", "tag", "graph"])
def test_a_search_shows_them_where_dialogue_is_asked_for(talk: Contract, mode: str) -> None:
    run_jobs()
    question = "Hello there! What is the capital of Norway?"
    assert not any(memory["dialogue_only"] for memory in talk.search(question, mode=mode, top_k=50))
    asked = talk.search(question, mode=mode, top_k=50, filters=DIALOGUE)
    assert {greeting["content"] for greeting in GREETINGS} <= {memory["content"] for memory in asked}


def test_a_message_that_states_something_beside_a_greeting_is_listed(talk: Contract) -> None:
    listed = talk.list_contents()
    assert "Hi! My dog is called Fjord. How are you?" in listed
    assert "My dog is called Fjord." in listed
    assert STATEMENT in listed


def test_they_fill_no_answer_of_a_search_that_finds_too_little(talk: Contract) -> None:
    assert len(talk.search("quantum chromodynamics", top_k=50)) == 3


def test_one_is_read_by_its_id_and_shown_once_it_becomes_a_fact(talk: Contract) -> None:
    found = talk.get("memories/?semantic_type=dialogue").json["results"]
    (greeting,) = (memory for memory in found if memory["content"] == "Hello there!")
    assert talk.get(f"memories/{greeting['id']}/").json["dialogue_only"] is True
    changed = talk.patch(f"memories/{greeting['id']}/", {"semantic_type": "fact"}, **{"if-match": '"1"'})
    assert (changed.status, changed.json["dialogue_only"]) == (200, False)
    assert "Hello there!" in talk.list_contents()


def test_one_whose_text_is_changed_is_shown(talk: Contract) -> None:
    found = talk.get("memories/?semantic_type=dialogue").json["results"]
    (greeting,) = (memory for memory in found if memory["content"] == "Hello there!")
    changed = talk.patch(f"memories/{greeting['id']}/", {"content": "My flight is on Saturday."}, **{"if-match": '"1"'})
    assert changed.json["dialogue_only"] is False
    assert "My flight is on Saturday." in talk.list_contents()


def test_one_is_no_duplicate_of_a_memory_with_its_text(alice: Contract) -> None:
    assert alice.post("memories/", {"messages": GREETINGS[2:3]}).status == 201
    memory = alice.add("What is the capital of Norway?")
    assert (memory["dialogue_only"], alice.list_contents()) == (False, ["What is the capital of Norway?"])


def test_repeated_message_with_another_text_states_nothing_new(alice: Contract) -> None:
    first = GREETINGS[0] | {"message_id": "m1"}
    assert alice.post("memories/", {"messages": [first], "session_id": "s1"}).status == 201
    changed = {"messages": [first | {"content": "Hello! I live in Oslo."}], "session_id": "s1"}
    again = alice.post("memories/", changed)
    assert (again.status, again.json["results"]) == (200, [])
    assert alice.list_contents() == []


def test_an_action_on_a_filter_reaches_them_and_the_trash_lists_them(talk: Contract) -> None:
    asked = {"action": "delete", "filters": {"session_id": "s1"}}
    assert talk.post("memories/actions/?dry_run=true", asked).json["count"] == 7
    assert talk.post("memories/actions/", asked).status == 202
    run_jobs()
    assert talk.list_contents("semantic_type=dialogue") == []
    assert "Hello there!" in talk.list_contents("deleted=true")


@pytest.mark.parametrize(("chosen", "count"), [({}, 3), ({"semantic_type": ["dialogue"]}, 5)])
def test_an_action_on_what_a_page_lists_reaches_just_that(
    talk: Contract, chosen: dict[str, list[str]], count: int
) -> None:
    asked = {"action": "delete", "filters": query_read(chosen).filters_shown()}
    assert talk.post("memories/actions/?dry_run=true", asked).json["count"] == count


def test_facets_count_them_only_as_dialogue(talk: Contract) -> None:
    facets = {
        name: {value["value"]: value["count"] for value in values}
        for name, values in talk.get("memories/facets/").json.items()
    }
    assert facets["semantic_type"]["dialogue"] == 5
    assert sum(facets["namespace"].values()) == 3


def test_a_context_holds_them_as_the_layers_do(talk: Contract) -> None:
    run_jobs()
    reply = talk.post("memories/context/", {"query": "Hello there!", "token_budget": 2_000})
    assert "What is the capital of Norway?" in reply.json["text"]


def test_a_filter_by_anything_but_true_and_false_is_refused(alice: Contract) -> None:
    reply = alice.post("memories/search/", {"query": "x", "filters": {"dialogue_only": "yes"}})
    assert fields_at_fault(reply) == {"filters.dialogue_only"}


def test_who_may_not_read_a_message_does_not_find_it_as_dialogue_either(world: World, talk: Contract) -> None:
    assert "Hello there!" in contract(world, "bob").list_contents("semantic_type=dialogue")
    charlie = contract(world, "charlie")
    assert charlie.list_contents("semantic_type=dialogue") == []
    assert charlie.search("hello there", filters=DIALOGUE) == []


def test_a_page_of_the_chat_that_states_nothing_is_dialogue_only(world: World, alice: Contract) -> None:
    talked: Any = alice.post("conversations/", {}).json
    assert alice.post(f"conversations/{talked['id']}/turns/", {"content": "Hello there!"}).status == 201
    assert alice.post(f"conversations/{talked['id']}/turns/", {"content": STATEMENT}).status == 201
    assert sum(list_dialogue_flags(world)) == 3  # the greeting and both answers
    assert "Hello there!" not in alice.list_contents(f"session_id={talked['id']}")
