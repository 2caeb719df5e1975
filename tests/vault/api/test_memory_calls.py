"""memory-calls/: what a text asks of the memory, read and not carried out."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.utils.dateparse import parse_datetime

from governance.vocabulary import Scope
from tests.factories import World
from tests.vault.api.contract import Contract, contract, fields_at_fault

ADDRESS = "memory-calls/"
TABLES = ("vault_cube", "vault_conversation", "vault_turn", "governance_auditentry", "governance_outboxevent")
Superuser = Callable[[], psycopg.Connection]


def call_of(who: Contract, text: str, **fields: Any) -> dict[str, Any]:
    reply = who.post(ADDRESS, {"text": text, **fields})
    assert reply.status == 200, reply
    call: dict[str, Any] = reply.json["call"]
    return call


def rows(superuser: Superuser) -> list[Any]:
    return [superuser().execute(f"SELECT count(*) FROM {table}").fetchone() for table in TABLES]


@pytest.mark.parametrize(
    ("text", "intent", "query", "scope"),
    [
        ("Remember that my dog is Rex", "add", "Remember that my dog is Rex", "all"),
        ("Where does Theo live?", "search", "Where does Theo live?", "all"),
        ("Actually my dog is called Max", "update", "Actually my dog is called Max", "all"),
        ("forget what I said about my job", "delete", "job", "own"),
        ("Summarise what you know about Anna", "summarise", "Anna", "all"),
        ("Hello", "chat", "Hello", "all"),
        ("我的狗叫小黑", "add", "我的狗叫小黑", "all"),
        ("上周决定了什么？", "search", "上周决定了什么？", "all"),
        ("忘掉我说过的关于工作的事", "delete", "工作", "own"),
        ("关于安娜你知道什么？", "summarise", "安娜", "all"),
    ],
)
def test_a_text_is_answered_with_its_call(alice: Contract, text: str, intent: str, query: str, scope: str) -> None:
    call = call_of(alice, text)
    assert (call["intent"], call["query"], call["scope"]) == (intent, query, scope)
    assert (call["rewritten"], call["task"]) == (text, "")
    assert 0 < call["confidence"] < 1


def test_names_are_entities_and_anchors(alice: Contract) -> None:
    call = call_of(alice, "What do you know about Anna?")
    assert call["entities"] == call["anchors"] == ["anna"]
    assert call["time_range"] is None


@pytest.mark.parametrize("text", ["What was decided last week?", "上周决定了什么？"])
def test_a_named_week_is_a_time_range_of_seven_days(alice: Contract, text: str) -> None:
    start, end = (parse_datetime(call_of(alice, text)["time_range"][name]) for name in ("start", "end"))
    assert start is not None
    assert end is not None
    assert (end - start, start.weekday(), start.utcoffset()) == (timedelta(days=7), 0, timedelta(0))


def test_a_call_is_not_carried_out(alice: Contract, superuser: Superuser) -> None:
    alice.add("My dog is Rex.")
    before = rows(superuser)
    for text in ("Remember that my cat is Tom.", "Forget my dog", "Where does Theo live?"):
        call_of(alice, text)
    assert rows(superuser) == before


def test_a_follow_up_is_completed_from_its_conversation(alice: Contract) -> None:
    conversation = alice.post("conversations/", {}).json["id"]
    alice.post(f"conversations/{conversation}/turns/", {"content": "Where does Theo live?"})
    assert call_of(alice, "What about Clara?", session_id=conversation)["rewritten"] == "Where does Clara live?"
    assert call_of(alice, "What about Clara?")["rewritten"] == "What about Clara?"


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("charlie", 404)])
def test_the_conversation_of_another_member_is_refused(world: World, alice: Contract, who: str, status: int) -> None:
    conversation = alice.post("conversations/", {}).json["id"]
    alice.post(f"conversations/{conversation}/turns/", {"content": "Where does Theo live?"})
    reply = contract(world, who).post(ADDRESS, {"text": "And Clara?", "session_id": conversation})
    assert reply.status == status
    assert b"Theo" not in reply.body
    assert call_of(contract(world, who), "Where does Theo live?")["intent"] == "search"


def test_who_may_not_use_the_chat_is_refused(world: World) -> None:
    asked = {"text": "Where does Theo live?"}
    assert world.client("ada").post(ADDRESS, asked).status == 403
    assert contract(world, "alice", Scope.MEMORIES_READ).post(ADDRESS, asked).status == 403
    assert contract(world, "alice", Scope.CHAT).post(ADDRESS, asked).status == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": "Hello", "session_id": "monday"}, "session_id"),
        ({"text": "Hello", "execute": True}, "execute"),
    ],
)
def test_a_body_that_cannot_be_read_names_its_field(alice: Contract, body: dict[str, Any], field: str) -> None:
    assert fields_at_fault(alice.post(ADDRESS, body)) == {field}


def test_a_text_over_the_limit_is_413(alice: Contract) -> None:
    assert alice.post(ADDRESS, {"text": "x" * 32_001}).status == 413
