"""The chat pages, as forms and links without JavaScript, and as the stream that the script reads."""

import json
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from pytest_httpserver import HTTPServer

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.chat.test_model import answers_with, model
from vault.models import Conversation

__all__ = ["model"]

QUESTION = "How does Ana travel?"
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def alice(world: World) -> Client:
    """Signed in; one memory is known."""
    sent = world.client("alice").post("memories/", {"content": "Ana travels by train.", "title": "Ana's journeys"})
    assert sent.status == 201
    return signed_in(world.alice)


def begin_conversation(client: Client, question: str = QUESTION) -> str:
    """The address of a new conversation with one turn."""
    response = client.post("/chat/", {"content": question})
    assert response.status_code == 303, response.content
    return response["Location"].partition("#")[0]


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def stream_answer(client: Client, address: str, question: str) -> tuple[Any, list[tuple[str, dict[str, Any]]]]:
    """The response, and its events."""
    browser = AsyncClient()
    browser.cookies = client.cookies

    async def ask() -> tuple[Any, str]:
        response: Any = await browser.post(address, {"content": question}, headers=STREAM)
        return response, b"".join([part async for part in response.streaming_content]).decode()

    response, body = async_to_sync(ask)()
    response.close()
    blocks = re.findall(r"event: (\w+)\ndata: (.*)\n\n", body)
    return response, [(name, json.loads(data)) for name, data in blocks]


def test_the_empty_chat_teaches_what_to_do(alice: Client) -> None:
    page = text(alice, "/chat/")
    assert "How memories get in" in page
    assert "curl http://testserver/api/v1/memories/" in page


def test_chinese_deletion_page_has_no_space_after_a_full_stop(alice: Client) -> None:
    page = alice.get(f"{begin_conversation(alice)}delete/", headers={"Accept-Language": "zh-CN"}).content.decode()
    assert not re.search(r"[。，]\s+[\u4e00-\u9fff]", re.sub(r"</?p>", "|", page))


def test_a_question_is_answered_with_chips_that_lead_to_memories(alice: Client) -> None:
    page = text(alice, begin_conversation(alice))
    assert "No language model was used" in page
    chip = re.search(r'<a class="chip-cite" href="(/memories/[^"]+)"', page)
    assert chip is not None
    assert "Ana travels by train." in text(alice, chip[1])


def test_unquoted_answer_is_not_marked_as_a_quote(alice: Client) -> None:
    page = text(alice, begin_conversation(alice, "My favourite colour is green."))
    assert "these are sentences from your memories" not in re.sub(r'data-quoted="[^"]*"', "", page)


def test_a_conversation_may_begin_without_a_question(alice: Client) -> None:
    response = alice.post("/chat/")
    assert response.status_code == 303
    assert "New conversation" in text(alice, response["Location"])


def test_the_answer_to_a_form_is_a_redirect_to_the_turn(alice: Client) -> None:
    address = begin_conversation(alice)
    response = alice.post(f"{address}turns/", {"content": "And Ana by plane?"})
    assert response.status_code == 303
    turn = response["Location"].partition("#")[2]
    assert f'id="{turn}"' in text(alice, address)
    assert alice.get(f"{address}turns/")["Location"] == address


@each_case("where", ["/chat/", "turns/"])
@each_case(
    ("question", "fault"),
    [
        ("  ", "Write something to ask."),
        ("x" * (settings.MAX_CONTENT_CHARACTERS + 1), "Too long: write at most 32000 characters."),
    ],
)
def test_a_question_that_cannot_be_used_stays_in_its_box(alice: Client, where: str, question: str, fault: str) -> None:
    address = where if where.startswith("/") else begin_conversation(alice) + where
    response = alice.post(address, {"content": question})
    page = response.content.decode()
    assert response.status_code == 422
    assert fault in page
    assert f">{question}</textarea>" in page


def test_a_question_that_cannot_be_used_begins_no_conversation(alice: Client) -> None:
    alice.post("/chat/", {"content": " "})
    assert "Your conversations will be listed here." in text(alice, "/chat/")


def test_a_first_question_that_a_policy_refuses_begins_no_conversation(world: World, alice: Client) -> None:
    refuse = {"kind": "pii", "name": "none", "document": {"action": "refuse"}}
    assert world.client("olivia").post("policies/", refuse).status == 201
    question = "Who is ana@example.com?"
    page = alice.post("/chat/", {"content": question})
    assert page.status_code == 422
    assert question in page.content.decode()
    assert alice.post("/chat/", {"content": question}, headers=STREAM).json()["code"] == "pii_refused"
    assert conversations(world) == 0
    assert begin_conversation(alice)
    assert conversations(world) == 1


def test_a_first_question_over_the_quota_begins_no_conversation(world: World, alice: Client, model: HTTPServer) -> None:
    asked = answers_with(model, "By train [1].")
    limits = {"holder": {"kind": "tenant"}, "limits": {"model_tokens_per_month": 0}}
    assert world.client("olivia").send("PUT", "quotas/", limits).status in {200, 201}
    for headers in ({}, STREAM):
        assert alice.post("/chat/", {"content": QUESTION}, headers=headers).status_code == 429
    assert (len(asked), conversations(world)) == (0, 0)


def conversations(world: World) -> int:
    """Count alice's conversations, with deleted ones."""
    with acting(world.alice.actor):
        return Conversation.objects.count()


