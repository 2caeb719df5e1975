"""Tests of the chat page: suggested questions, search of conversations, retry, prompt."""

import re
from html import unescape

import pytest
from django.test import Client
from pytest_httpserver import HTTPServer

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.chat.test_model import answers_with, model
from tests.vault.outbox import run_jobs
from tests.vault.web.test_chat import begin_conversation, text
from tests.vault.web.test_chat_memory import ask_question
from vault.chat.rules import INSTRUCTIONS

__all__ = ["model"]

CHINESE = {"Accept-Language": "zh-CN"}


@pytest.fixture
def alice(world: World) -> Client:
    return signed_in(world.alice)


def add(world: World, *contents: str, who: str = "alice", **fields: str) -> None:
    for content in contents:
        assert world.client(who).post("memories/", {"content": content, **fields}).status == 201
    run_jobs()


def suggestions(client: Client, **headers: str) -> list[str]:
    page = client.get("/chat/", headers=headers).content.decode()
    ideas = page.partition('class="ideas"')[2].partition("</ul>")[0]
    return [unescape(item) for item in re.findall(r'dir="auto">([^<]+)</a>', ideas)]


def list_titles(client: Client, words: str) -> list[str]:
    page = client.get("/chat/", {"find": words}).content.decode()
    rooms = page.partition('id="conversations"')[2].partition("</nav>")[0]
    return re.findall(r'<a href="/chat/[^"]+"\s+title="([^"]*)"', rooms)


def test_without_memories_nothing_is_suggested(alice: Client) -> None:
    assert suggestions(alice) == []


def test_at_most_three_suggestions_are_about_the_newest_memories(world: World, alice: Client) -> None:
    add(world, "Boris lives in Rome.", "Clara lives in Oslo.", "The shop is open.", "Theo lives in Ghent.")
    alice.post("/chat/", {"content": "I love green tea."})
    names = ["me", "Theo", "Clara"]
    assert suggestions(alice) == [f"What do you know about {name}?" for name in names]


@pytest.mark.parametrize("headers", [{}, CHINESE], ids=["en", "zh"])
def test_every_suggestion_is_answered_from_its_memory(world: World, alice: Client, headers: dict[str, str]) -> None:
    add(world, "Theo lives in Ghent.", "周凯住在上海。")
    alice.post("/chat/", {"content": "I love green tea."})
    run_jobs()
    offered = suggestions(alice, **headers)
    assert len(offered) == 3
    for question, quote in zip(offered, ("green tea", "上海", "Ghent"), strict=True):
        _, turn = ask_question(alice, question)
        assert quote in text(alice, turn), question


def test_nothing_is_suggested_of_what_the_reader_may_not_read(world: World, alice: Client) -> None:
    add(world, "Theo lives in Ghent.")
    for who in ("bob", "charlie"):
        assert suggestions(signed_in(world.person(who))) == []
    add(world, "Clara lives in Oslo.", namespace="/team")
    assert suggestions(signed_in(world.bob)) == ["What do you know about Clara?"]
    assert suggestions(signed_in(world.charlie)) == []


def test_nothing_is_suggested_of_a_namespace_that_must_be_mounted(world: World) -> None:
    expert = {"path": "/clinic", "kind": "expert"}
    assert world.client("olivia").post("namespaces/", expert).status == 201
    add(world, "Theo lives in Ghent.", who="olivia", namespace="/clinic")
    assert suggestions(signed_in(world.olivia)) == []


def test_conversations_are_listed_by_words_of_their_titles(world: World, alice: Client) -> None:
    begin_conversation(alice, "How does Ana travel?")
    begin_conversation(alice, "Where is Oslo?")
    begin_conversation(alice, "小雨喜欢什么？")
    assert list_titles(alice, "TRAVEL ana") == ["How does Ana travel?"]
    assert list_titles(alice, "小雨") == ["小雨喜欢什么？"]
    assert list_titles(alice, "ana oslo") == []
    assert "has these words." in text(alice, "/chat/?find=zebra")
    assert len(list_titles(alice, " ")) == 3
    for who in ("bob", "charlie"):
        assert list_titles(signed_in(world.person(who)), "ana") == []


def test_conversations_are_listed_by_words_of_one_of_their_messages(world: World, alice: Client) -> None:
    address = begin_conversation(alice, "How does Ana travel?")
    alice.post(f"{address}turns/", {"content": "I saw a squirrel in the wetland park."})
    alice.post(f"{address}turns/", {"content": "今天我在湿地公园跑步。"})
    begin_conversation(alice, "Where is Oslo?")
    for words in ("squirrel", "PARK wetland", "湿地公园"):
        assert list_titles(alice, words) == ["How does Ana travel?"]
    assert list_titles(alice, "squirrel oslo") == []
    for who in ("bob", "charlie"):
        assert list_titles(signed_in(world.person(who)), "squirrel") == []
    alice.post(f"{address}delete/")
    assert list_titles(alice, "squirrel") == []


