"""memory-calls/: what a text asks of the memory, read, and carried out where that is asked for."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.utils.dateparse import parse_datetime

from governance.vocabulary import Scope
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.chat.memory_changes import turn_statements_undo

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


@each_case(
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


def test_an_operation_lists_its_memories_and_changes_none(alice: Contract) -> None:
    alice.add("The boiler in the cellar was made by Vaillant.")
    run_jobs()
    reply = alice.post(ADDRESS, {"text": "tag my notes about the boiler as house", "execute": True}).json
    assert (reply["call"]["intent"], reply["call"]["query"], reply["call"]["argument"]) == ("tag", "boiler", "house")
    assert [memory["tags"] for memory in reply["result"]["memories"]] == [[]]
    assert len(alice.list_contents()) == 1


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


@pytest.mark.parametrize(("who", "status"), [("bob", 404), ("charlie", 404)])
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


@each_case(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": "Hello", "session_id": 7}, "session_id"),
        ({"text": "Hello", "execute": "maybe"}, "execute"),
        ({"text": "Forget my dog", "execute": True, "confirm": "made up"}, "confirm"),
    ],
)
def test_a_body_that_cannot_be_read_names_its_field(alice: Contract, body: dict[str, Any], field: str) -> None:
    assert fields_at_fault(alice.post(ADDRESS, body)) == {field}


def test_a_text_over_the_limit_is_413(alice: Contract) -> None:
    assert alice.post(ADDRESS, {"text": "x" * 32_001}).status == 413


def execute_call(who: Contract, text: str, **fields: Any) -> dict[str, Any]:
    reply = who.post(ADDRESS, {"text": text, "execute": True, **fields})
    assert reply.status == 200, reply
    body: dict[str, Any] = reply.json
    return body


def contents(body: dict[str, Any]) -> list[str]:
    return [memory["content"] for memory in body["result"]["memories"]]


@pytest.mark.parametrize(
    ("told", "asked", "summary", "forget"),
    [
        (
            "Remember that my dog is called Rex.",
            "What is my dog called?",
            "What do you know about me?",
            "Forget my dog",
        ),
        ("记住我的狗叫小黑。", "我的狗叫什么？", "你知道我的哪些事？", "忘掉关于狗的事"),
    ],
)
def test_executed_call_stores_finds_sums_up_and_deletes_once_confirmed(
    alice: Contract, told: str, asked: str, summary: str, forget: str
) -> None:
    (memory,) = execute_call(alice, told)["result"]["memories"]
    assert (memory["layer"], memory["speaker"]) == ("long_term", "user")
    assert memory["content"] in contents(execute_call(alice, asked))
    assert contents(execute_call(alice, summary)) == [memory["content"]]
    listed = execute_call(alice, forget)
    assert (listed["confirmation"]["count"], listed["confirmation"]["ids"]) == (1, [memory["id"]])
    assert alice.get(f"memories/{memory['id']}/").status == 200
    done = execute_call(alice, forget, confirm=listed["confirmation"]["token"])
    assert (done["result"]["deleted"], "confirmation" in done) == ([memory["id"]], False)
    assert alice.get(f"memories/{memory['id']}/").status == 404
    assert execute_call(alice, forget, confirm=listed["confirmation"]["token"])["result"]["deleted"] == []


def test_repeated_call_with_its_key_stores_once(alice: Contract) -> None:
    body = {"text": "Remember that my cat is called Tom.", "execute": True}
    first, second = (alice.post(ADDRESS, body, idempotency_key="once") for _ in range(2))
    assert first.json == second.json
    assert alice.get("memories/").json["count"] == 1


def test_greeting_stores_and_finds_nothing(alice: Contract) -> None:
    alice.add("My dog is called Rex.")
    assert execute_call(alice, "Hello")["result"] == {"memories": [], "deleted": []}


def test_statement_belongs_to_the_persona_that_speaks(alice: Contract) -> None:
    persona = alice.post("personas/", {"name": "Traveller"}).json["id"]
    (memory,) = execute_call(alice, "Remember that I prefer trains.", persona=persona)["result"]["memories"]
    assert memory["persona"]["id"] == persona
    assert contents(execute_call(alice, "What do I prefer?", persona="Traveller")) == [memory["content"]]
    unknown = alice.post(ADDRESS, {"text": "Hello", "execute": True, "persona": "Nobody"})
    assert unknown.status in {400, 404}


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_deletion_of_others_lists_nothing_and_refuses_their_token(world: World, alice: Contract, who: str) -> None:
    memory = alice.add("The boiler is in the cellar.", namespace="/team")
    other = contract(world, who)
    assert execute_call(other, "Forget the boiler")["confirmation"]["ids"] == []
    token = execute_call(alice, "Forget the boiler")["confirmation"]["token"]
    refused = other.post(ADDRESS, {"text": "Forget the boiler", "execute": True, "confirm": token})
    assert fields_at_fault(refused) == {"confirm"}
    assert alice.get(f"memories/{memory['id']}/").status == 200


def test_key_that_may_only_chat_reads_and_stores_no_memory(world: World, alice: Contract) -> None:
    alice.add("My dog is called Rex.")
    chats = contract(world, "alice", Scope.CHAT)
    for text in ("Remember that my cat is called Tom.", "What is my dog called?", "Forget my dog"):
        assert chats.post(ADDRESS, {"text": text, "execute": True}).status == 403
    assert alice.get("memories/").json["count"] == 1


def test_statement_of_a_message_is_no_second_hit_beside_it(alice: Contract) -> None:
    said = "Good morning! I moved to Oslo in May. How are you?"
    body = {"messages": [{"role": "user", "content": said}], "session_id": "monday", "infer": True}
    page, statement = alice.post("memories/", body).json["results"]
    assert (statement["session_id"], statement["parents"]) == ("monday", [page["id"]])
    found = [memory["id"] for memory in alice.search("Where did I move in May?", min_score=0.01)]
    assert len({page["id"], statement["id"]} & set(found)) == 1


@each_case(
    ("first", "correction", "others"),
    [
        ("My dog is Rex.", "Actually my dog is called Max.", "My sister is a nurse."),
        (
            "My dentist appointment is on 17 November.",
            "Actually, the dentist appointment was moved to 24 November.",
            "I take violin lessons on Mondays.",
        ),
        (
            "The spare key is with our neighbour Joe.",
            "Actually the spare key is in the shoe cabinet now.",
            "Joe has a dog.",
        ),
        ("家里备用钥匙放在邻居老周那里。", "其实备用钥匙已经拿回来了，现在放在鞋柜里。", "老周有一条狗。"),
        ("图书馆的会议定在周一下午。", "更正：图书馆的会议改到周三上午了。", "我在图书馆上班。"),
    ],
)
def test_an_update_ends_the_older_statement_and_no_other(
    alice: Contract, first: str, correction: str, others: str
) -> None:
    for text in (first, others):
        alice.post(ADDRESS, {"text": text, "execute": True})
    run_jobs()
    reply = alice.post(ADDRESS, {"text": correction, "execute": True})
    (newer,) = reply.json["result"]["memories"]
    rows = {memory["content"]: memory for memory in alice.get("memories/?page_size=200").json["results"]}
    assert rows[first]["valid_to"] is not None
    assert rows[first]["superseded_by"] == newer["id"]
    assert rows[others]["valid_to"] is None
    history = alice.get(f"memories/{rows[first]['id']}/versions/").json["results"]
    assert "A later statement of the same speaker corrects this one." in {row["reason"] for row in history}


@pytest.mark.parametrize(
    ("first", "update"),
    [
        ("My dog is Rex.", "Actually I moved to Oslo in June."),
        ("My sister Elena lives in Porto.", "Actually my sister Elena also likes fado."),
        ("备用钥匙放在鞋柜里。", "其实备用钥匙还有一把在办公室。"),
    ],
)
def test_an_update_about_something_else_ends_nothing(alice: Contract, first: str, update: str) -> None:
    alice.post(ADDRESS, {"text": first, "execute": True})
    run_jobs()
    alice.post(ADDRESS, {"text": update, "execute": True})
    assert {memory["valid_to"] for memory in alice.get("memories/?page_size=200").json["results"]} == {None}


def test_a_correction_in_the_chat_is_answered_with_the_new_value_and_undone_with_its_turn(
    world: World, alice: Contract
) -> None:
    conversation = alice.post("conversations/", {}).json["id"]
    turns = f"conversations/{conversation}/turns/"
    alice.post(turns, {"content": "My dog is Rex."})
    run_jobs()
    correction = alice.post(turns, {"content": "Actually my dog is Max."}).json["id"]
    run_jobs()
    answer = alice.post(turns, {"content": "Who is my dog?"}).json["content"]
    assert "Max" in answer
    assert "Rex" not in answer
    turn_statements_undo(actor=world.alice.actor, conversation_id=UUID(conversation), turn_id=UUID(correction))
    run_jobs()
    answer = alice.post(turns, {"content": "Who is my dog?"}).json["content"]
    assert "Rex" in answer
    assert "Max" not in answer