def test_the_stream_brings_the_words_the_citations_and_the_turn(alice: Client) -> None:
    response, events = stream_answer(alice, "/chat/", QUESTION)
    assert response["Content-Type"].startswith("text/event-stream")
    names = [name for name, _ in events]
    assert names[-1] == "done"
    assert {"token", "citation"} <= set(names)
    answer = "".join(data["text"] for name, data in events if name == "token")
    assert "Ana travels by train." in answer
    assert response["Content-Location"].endswith(f"/turns/{events[-1][1]['id']}/")
    part = text(alice, response["Content-Location"])
    assert part.count("<article") == 1
    assert "<html" not in part


def test_a_stream_that_cannot_begin_is_json(alice: Client) -> None:
    response = alice.post(begin_conversation(alice) + "turns/", {"content": " "}, headers=STREAM)
    assert response.status_code == 422
    assert response.json()["code"] == "invalid"


def test_what_people_write_is_shown_as_text(alice: Client) -> None:
    nasty = "<script>alert(1)</script> <b hx-get='/x'>Ana</b>\n  train?"
    page = text(alice, begin_conversation(alice, nasty))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &lt;b hx-get=&#x27;/x&#x27;&gt;Ana&lt;/b&gt;\n  train?" in page


def test_a_conversation_can_be_renamed(alice: Client) -> None:
    address = begin_conversation(alice)
    assert f'value="{QUESTION}"' in text(alice, f"{address}rename/")
    refused = alice.post(f"{address}rename/", {"title": " "})
    assert refused.status_code == 422
    assert alice.post(f"{address}rename/", {"title": "Journeys"})["Location"] == address
    assert "<h1>Journeys</h1>" in text(alice, address)


def test_deletion_lists_its_effects_and_removes_the_conversation(alice: Client) -> None:
    address = begin_conversation(alice)
    alice.post(f"{address}turns/", {"content": "When does Ana travel?"})
    assert "2 questions and their answers will be deleted" in text(alice, f"{address}delete/")
    assert alice.get(address).status_code == 200
    assert alice.post(f"{address}delete/")["Location"] == "/chat/"
    assert alice.get(address).status_code == 404


@each_case(("who", "status"), [("olivia", 404), ("bob", 404), ("charlie", 404)])
@each_case("part", ["", "rename/", "delete/"])
def test_a_conversation_is_its_members_only(world: World, alice: Client, who: str, status: int, part: str) -> None:
    address = begin_conversation(alice)
    other = signed_in(world.person(who))
    assert other.get(address + part).status_code == status
    assert other.post(f"{address}turns/", {"content": "Hello?"}).status_code == status
    assert other.post(f"{address}delete/").status_code == status
    assert other.post(f"{address}rename/", {"title": "Mine"}).status_code == status
    assert f"<h1>{QUESTION}</h1>" in text(alice, address)


def test_a_turn_is_asked_through_the_channel_of_the_chat(
    alice: Client, superuser: Callable[[], psycopg.Connection]
) -> None:
    begin_conversation(alice)
    rows = superuser().execute(
        "SELECT DISTINCT context->>'channel' FROM governance_auditentry"
        " WHERE verb IN ('turn.created', 'memory.searched')"
    )
    assert rows.fetchall() == [("chat",)]


def test_a_long_conversation_comes_in_pages(alice: Client) -> None:
    address = begin_conversation(alice, "Question number 0?")
    for number in range(1, 32):
        alice.post(f"{address}turns/", {"content": f"Question number {number}?"})
    page = text(alice, address)
    assert "Question number 31?</pre>" in page
    assert "Question number 1?</pre>" not in page
    older = re.search(r'href="(\?before=\d+)"', page)
    assert older is not None
    assert "Question number 1?</pre>" in text(alice, address + older[1])


def test_a_page_costs_the_same_few_queries_however_much_it_shows(alice: Client) -> None:
    address = begin_conversation(alice)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            text(alice, address)
        return len(queries)

    few = cost()
    for number in range(3):
        alice.post(f"{address}turns/", {"content": f"And {number}?"})
        begin_conversation(alice)
    assert cost() == few
    assert few <= 33  # with those that begin and end the two transactions


@each_case("where", ["/chat/", "turns/", "rename/", "delete/", "/sign-out/", "/language/"])
def test_no_form_is_taken_from_elsewhere(alice: Client, where: str) -> None:
    address = begin_conversation(alice)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = alice.cookies
    target = where if where.startswith("/") else address + where
    assert strict.post(target, {"content": "Hello?", "title": "Mine", "language": "zh-hans"}).status_code == 403
    assert f"<h1>{QUESTION}</h1>" in text(alice, address)


def test_first_question_begins_a_conversation_with_the_chosen_persona(world: World) -> None:
    persona = world.client("alice").post("personas/", {"name": "Alice at work"}).json["id"]
    client = signed_in(world.alice)
    page = client.get("/chat/").content.decode()
    assert '<select name="persona" class="form-select" form="composer" id="persona">' in page
    asked = client.post("/chat/", {"content": "When does the heron nest?", "persona": persona})
    assert asked.status_code == 303
    (found,) = world.client("alice").get("conversations/").json["results"]
    assert found["persona"]["id"] == persona
    refused = client.post("/chat/", {"content": "x" * 100_000, "persona": persona})
    assert refused.status_code in {413, 422}
    assert world.client("alice").get("conversations/").json["count"] == 1, "a refused question leaves none"
