"""Tests of the statements in a text that are worth storing."""

from datetime import UTC, datetime

import pytest

from tests.harness.cases import each_case
from vault.reader.rules import Statement, read_statements

SAID_AT = datetime(2026, 11, 23, 12, tzinfo=UTC)


def read_stated(text: str, speaker: str = "user") -> list[Statement]:
    return list(read_statements(text, speaker=speaker, said_at=SAID_AT))


@each_case(
    "text",
    [
        "Hello",
        "Hi there, how are you?",
        "Good morning Anna!",
        "Thanks a lot for your help.",
        "That's great!",
        "It was fun.",
        "I love it.",
        "I'm tired",
        "What do you know about me?",
        "I don't like badminton, right?",
        "Summarize what you know",
        "Forget what I said about my job",
        "Never mind",
        "I have a question",
        "You are wrong.",
        "你好",
        "谢谢你！",
        "请帮我总结一下",
        "你知道我喜欢什么吗",
        "忘掉我说过的工作",
        "我想问一个问题",
        "这个不错",
        "我很累",
        "好的，我知道了",
        "Good morning!",
        "Thanks!",
        "Thank you, that helps a lot.",
        "Where does Anna live?",
        "Do I like badminton?",
        "Please translate this for me.",
        "Write a poem about bread.",
        "You already told me that.",
        "That's not what I meant.",
        "I was just testing.",
        "早上好！",
        "多谢，帮大忙了。",
        "安娜住在哪里？",
        "我喜欢打羽毛球吗？",
        "总结一下你知道的",
        "帮我翻译一下这句话。",
        "你说错了。",
        "我不是这个意思。",
        "我只是测试一下。",
        "😀",
        "",
    ],
)
def test_talk_states_nothing(text: str) -> None:
    assert read_stated(text) == []


@pytest.mark.parametrize(
    ("text", "statement", "kind"),
    [
        ("Remember that my dog is called Rex.", "my dog is called Rex.", "fact"),
        ("Don't forget: the wifi code is 8841.", "the wifi code is 8841.", "fact"),
        ("I just got back from Oslo, what should I cook?", "I just got back from Oslo", "event"),
        ("I'm allergic to peanuts.", "I'm allergic to peanuts.", "profile"),
        ("I want to lose weight.", "I want to lose weight.", "goal"),
        ("My sister Anna lives in Oslo.", "My sister Anna lives in Oslo.", "fact"),
        ("Hi! My sister Anna lives in Oslo.", "My sister Anna lives in Oslo.", "fact"),
        ("I love green tea, thanks for asking.", "I love green tea, thanks for asking.", "preference"),
        ("你好！我的妹妹安娜住在奥斯陆。", "我的妹妹安娜住在奥斯陆。", "fact"),
        ("我喜欢绿茶。", "我喜欢绿茶。", "preference"),
        ("我想减肥。", "我想减肥。", "goal"),
        ("记住我对花生过敏", "我对花生过敏", "profile"),
        ("我住在北京，你呢？", "我住在北京", "profile"),
        ("我想减肥", "我想减肥", "goal"),
        ("公司的服务器在上海。", "公司的服务器在上海。", "fact"),
    ],
)
def test_a_statement_is_read_verbatim_and_with_its_kind(text: str, statement: str, kind: str) -> None:
    assert [(statement.text, statement.semantic_type) for statement in read_stated(text)] == [(statement, kind)]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Yesterday I went to the wetland park.", "2026-11-22"),
        ("She moved to Oslo in 2019.", "2019-01-01"),
        ("I'm going to visit Paris next month.", "2026-12-01"),
        ("我上周去了杭州出差。", "2026-11-16"),
        ("I run every morning.", None),
        ("我这个月15号去了医院复查。", "2026-11-15"),
        ("My sister stays in Leeds until Thursday.", "2026-11-26"),
        ("我周四要去看牙。", "2026-11-26"),
        ("我孙子今年上小学一年级。", None),
        ("This week I sleep at my sister's.", None),
        ("I met Tom on Thursday.", "2026-11-19"),
    ],
)
def test_times_are_resolved_as_of_the_message(text: str, day: str | None) -> None:
    (statement,) = read_stated(text)
    assert (statement.event_time.date().isoformat() if statement.event_time else None) == day


def test_a_statement_names_its_entities() -> None:
    (statement,) = read_stated("My sister Anna lives in Oslo.")
    assert statement.entities == ("anna", "oslo")


@pytest.mark.parametrize("speaker", ["assistant", "system", "tool"])
def test_only_people_state_something(speaker: str) -> None:
    assert read_stated("I moved to Lisbon in 2021.", speaker) == []


def test_what_is_stated_twice_is_read_once() -> None:
    assert len(read_stated("I moved to Oslo. I moved to Oslo.")) == 1


@pytest.mark.parametrize(
    "text",
    ["中午好！", "上午好", "今天天气真好", "下雨了", "Lovely weather today!", "It's raining.", "what a day"],
)
def test_greetings_of_the_day_and_the_weather_are_not_stored(text: str) -> None:
    assert read_statements(text, speaker="user", said_at=SAID_AT) == ()


def test_a_day_of_what_is_ahead_is_the_next_one() -> None:
    said_at = datetime(2026, 11, 16, 19, tzinfo=UTC)
    (starts,) = read_statements("We hired Tom, he starts on the first of December.", speaker="user", said_at=said_at)
    assert starts.event_time == datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Thanks, I live in Berlin.", "I live in Berlin."),
        ("Hi, my dog died yesterday.", "my dog died yesterday."),
        ("Hello Anna, my name is Eve.", "my name is Eve."),
        ("ok so the meeting moved to Monday", "the meeting moved to Monday"),
        ("你好，我上个月搬到了上海。", "我上个月搬到了上海。"),
        ("谢谢，我下周去东京出差。", "我下周去东京出差。"),
        ("请叫我老张。", "请叫我老张。"),
    ],
)
def test_statement_after_a_greeting_or_thanks_is_read(text: str, stated: str) -> None:
    assert [read_statement.text for read_statement in read_statements(text, speaker="user", said_at=SAID_AT)] == [
        stated
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, that helps a lot.",
        "Hi, I have a question.",
        "Hello, how are you?",
        "Thanks, I will try it.",
        "Ok, let me think.",
        "谢谢你，帮大忙了。",
        "你好，很高兴认识你。",
        "好的，我试试。",
    ],
)
def test_remark_after_a_greeting_or_thanks_is_no_statement(text: str) -> None:
    assert read_statements(text, speaker="user", said_at=SAID_AT) == ()
