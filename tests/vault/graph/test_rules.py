"""Tests of the links that follow from a cube's neighbours. Pure."""

import time
from uuid import UUID

import pytest

from vault.graph.rules import Link, LinkContext, RuleLinks, Statement, contradict, is_consequence
from vault.vocabulary import LinkKind


def statement(number: int, text: str = "", *, voice: str | None = "ann") -> Statement:
    return Statement(id=UUID(int=number), border="team", voice=voice, text=text)


@pytest.mark.parametrize(
    "text",
    [
        "So I quit.",
        "So, it rained.",
        "That's why we left.",
        "Therefore no.",
        "Because of that, I moved.",
        "所以我走了",
        "因此",
    ],
)
def test_cue_at_the_start_marks_a_consequence(text: str) -> None:
    assert is_consequence(text)


@pytest.mark.parametrize(
    "text", ["", "So cool!", "So sorry to hear that.", "Sounds good.", "I left, therefore.", "我所以"]
)
def test_other_words_are_no_cue(text: str) -> None:
    assert not is_consequence(text)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("I like green tea", "I don't like green tea"),
        ("I have 2 dogs at home", "I have 3 dogs at home"),
        ("The meeting is at 10:00 in the hall", "The meeting is at 11:00 in the hall"),
        ("我喜欢喝茶", "我不喜欢喝茶"),
        ("我养了三只猫", "我养了两只猫"),
    ],
)
def test_a_negation_or_another_number_contradicts(first: str, other: str) -> None:
    assert contradict(first, other)
    assert contradict(other, first)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("I like green tea", "I like green tea"),
        ("Do you like green tea?", "I don't like green tea"),
        ("Thanks", "No thanks"),
        ("I like green tea", "I don't like long meetings in the morning"),
        ("I never eat fish at home", "I do not eat fish at home"),
        ("Take care, talk to you soon", "Take care, can't wait to talk to you soon"),
        ("", ""),
    ],
)
def test_agreement_questions_and_other_matters_do_not_contradict(first: str, other: str) -> None:
    assert not contradict(first, other)


def test_a_message_follows_the_one_before_and_may_be_caused_by_it() -> None:
    before = statement(1, "It rained.")
    assert RuleLinks().links(statement(2, "Nice."), LinkContext(before=before)) == [
        Link(UUID(int=2), UUID(int=1), LinkKind.FOLLOWS)
    ]
    assert RuleLinks().links(statement(2, "So we stayed."), LinkContext(before=before)) == [
        Link(UUID(int=2), UUID(int=1), LinkKind.FOLLOWS),
        Link(UUID(int=1), UUID(int=2), LinkKind.CAUSES),
    ]


def test_only_the_same_voice_contradicts_and_the_newer_is_the_source() -> None:
    older = statement(1, "I like green tea")
    newer = statement(2, "I don't like green tea")
    expected = [Link(newer.id, older.id, LinkKind.CONTRADICTS)]
    assert RuleLinks().links(newer, LinkContext(similar=[older])) == expected
    assert RuleLinks().links(older, LinkContext(similar=[newer])) == expected
    assert RuleLinks().links(newer, LinkContext(similar=[statement(1, "I like green tea", voice="ben")])) == []
    unknown = [
        statement(number, text, voice=None) for number, text in enumerate(("I like green tea", "I hate no green tea"))
    ]
    assert RuleLinks().links(unknown[1], LinkContext(similar=[unknown[0]])) == []


def test_numerals_without_an_end_take_no_time_that_grows_with_their_square() -> None:
    """They took half a minute, in which no other memory was linked; a fiftieth of a second is usual."""
    began = time.thread_time()
    contradict("一" * 32_000, "一" * 31_999 + "x")
    assert time.thread_time() - began < 5
