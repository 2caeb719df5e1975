"""Tests of chat commands: remember, summarise, forget, and goals that a question touches."""

import pytest

from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs


def begin(who: Contract) -> str:
    return f"conversations/{who.post('conversations/', {}).json['id']}/turns/"


def ask(who: Contract, turns: str, content: str) -> str:
    reply = who.post(turns, {"content": content})
    assert reply.status == 201
    return str(reply.json["content"])


def test_memories_about_the_member_are_listed_in_groups_with_citations(alice: Contract) -> None:
    turns = begin(alice)
    for text in ("I'm allergic to peanuts.", "I want to lose weight.", "I love green tea.", "Hello", "Thanks!"):
        alice.post(turns, {"content": text})
    alice.add("Anna lives in Porto.")
    run_jobs()
    turn = alice.post(turns, {"content": "What do you know about me?"}).json
    lines = turn["content"].split("\n")
    assert lines[0] == "This is what your memories hold:"
    assert [line for line in lines if line.endswith(":")][1:] == ["Profile:", "Preferences:", "Goals:"]
    assert [citation["marker"] for citation in turn["citations"]] == [1, 2, 3]
    assert "Porto" not in turn["content"]


@pytest.mark.parametrize("question", ["Summarise what you know about Anna", "关于Anna你知道什么？"])
def test_a_summary_about_somebody_names_nobody_else(alice: Contract, question: str) -> None:
    for text in ("Anna lives in Porto.", "Anna likes the sea.", "Jon likes tea."):
        alice.add(text)
    run_jobs()
    content = ask(alice, begin(alice), question)
    assert "Porto" in content
    assert "Jon" not in content


def test_forgetting_lists_what_goes_and_deletes_after_a_yes(alice: Contract) -> None:
    turns = begin(alice)
    for text in ("I work as a nurse.", "I love green tea."):
        alice.post(turns, {"content": text})
    run_jobs()
    listed = ask(alice, turns, "Forget what I said about my job")
    assert "I work as a nurse." in listed
    assert "green tea" not in listed
    assert len(alice.get("memories/?semantic_type=profile").json["results"]) == 1
    assert ask(alice, turns, "Yes").startswith("Forgotten.")
    assert alice.get("memories/?semantic_type=profile").json["results"] == []
    assert len(alice.get("memories/?semantic_type=preference").json["results"]) == 1


def test_a_yes_to_nothing_deletes_nothing(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "I love green tea."})
    ask(alice, turns, "Yes")
    assert len(alice.get("memories/?semantic_type=preference").json["results"]) == 1


def test_a_held_memory_is_not_forgotten(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "I work as a nurse."})
    (memory,) = alice.get("memories/?semantic_type=profile").json["results"]
    assert alice.post(f"memories/{memory['id']}/freeze/", {"reason": "Case 17"}).status == 200
    ask(alice, turns, "Forget what I said about my job")
    assert alice.post(turns, {"content": "Yes"}).status == 423
    assert len(alice.get("memories/?semantic_type=profile").json["results"]) == 1


def test_a_follow_up_is_searched_with_the_name_it_means(alice: Contract) -> None:
    alice.add("Theo lives in Ghent.")
    alice.add("Clara lives in Oslo.")
    run_jobs()
    turns = begin(alice)
    assert "Ghent" in ask(alice, turns, "Where does Theo live?")
    assert "Oslo" in ask(alice, turns, "What about Clara?")


def test_a_decision_is_quoted_by_its_day(alice: Contract) -> None:
    turns = begin(alice)
    alice.add("We decided to open the library in June.", event_time="2020-01-05T10:00:00Z")
    alice.post(turns, {"content": "Yesterday we decided to close the library."})
    run_jobs()
    assert "close the library" in ask(alice, turns, "What was decided yesterday?")


@pytest.mark.parametrize(
    ("goal", "question", "phrase"),
    [
        ("I want to lose weight.", "Can you recommend a burger?", "You have a goal that this touches:"),
        ("我想减肥。", "推荐一家汉堡店好吗？", "这和你的一个目标有关："),
    ],
)
def test_a_goal_is_raised_once_and_cited(alice: Contract, goal: str, question: str, phrase: str) -> None:
    alice.post(begin(alice), {"content": goal})
    run_jobs()
    turns = begin(alice)
    first = alice.post(turns, {"content": question}).json
    assert phrase in first["content"]
    assert goal in first["content"]
    assert len(first["citations"]) == 1
    assert phrase not in ask(alice, turns, question)
    assert phrase not in ask(alice, begin(alice), "Where do I live?")


def test_goal_is_switched_off_on_and_closed(world: World, alice: Contract) -> None:
    goal = alice.add("I want to lose weight.", semantic_type="goal", persona="alice")
    address, asked, phrase = f"memories/{goal['id']}/", "Can you recommend a burger?", "You have a goal"
    for name, status in (("bob", 404), ("charlie", 404)):
        assert world.client(name).post(f"{address}transition/", {"to": "archived"}).status == status
    quiet = alice.post("conversations/", {"raises_goals": False}).json
    assert quiet["raises_goals"] is False
    assert phrase not in ask(alice, f"conversations/{quiet['id']}/turns/", asked)
    assert alice.post(f"{address}transition/", {"to": "archived"}).status == 200
    assert phrase not in ask(alice, begin(alice), asked)
    assert alice.post(f"{address}transition/", {"to": "activated"}).status == 200
    assert phrase in ask(alice, begin(alice), asked)
    ended = {"valid_to": "2020-01-01T00:00:00Z"}
    assert alice.patch(address, ended, if_match="*").json["valid_to"] == ended["valid_to"]
    assert phrase not in ask(alice, begin(alice), asked)
