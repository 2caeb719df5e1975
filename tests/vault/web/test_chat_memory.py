"""Tests of an answer's sources and a member's changes there, as pages without JavaScript."""

import re

import pytest
from django.test import Client

from governance.database import acting
from governance.models import AuditEntry
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.outbox import run_jobs
from vault.models import Cube


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


def test_why_tells_of_each_sentence_whether_it_was_stored(alice: Client) -> None:
    message = "I moved to Ghent in May. Thanks! What should I cook tonight? 我妹妹住在根特。谢谢！"
    _, turn = ask_question(alice, message)
    page = " ".join(re.sub(r"<[^>]+>", " ", text(alice, f"{turn}why/")).split())
    for said in (
        "Stored I moved to Ghent in May. Event · states something",
        "Not stored Thanks! is a remark on the moment",
        "Not stored What should I cook tonight? asks and states nothing",
        "Stored 我妹妹住在根特。",
        "Not stored 谢谢！ is a remark on the moment",
    ):
        assert said in page
    assert alice.post(f"{turn}undo/").status_code == 303
    page = " ".join(re.sub(r"<[^>]+>", " ", text(alice, f"{turn}why/")).split())
    assert "Not stored I moved to Ghent in May. states something, but no memory of it is there now" in page


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
    for words in ("Forget 2 memories", "1 of them is the message of yours that states the others."):
        assert words in text(alice, turn)
    assert alice.post(f"{turn}operation/").status_code == 303
    assert "Forget 2 memories" not in text(alice, turn)


def test_a_deletion_in_the_chat_is_undone_from_its_message(alice: Client) -> None:
    page, _ = ask_question(alice, "I work as a nurse.")
    run_jobs()
    _, turn = ask_question(alice, "Forget what I said about my job", page)
    alice.post(f"{turn}operation/")
    shown = alice.get(page).content.decode()
    assert "2 memories deleted" in shown
    toast = shown[shown.index('class="toast show"') :]
    ids = re.findall(r'name="id" value="([^"]+)"', toast)
    assert len(ids) == 2  # the statement and its message
    body = {"action": "restore", "confirmed": "yes", "next": page, "id": ids}
    assert alice.post("/memories/bulk/", body).status_code == 303
    assert "2 memories restored" in text(alice, page)
    run_jobs()
    _, answer = ask_question(alice, "Where do I work? What is my job?", page)
    assert "nurse" in text(alice, answer)


def test_memories_are_archived_and_restored_by_a_button(alice: Client) -> None:
    page, _ = ask_question(alice, "The boiler in the cellar was made by Vaillant.")
    run_jobs()
    _, turn = ask_question(alice, "Archive my notes about the boiler", page)
    assert "Vaillant" in text(alice, turn)
    assert "Archive 2 memories" in text(alice, turn)
    alice.post(f"{turn}operation/")
    assert "2 memories changed" in text(alice, page)
    assert "Archive 2 memories" not in text(alice, turn)
    run_jobs()
    _, answer = ask_question(alice, "Who made the boiler?", page)
    assert "Vaillant" not in text(alice, answer)
    _, turn = ask_question(alice, "Bring back my notes about the boiler", page)
    assert "Restore 2 memories" in text(alice, turn)
    alice.post(f"{turn}operation/")
    run_jobs()
    _, answer = ask_question(alice, "Who made the boiler?", page)
    assert "Vaillant" in text(alice, answer)


def test_a_tag_is_added_after_a_yes(alice: Client, world: World) -> None:
    page, _ = ask_question(alice, "The boiler in the cellar was made by Vaillant.")
    run_jobs()
    ask_question(alice, "tag my notes about the boiler as house", page)
    _, answer = ask_question(alice, "yes", page)
    assert "Done." in text(alice, answer)
    with acting(world.alice.actor):
        assert Cube.objects.filter(tags__contains=["house"]).count() == 1


def test_a_viewer_archives_no_memory_of_others(alice: Client, world: World) -> None:
    stored = world.client("alice").post("memories/", {"content": "Ana cooks at Lindqvist.", "namespace": "/team"})
    assert stored.status == 201
    run_jobs()
    client = signed_in(world.bob)
    page, turn = ask_question(client, "Archive my notes about Ana")
    assert "Archive 1 memory" in text(client, turn)
    client.post(f"{turn}operation/")
    assert "0 memories changed, 1 left out" in text(client, page)
    with acting(world.alice.actor):
        assert not Cube.objects.filter(state="archived").exists()
        assert AuditEntry.objects.filter(outcome="denied", principal_id=world.bob.actor.principal_id).exists()
    _, answer = ask_question(alice, "How does Ana travel?")
    assert "train" in text(alice, answer)


def test_the_offer_of_another_member_is_not_found(alice: Client, world: World) -> None:
    _, turn = ask_question(alice, "Archive my notes about Ana")
    assert signed_in(world.bob).post(f"{turn}operation/").status_code == 404
    assert signed_in(world.charlie).post(f"{turn}operation/").status_code == 404


@each_case(
    ("asked", "reply"),
    [
        ("merge my notes about the boiler", "The chat fuses no memories"),
        ("roll back my note about the boiler", "The chat brings back no versions"),
        ("who has read my notes about the boiler?", "names who read it"),
        ("freeze my notes about the boiler", "A freeze needs a reason"),
        ("promote my notes about the boiler", "The chat changes no layers"),
        ("change my note about the boiler", "Tell me how it is now"),
        ("archive my notes about the ferry", "so nothing was done"),
        ("restore my notes about the ferry", "No archived memory is about this"),
        ("冻结关于锅炉的记忆", "冻结需要理由"),
    ],
)
def test_other_operations_are_declined_in_words_and_stored_by_none(alice: Client, asked: str, reply: str) -> None:
    page, _ = ask_question(alice, "The boiler in the cellar was made by Vaillant. 地下室的锅炉是威能的。")
    run_jobs()
    _, turn = ask_question(alice, asked, page)
    assert reply in text(alice, turn)
    assert "stored:" not in text(alice, turn)
    assert alice.post(f"{turn}operation/").status_code in {303, 404}


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
