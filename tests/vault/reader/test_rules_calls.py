"""Tests of requests in texts: commands, completed follow-ups, and goals that a question touches."""

from datetime import UTC, datetime

import pytest

from vault.reader.rules import Intent, confirms, find_touched_goal, memory_call, whole_question

SAID_AT = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "intent", "query", "scope"),
    [
        ("Remember that my dog is Rex", "add", "Remember that my dog is Rex", "all"),
        ("Actually my dog is called Max", "update", "Actually my dog is called Max", "all"),
        ("forget what I said about my job", "delete", "job", "own"),
        ("Please delete everything about Anna.", "delete", "Anna", "all"),
        ("What do you know about me?", "summarise", "me", "own"),
        ("summarise what you know about Anna", "summarise", "Anna", "all"),
        ("Summarize what you know", "summarise", "", "all"),
        ("Tell me about Anna", "summarise", "Anna", "all"),
        ("What was decided last week?", "search", "What was decided last week?", "all"),
        ("Forget it", "chat", "Forget it", "all"),
        ("Hello", "chat", "Hello", "all"),
        ("忘掉我说过的关于工作的事", "delete", "工作", "own"),
        ("你知道我什么？", "summarise", "我", "own"),
        ("关于安娜你知道什么？", "summarise", "安娜", "all"),
        ("总结一下你知道的关于小雨的事", "summarise", "小雨", "all"),
        ("上周决定了什么？", "search", "上周决定了什么？", "all"),
        ("忘了吧", "chat", "忘了吧", "all"),
    ],
)
def test_a_text_is_read_as_a_call(text: str, intent: str, query: str, scope: str) -> None:
    call = memory_call(text, said_at=SAID_AT)
    assert (call.intent, call.query, call.scope) == (Intent(intent), query, scope)


@pytest.mark.parametrize("text", ["What was decided last week?", "上周决定了什么？"])
def test_a_week_is_a_time_range(text: str) -> None:
    time_range = memory_call(text, said_at=SAID_AT).time_range
    assert time_range == (datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC))


@pytest.mark.parametrize(
    ("past", "text", "whole"),
    [
        ("Where does Theo work?", "And how old is he?", "And how old is Theo?"),
        ("Where does Theo work?", "What about Clara?", "Where does Clara work?"),
        ("Where do I live?", "And Theo?", "Where does Theo live?"),
        ("What is my cat called?", "what about Theo?", "What is Theo's cat called?"),
        ("Where does Theo live?", "What is her name?", "What is Theo's name?"),
        ("Where does Theo live?", "Why?", "Why? Where does Theo live?"),
        ("周凯住在哪里？", "那林岚呢？", "林岚住在哪里？"),
        ("周凯住在哪里？", "他多大了？", "周凯多大了？"),
        ("Where does Theo work?", "Where do I live?", "Where do I live?"),
    ],
)
def test_a_follow_up_is_made_whole(past: str, text: str, whole: str) -> None:
    assert whole_question(text, [past]) == whole
    assert whole_question(text, []) == text


@pytest.mark.parametrize(("text", "expected"), [("Yes", True), ("是的", True), ("Yes, my dog is Rex", False)])
def test_only_a_bare_yes_confirms(text: str, expected: bool) -> None:
    assert confirms(text) is expected


@pytest.mark.parametrize(
    ("question", "goal", "touched"),
    [
        ("Can you recommend a burger?", "I want to lose weight.", 0),
        ("推荐一家汉堡店吧？", "我想减肥", 0),
        ("Where do I live?", "I want to lose weight.", None),
    ],
)
def test_a_goal_is_touched_by_what_it_is_about(question: str, goal: str, touched: int | None) -> None:
    assert find_touched_goal(question, [goal]) == touched


@pytest.mark.parametrize(
    ("text", "is_yes"),
    [
        ("yes, do it", True),
        ("Yes please, delete them!", True),
        ("好的，删掉吧", True),
        ("是的。", True),
        ("yes, but keep the first one", False),
        ("ok, when is it?", False),
        ("是吗？", False),
    ],
)
def test_a_yes_in_several_words_is_a_yes_and_nothing_else_is(text: str, is_yes: bool) -> None:
    assert confirms(text) is is_yes


@pytest.mark.parametrize("text", ["What have you got on my boat?", "What do you have about my boat?"])
def test_question_for_all_memories_is_a_summary(text: str) -> None:
    call = memory_call(text, said_at=SAID_AT)
    assert (call.intent, call.query) == (Intent.SUMMARISE, "my boat")


def test_coffee_touches_the_wish_to_drink_none() -> None:
    assert find_touched_goal("Should I order an espresso?", ["I've decided to give up coffee."]) == 0
    assert find_touched_goal("我要不要来杯拿铁？", ["我决定戒咖啡。"]) == 0
    assert find_touched_goal("Where do I live?", ["I've decided to give up coffee."]) is None
