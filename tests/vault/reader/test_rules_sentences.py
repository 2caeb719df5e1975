import pytest

from tests.harness.cases import each_case
from vault.reader.rules import classify_semantic_type, is_question, sentences, statements
from vault.reader.rules.sentences import LONGEST_SENTENCE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I came. I saw!", ["I came.", "I saw!"]),
        ("Dr. Lee met J. Smith at 9 a.m. today. Fine.", ["Dr. Lee met J. Smith at 9 a.m. today.", "Fine."]),
        ("We met at 9 p.m. Then we ate.", ["We met at 9 p.m.", "Then we ate."]),
        ("So do I. It cost $3.14 at example.com!", ["So do I.", "It cost $3.14 at example.com!"]),
        ("Really?! Yes... ok", ["Really?!", "Yes...", "ok"]),
        ('He said "go." Then left.', ['He said "go."', "Then left."]),
        ("我去了北京。好玩吗？很好！", ["我去了北京。", "好玩吗？", "很好！"]),
        ("他说：“走吧。”然后走了；我没走", ["他说：“走吧。”", "然后走了；", "我没走"]),
        ("你好吗?我很好.谢谢", ["你好吗?", "我很好.", "谢谢"]),
        ("Tea:\n- green\n2. black\r\n\n", ["Tea:", "green", "black"]),
        ("no end", ["no end"]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_text_is_cut_into_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize("text", ["word, " * 8_000, "字" * 32_000, ". " * 16_000, "a." * 16_000, "\n" * 32_000])
def test_no_sentence_is_longer_than_can_be_quoted_and_no_letter_is_lost(text: str) -> None:
    found = sentences(text)
    assert all(0 < len(sentence) <= LONGEST_SENTENCE for sentence in found)
    assert "".join("".join(found).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "sentence",
    [
        "When did Caroline go?",
        "You like tea?",
        "what is your name",
        "hey, do you like tea?",
        "how old are you",
        "So what are your plans",
        'Did he say "yes"?" 😀',
        "你叫什么名字",
        "你喜欢猫吗",
        "你知道他是谁吗？",
        "请问几点了",
        "为什么不来",
        "这是什么？",
        "我们去好不好",
    ],
)
def test_question_is_recognised(sentence: str) -> None:
    assert is_question(sentence)
    assert classify_semantic_type(sentence) == "dialogue"


@pytest.mark.parametrize(
    "sentence",
    [
        "What a great day!",
        "When I was young I lived in Rome.",
        "Will is my brother.",
        "I know how to swim.",
        "我什么都吃。",
        "他不知道这是什么。",
        "谁都喜欢她。",
        "我喜欢猫。",
    ],
)
def test_a_statement_is_no_question(sentence: str) -> None:
    assert not is_question(sentence)


@each_case(
    ("sentence", "kind"),
    [
        ("My name is Ada.", "profile"),
        ("I’m allergic to peanuts.", "profile"),
        ("I live in Berlin.", "profile"),
        ("我叫李雷。", "profile"),
        ("我住在柏林。", "profile"),
        ("我对花生过敏。", "profile"),
        ("I love hiking in the mountains.", "preference"),
        ("Caroline loves painting.", "preference"),
        ("I don't eat meat.", "preference"),
        ("我喜欢喝绿茶。", "preference"),
        ("小明最喜欢蓝色。", "preference"),
        ("I'm going to visit Paris next month.", "goal"),
        ("I really want to lose weight.", "goal"),
        ("My goal is a marathon.", "goal"),
        ("我打算明年去日本。", "goal"),
        ("我的目标是跑完马拉松", "goal"),
        ("Yesterday I went to the support group.", "event"),
        ("She moved to Oslo in 2019.", "event"),
        ("昨天我参加了一个会议。", "event"),
        ("她去年搬到了深圳", "event"),
        ("The deploy key rotates every 90 days.", "fact"),
        ("公司的服务器在上海。", "fact"),
        ("Thanks so much!", "dialogue"),
        ("Hey Mel! Good to see you!", "dialogue"),
        ("Good morning", "dialogue"),
        ("谢谢你！", "dialogue"),
        ("你好，李雷！", "dialogue"),
        ("😀", "dialogue"),
        ("", "dialogue"),
    ],
)
def test_a_sentence_is_of_the_kind(sentence: str, kind: str) -> None:
    assert classify_semantic_type(sentence) == kind


def test_only_what_stands_on_its_own_is_a_statement() -> None:
    message = "Hey Mel! How are you? I went to a support group yesterday. I love it there. I love it there. Bye!"
    assert [(each.text, each.semantic_type) for each in statements(message)] == [
        ("I went to a support group yesterday.", "event"),
        ("I love it there.", "preference"),
    ]


def test_chinese_statement_is_one_sentence() -> None:
    found = statements("你好！我叫李雷，住在北京。你呢？我喜欢喝绿茶。谢谢！")
    assert [(each.text, each.semantic_type) for each in found] == [
        ("我叫李雷，住在北京。", "profile"),
        ("我喜欢喝绿茶。", "preference"),
    ]


def test_a_sentence_that_no_pattern_knows_is_a_fact_with_less_confidence() -> None:
    (fact,) = statements("The meeting room is on floor 3.")
    (preference,) = statements("I prefer green tea.")
    assert fact.semantic_type == "fact"
    assert 0 < fact.confidence < preference.confidence <= 1
