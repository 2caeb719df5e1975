"""Tests of the share of a text that asks. Pure."""

import time

import pytest

from vault.lexicon.questions import asking_share, is_about_questions


@pytest.mark.parametrize(
    "text",
    [
        "What did you paint?",
        "Really?! What then??",
        'He asked: "Where is it?"',
        "你画了什么？",
        "你喜欢喝茶吗",
        "你呢。",
        "「どこですか？」",
        "أين هو؟",
    ],
)
def test_text_of_questions_only_has_share_one(text: str) -> None:
    assert asking_share(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I painted a lake.",
        "See https://memos.example/search?q=lake&page=2 for it.",
        "See https://memos.example/search?q=lake.",
        "我画了一个湖。",
        "吗啡是一种药。",
        "🙂",
    ],
)
def test_statement_has_asking_share_zero(text: str) -> None:
    assert asking_share(text) == 0


def test_mixed_text_has_the_share_of_its_questions() -> None:
    assert asking_share("I painted a lake. And you?") == pytest.approx(8 / 25)
    assert asking_share("我画了湖。你呢？") == pytest.approx(3 / 8)
    assert asking_share("And you?\nI painted.") == pytest.approx(8 / 18)
    assert asking_share("The ? key is stuck.") == pytest.approx(4 / 17)
    assert asking_share("Shopping list:\n- milk\n- eggs\nAnything else?") == pytest.approx(14 / 40)


@pytest.mark.parametrize(
    "text",
    [
        "?" * 31_999 + "x",
        "?" + "." * 31_998 + "x",
        "." * 31_998 + "x?",
        "?.!" * 10_000 + "x",
        '?"' * 16_000,
        "吗" * 32_000,
    ],
)
def test_long_run_of_marks_is_read_in_linear_time(text: str) -> None:
    """They took half a minute, with all other threads waiting; a fortieth of a second is usual."""
    began = time.thread_time()
    assert 0 <= asking_share(text) <= 1
    assert time.thread_time() - began < 5


@pytest.mark.parametrize(
    "question", ["What did Ada ask?", "Which questions are open?", "她问了什么？", "Ada was wondering what?"]
)
def test_request_for_a_question_is_about_questions(question: str) -> None:
    assert is_about_questions(question)


@pytest.mark.parametrize(
    "question",
    [
        "What is her task in the basket?",
        "顾问什么时候来？",
        "谁访问了上海？",
        "请问什么时候开门？",
        "有什么问题没有解决？",
    ],
)
def test_other_request_is_not_about_questions(question: str) -> None:
    assert not is_about_questions(question)
