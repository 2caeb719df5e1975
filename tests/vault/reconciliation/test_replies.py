"""Replies that state something only together with the question or the statement before them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.api.test_chat_commands import begin
from tests.vault.chat.test_model import answers_with, model
from vault.reader.rules import read_reply, read_statements

__all__ = ["model"]

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
REPLIES: list[tuple[str, str, str | None]] = [
    ("Where do you live?", "In Lisbon.", "I live in Lisbon."),
    ("Nice to meet you! Where are you from?", "Porto", "I am from Porto."),
    ("What is your dog called?", "He's called Biscuit.", "My dog is called Biscuit."),
    ("What's your sister's name?", "It's Karen", "My sister's name is Karen."),
    ("How many children do you have?", "Two.", "I have two children."),
    ("How old are you?", "34", "I am 34 years old."),
    ("When is your birthday?", "On 4 May.", "My birthday is on 4 May."),
    ("Which languages do you speak?", "Dutch and a bit of Thai", "I speak Dutch and a bit of Thai."),
    ("Do you smoke?", "Not any more.", "I don't smoke."),
    ("Do you have any allergies?", "Yes, peanuts.", "I have allergies: peanuts."),
    ("Do you work?", "Yes, at the port.", "I work at the port."),
    ("Are you married?", "No.", "I am not married."),
    ("Have you ever been to Japan?", "No, never", "I have not been to Japan."),
    ("Is your brother older?", "Yes", "My brother is older."),
    ("What are your hobbies?", "Climbing", "My hobbies are Climbing."),
    ("How often do you run?", "Twice a week", "I run twice a week."),
    ("Do you have siblings?", "One sister", "I have siblings: one sister."),
    ("What are you allergic to?", "Nuts", "I am allergic to Nuts."),
    ("Do you like tea or coffee?", "Coffee", "Asked “Do you like tea or coffee”: Coffee."),
    ("你住在哪里？", "在杭州。", "我住在杭州。"),
    ("你有几个孩子？", "两个", "我有两个孩子。"),
    ("你家狗叫什么名字？", "豆豆", "我家狗叫豆豆。"),
    ("你多大？", "三十四岁", "我三十四岁。"),
    ("你是哪里人？", "四川人", "我是四川人。"),
    ("你对什么过敏？", "花生", "我对花生过敏。"),
    ("你去过日本吗？", "没去过", "我没去过日本。"),
    ("你抽烟吗？", "不抽。", "我不抽烟。"),
    ("你结婚了吗？", "还没", "我没结婚。"),
    ("你会不会游泳？", "会", "我会游泳。"),
    ("恭喜！男孩还是女孩？", "男孩。", "被问“男孩还是女孩”：男孩。"),
    ("Where do you live?", "ok, thanks", None),
    ("Where do you live?", "I don't know", None),
    ("Where do you live?", "Why do you ask?", None),
    ("Shall I book a table?", "Yes", None),
    ("Do you want me to help?", "No", None),
    ("Anything else?", "No", None),
    ("Do you like your job?", "Yes and no", None),
    ("Are you allergic to nuts?", "Of course not.", None),
    ("Are you diabetic?", "Yes, my father is.", None),
    ("Are you diabetic?", "Yeah, no.", None),
    ("Are you left-handed?", "Yeah right.", None),
    ("Are you allergic to nuts?", "No doubt.", None),
    ("What's your name? Where do you live?", "Ana.", None),
    ("Where do you live and what do you do?", "Lisbon.", None),
    ("Where do you live?", "Guess.", None),
    ("Where do you live?", "Not in Lisbon anymore.", None),
    ("Who is your dentist?", "Ask my wife.", None),
    ("What's your name?", "Call me Bo.", None),
    ("Where is your sister?", "Sleeping.", None),
    ("How many kids do you have?", "None.", None),
    ("What is your password?", "hunter2", None),
    ("Do you have any other questions?", "No", None),
    ("你叫什么？", "保密", None),
    ("你住在哪里？", "不在上海", None),
    ("你不吃肉吗？", "嗯", None),
    ("你为什么不来？", "太累了", None),
    ("你有几个孩子？", "一儿一女", None),
    ("你住在哪里？", "住在上海浦东", "我住在上海浦东。"),
    ("Is your phone number 555-1234?", "No, 555-9876", None),
    ("Which one do you prefer?", "The blue one", None),
    ("Do you understand?", "Yes", None),
    ("Does your wife like it?", "No", None),
    ("你有什么问题？", "没有", None),
    ("你老公做什么？", "司机", None),
    ("How was your day?", "Long.", None),
    ("Lisbon is lovely.", "In May.", None),
    ("要不要我帮你订？", "要", None),
    ("你住在哪里？", "不知道", None),
]


@pytest.mark.parametrize(("before", "reply", "stated"), REPLIES)
def test_reply_states_what_the_question_asks(before: str, reply: str, stated: str | None) -> None:
    assert read_reply(before, reply) == stated


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        ("I don't cook.", True),
        ("I ski.", True),
        ("I'm a plumber.", True),
        ("I'm vegetarian.", True),
        ("We're divorced.", True),
        ("I see.", False),
        ("I'm a mess.", False),
        ("I'm tired.", False),
    ],
)
def test_habit_in_one_word_is_a_statement(text: str, is_stated: bool) -> None:
    assert bool(read_statements(text, speaker="user", said_at=NOON)) is is_stated


def send(who: Contract, *messages: tuple[str, str]) -> list[str]:
    """Store messages of the session `s`, and return the texts of the memories that the reply shows."""
    body = {"session_id": "s", "messages": [{"role": role, "content": text} for role, text in messages]}
    return [memory["content"] for memory in who.post("memories/", body).json["results"]]


@each_case(
    "before, reply, stated",
    [
        ([("assistant", "Where do you live?")], "In Lisbon.", "I live in Lisbon."),
        ([("assistant", "你有几个孩子？")], "两个", "我有两个孩子。"),
        (
            [("user", "My sister had her baby."), ("assistant", "A boy or a girl?")],
            "It's a boy.",
            "My sister had her baby. It's a boy.",
        ),
    ],
)
@pytest.mark.parametrize("is_together", [True, False])
def test_reply_is_stored_as_what_it_states(
    alice: Contract, before: list[tuple[str, str]], reply: str, stated: str, is_together: bool
) -> None:
    if not is_together:
        send(alice, *before)
    assert send(alice, *(before if is_together else []), ("user", reply))[-1] == stated
    assert stated in alice.search_contents(stated)


def test_reply_ends_what_it_changes(alice: Contract) -> None:
    send(alice, ("user", "I live in Lisbon."))
    body = {"session_id": "t", "messages": [
        {"role": "assistant", "content": "Where do you live now?"}, {"role": "user", "content": "Porto."},
    ]}  # fmt: skip
    (change,) = alice.post("memories/", body).json["superseded"]
    assert alice.get(f"memories/{change['id']}/").json["content"] == "I live in Lisbon."


def test_reply_after_ones_own_question_states_nothing(alice: Contract) -> None:
    assert send(alice, ("user", "Where do you live?"), ("user", "In Lisbon.")) == []


def test_reply_in_another_session_states_nothing(alice: Contract) -> None:
    send(alice, ("assistant", "Where do you live?"))
    body = {"session_id": "other", "messages": [{"role": "user", "content": "In Lisbon."}]}
    assert alice.post("memories/", body).json["results"] == []


def test_turn_after_a_question_of_the_model_is_stored_as_what_it_states(alice: Contract, model: HTTPServer) -> None:
    answers_with(model, "Nice to meet you! Where do you live?")
    place = begin(alice)
    say(alice, place, "Hello!")
    say(alice, place, "In Lisbon.")
    assert "I live in Lisbon." in [memory["content"] for memory in alice.get("memories/").json["results"]]


def say(who: Contract, place: str, text: str) -> Any:
    return who.post(place, {"content": text}).json