def test_new_conversation_has_the_chosen_persona_and_agent(world: World, alice: Client) -> None:
    agent = world.client("olivia").post("personas/", {"name": "Guide", "kind": "agent"}).json["id"]
    persona = world.client("alice").post("personas/", {"name": "Traveller"}).json["id"]
    page = text(alice, "/chat/")
    assert f'<option value="{agent}">Guide</option>' in page
    assert f'<option value="{persona}">Traveller</option>' in page
    chosen = {"persona": persona, "agent_persona": agent, "model": "extractive"}
    address = alice.post("/chat/", chosen)["Location"]
    stored = world.client("alice").get(f"conversations/{address.split('/')[-2]}/").json
    assert (stored["persona"]["id"], stored["agent_persona"]["id"]) == (persona, agent)
    assert stored["model"] == "extractive"
    assert re.search(r'<span class="chip[^>]*>(?:(?!</span>).)*Guide</span>', text(alice, address), re.DOTALL)
    assert "Guide</span>" not in text(alice, alice.post("/chat/", {})["Location"])


def test_answering_agent_and_model_are_changed_on_the_page_of_the_title(world: World, alice: Client) -> None:
    agent = world.client("olivia").post("personas/", {"name": "Guide", "kind": "agent"}).json["id"]
    address = begin_conversation(alice, "How does Ana travel?")
    assert f'<option value="{agent}">Guide</option>' in text(alice, f"{address}rename/")
    chosen = {"title": "Journeys", "agent_persona": agent}
    assert alice.post(f"{address}rename/", chosen)["Location"] == address
    assert re.search(r'<span class="chip[^>]*>(?:(?!</span>).)*Guide</span>', text(alice, address), re.DOTALL)
    assert f'<option value="{agent}" selected>Guide</option>' in text(alice, f"{address}rename/")
    no_agent = world.client("alice").get("me/").json["personas"][0]["id"]
    refused = alice.post(f"{address}rename/", {"title": "Other", "agent_persona": no_agent})
    assert refused.status_code == 422
    assert "This persona or model is no longer there." in refused.content.decode()
    assert "<h1>Journeys</h1>" in text(alice, address)
    alice.post(f"{address}rename/", {"title": "Journeys", "agent_persona": ""})
    assert "Guide</span>" not in text(alice, address)


def test_an_open_conversation_stays_open_while_others_are_looked_for(alice: Client) -> None:
    address = begin_conversation(alice, "How does Ana travel?")
    page = text(alice, f"{address}?find=oslo")
    assert "<h1>How does Ana travel?</h1>" in page
    assert f'action="{address}#conversations"' in page


def test_a_question_can_be_asked_again(alice: Client) -> None:
    address, turn = ask_question(alice, "How does\nAna travel?")
    form = text(alice, turn).partition('class="retry"')[2].partition("</form>")[0]
    content = re.search(r'name="content" value="([^"]*)"', form)
    assert content is not None
    assert f'action="{address}turns/"' in form
    alice.post(f"{address}turns/", {"content": unescape(content[1])})
    assert text(alice, address).count('class="question"') == 2


@pytest.mark.parametrize("content", ["I love green tea.", "Forget what I said about my job"])
def test_what_is_stated_or_deleted_is_not_offered_again(alice: Client, content: str) -> None:
    _, turn = ask_question(alice, content)
    assert 'class="retry"' not in text(alice, turn)


def test_why_shows_the_messages_to_a_model(world: World, alice: Client, model: HTTPServer) -> None:
    add(world, "Ana travels by train.")
    sent = answers_with(model, "By train [1].")
    address, _ = ask_question(alice, "How does Ana travel?")
    _, turn = ask_question(alice, "And how does she travel to Oslo?", address)
    page = unescape(text(alice, f"{turn}why/"))
    assert "<summary>Prompt</summary>" in page
    messages = [message["content"] for message in sent[-1]["messages"]]
    assert messages[0] == INSTRUCTIONS
    assert len(messages) == 4
    assert [message for message in messages if message not in page] == []
    assert '[1] "Ana travels by train."' in page


def test_why_shows_no_prompt_where_no_model_answered(world: World, alice: Client) -> None:
    add(world, "Ana travels by train.")
    _, turn = ask_question(alice, "How does Ana travel?")
    assert "Prompt" not in text(alice, f"{turn}why/")
