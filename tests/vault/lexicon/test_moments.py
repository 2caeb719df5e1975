"""Time in words, English and Chinese."""

from datetime import UTC, datetime

import pytest

from vault.lexicon.moments import asks_for_time, mentions_time, spans_of

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def weight(question: str, moment: str) -> float:
    """How well `moment` fits what the question speaks of."""
    return max((span.weight for span in spans_of(question, NOW) if span.start <= at(moment) < span.end), default=0.0)


@pytest.mark.parametrize(
    "text", ["See you on Friday", "in May 2023", "weeks ago", "我昨天到的", "三月去上海", "周末见"]
)
def test_it_sees_that_a_text_names_a_time(text: str) -> None:
    assert mentions_time(text)


@pytest.mark.parametrize("text", ["I like tea", "我喜欢喝茶", ""])
def test_it_sees_that_a_text_names_no_time(text: str) -> None:
    assert not mentions_time(text)


@pytest.mark.parametrize("question", ["When did Ann move?", "What year was it?", "How long was he away?", "何时搬家？"])
def test_it_sees_that_a_question_asks_for_a_time(question: str) -> None:
    assert asks_for_time(question)


def test_it_does_not_take_every_question_for_one_about_time() -> None:
    assert not asks_for_time("Where does Ann live?")


@pytest.mark.parametrize(
    "question", ["What did Ann do on 7 May 2023?", "on May 7th, 2023", "2023年5月7日她做了什么", "on 2023-05-07"]
)
def test_a_day_fits_itself_best_and_its_month_less(question: str) -> None:
    assert weight(question, "2023-05-07T10:00") == 1.0
    assert weight(question, "2023-05-01") == 0.5
    assert weight(question, "2023-06-20") == 0.0


@pytest.mark.parametrize("question", ["in August 2022", "2022年8月", "by Aug 2022"])
def test_a_month_of_a_year_is_that_month_alone(question: str) -> None:
    assert weight(question, "2022-08-31T23:59") == 1.0
    assert weight(question, "2022-09-01") == weight(question, "2021-08-15") == 0.0


def test_a_month_without_a_year_is_that_of_any_recent_year() -> None:
    assert weight("what happened in August?", "2024-08-10") == weight("8月发生了什么", "2019-08-10") == 1.0


@pytest.mark.parametrize(("question", "moment"), [("last May", "2026-05-10"), ("last December", "2025-12-10")])
def test_the_last_of_a_month_is_the_one_before_now(question: str, moment: str) -> None:
    assert weight(question, moment) == 1.0
    assert weight(question, moment.replace("202", "201")) == 0.0


@pytest.mark.parametrize(
    ("question", "moment"),
    [("yesterday", "2026-11-19T09:00"), ("last week", "2026-11-12"), ("上个月", "2026-10-15"), ("昨天", "2026-11-19")],
)
def test_relative_times_count_from_now(question: str, moment: str) -> None:
    assert weight(question, moment) == 1.0


def test_a_year_alone_fits_weakly() -> None:
    assert weight("Where was he in 2021?", "2021-03-03") == 0.5


@pytest.mark.parametrize("question", ["Where does Ann live?", "May I come in at 19:30?"[4:], "", "31 of them"])
def test_a_question_without_a_time_has_no_span(question: str) -> None:
    assert spans_of(question, NOW) == []
