"""Tests of an answer's sources and a member's changes there, as pages without JavaScript."""

import re

import pytest
from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.outbox import run_jobs


@pytest.fixture
def alice(world: World) -> Client:
    assert world.client("alice").post("memories/", {"content": "Ana travels by train."}).status == 201
    run_jobs()
    return signed_in(world.alice)


def ask_question(client: Client, question: str, address: str = "/chat/") -> tuple[str, str]:
    """The address of the conversation, and that of the new turn."""
    target = address if address == "/chat/" else f"{address}turns/"
    location = client.post(target, {"content": question})["Location"]
    page, _, anchor = location.partition("#turn-")
    return page, f"{page}turns/{anchor}/"


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response
    return response.content.decode()


def memory_in(page: str) -> str:
    found = re.search(r'name="memory"\s+value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_why_lists_the_memories_with_their_scores(alice: Client) -> None:
    _, turn = ask_question(alice, "How does Ana travel?")
    page = text(alice, f"{turn}why/")
    assert "Ana travels by train." in page
    assert "No language model was used." in page
    assert "Words" in page
    assert "<html" not in alice.get(f"{turn}why/", headers={"HX-Request": "true"}).content.decode()


def test_a_memory_that_is_left_out_is_not_in_the_next_answer(alice: Client) -> None:
    page, turn = ask_question(alice, "How does Ana travel?")
    memory = memory_in(text(alice, f"{turn}why/"))
    assert alice.post(f"{turn}use/", {"memory": memory, "action": "exclude"}).status_code == 303
    assert "Not used here" in text(alice, f"{turn}why/")
    _, again = ask_question(alice, "How does Ana travel?", page)
    assert "train" not in text(alice, again).replace("How does Ana travel?", "")
    alice.post(f"{turn}use/", {"memory": memory, "action": "include"})
    _, third = ask_question(alice, "How does Ana travel?", page)
    assert "Ana travels by train." in text(alice, third)


def test_a_forgotten_memory_is_not_in_the_next_answer_until_it_is_restored(alice: Client) -> None:
    page, turn = ask_question(alice, "How does Ana travel?")
    memory = memory_in(text(alice, f"{turn}why/"))
    assert "Undo" in alice.post(f"{turn}use/", {"memory": memory, "action": "forget"}).content.decode()
    _, again = ask_question(alice, "How does Ana travel?", page)
    assert "by train" not in text(alice, again)
    alice.post(f"{turn}use/", {"memory": memory, "action": "restore"})
    run_jobs()
    _, third = ask_question(alice, "How does Ana travel?", page)
    assert "by train" in text(alice, third)


def test_what_was_stored_of_a_question_can_be_undone(alice: Client) -> None:
    page, turn = ask_question(alice, "I love green tea.")
    assert "1 memory stored:" in text(alice, page)
    assert alice.post(f"{turn}undo/").status_code == 303
    assert "memory stored:" not in text(alice, page)
    run_jobs()
    _, answer = ask_question(alice, "What do you know about me?", page)
    assert "green tea" not in text(alice, answer)


def test_forgetting_is_confirmed_by_a_button(alice: Client) -> None:
    page, _ = ask_question(alice, "I work as a nurse.")
    run_jobs()
    _, turn = ask_question(alice, "Forget what I said about my job", page)
    assert "Forget 1 memory" in text(alice, turn)
    assert alice.post(f"{turn}forget/").status_code == 303
    assert "Forget 1 memory" not in text(alice, turn)


def test_a_follow_up_shows_what_was_searched_for(alice: Client) -> None:
    page, _ = ask_question(alice, "How does Ana travel?")
    _, turn = ask_question(alice, "And Theo?", page)
    assert "Searched for “How does Theo travel?”" in text(alice, turn)


def test_goals_are_recalled_until_they_are_turned_off(alice: Client) -> None:
    ask_question(alice, "I want to lose weight.")
    run_jobs()
    _, turn = ask_question(alice, "Can you recommend a burger?")
    assert "You have a goal that this touches:" in text(alice, turn)
    other = alice.post("/chat/")["Location"]
    assert "Goals on" in text(alice, other)
    assert alice.post(f"{other}goals/", {"raises_goals": "no"}).status_code == 303
    assert "Goals off" in text(alice, other)
    _, quiet = ask_question(alice, "Can you recommend a burger?", other)
    assert "You have a goal" not in text(alice, quiet)


def test_a_conversation_is_exported_as_text(alice: Client) -> None:
    page, _ = ask_question(alice, "How does Ana travel?")
    response = alice.get(f"{page}export/")
    assert response["Content-Disposition"].startswith("attachment")
    assert "> How does Ana travel?" in response.content.decode()


@each_case(("who", "status"), [("bob", 404), ("charlie", 404)])
@each_case("part", ["undo/", "forget/", "use/", "why/"])
def test_the_conversation_of_another_member_is_refused(
    world: World, alice: Client, who: str, status: int, part: str
) -> None:
    _, turn = ask_question(alice, "How does Ana travel?")
    memory = memory_in(text(alice, f"{turn}why/"))
    client = signed_in(world.person(who))
    address = f"{turn}{part}"
    reply = client.get(address) if part == "why/" else client.post(address, {"memory": memory, "action": "exclude"})
    assert reply.status_code == status
    assert "Ana travels by train." in text(alice, turn)


@pytest.mark.parametrize("body", [{}, {"memory": "x", "action": "exclude"}, {"action": "exclude"}])
def test_an_unknown_action_is_refused(alice: Client, body: dict[str, str]) -> None:
    _, turn = ask_question(alice, "How does Ana travel?")
    assert alice.post(f"{turn}use/", body).status_code in {400, 422}
