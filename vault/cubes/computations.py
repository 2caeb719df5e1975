"""Ages, spans of time and counts that answer a question, computed from what a quoted memory states. Pure.

An answer stores the kind and the day of a computation, never its result, which would outlive the memory. Whoever reads
the answer gets it computed again from the quote, or nothing once the quote is gone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from vault.cubes.passages import Passage
from vault.lexicon.calendar_units import ONE_DAY, Period
from vault.lexicon.readings import read_number
from vault.lexicon.recurrences import read_recurrence, write_recurrence
from vault.lexicon.resolved_dates import event_period, list_times
from vault.lexicon.written_dates import write_day, write_period

DAYS_OF_YEAR = 365.2425


class Computation(StrEnum):
    AGE = "age"
    SINCE = "since"  # the time since something began
    UNTIL = "until"  # the days until something comes, for the next time if it comes again
    LENGTH = "length"  # the days of a period
    COUNT = "count"  # the memories that are listed


PLACE = re.compile(r"\n?\[=(?P<kind>age|since|until|length|count) (?P<marker>\d{1,2}) (?P<day>\d{4}-\d\d-\d\d)\]")
_ASKED = (
    (
        Computation.AGE,
        r"\bhow old\b|\bage (?:is|am|are|was|of)\b|\bmy age\b|多大(?:了|岁|年纪|年龄)?[？?]?$|几岁|多少岁",
    ),
    (
        Computation.UNTIL,
        r"\bhow (?:long|many (?:days|weeks|months)|soon)\b.{0,40}\b(?:until|till|before|left|to go)\b"
        r"|\bwhen(?:['’]s| is| are| do| does)\b.{0,20}\bnext\b"
        r"|离.{1,20}(?:多久|几天|多少天)|还(?:有|剩|要)?(?:多久|几天|多少天)"
        r"|下(?:一?次|回).{0,12}(?:什么时候|哪天|几号)|什么时候.{0,8}下(?:一?次|回)",
    ),
    (
        Computation.SINCE,
        r"\bhow (?:long|many (?:years|months|weeks|days)) (?:have|has|had|is it since|ago|since)\b"
        r"|\bhow long ago\b|(?:多久|多少年|几年|多长时间|几个月|多少天|几天)了"
        r"|了(?:多久|多少年|几年|多长时间)|多久(?:以)?前",
    ),
    (
        Computation.LENGTH,
        r"\bhow (?:long|many (?:days|nights|weeks))\b.{0,40}?\b(?:is|was|are|were|will|does|did|do|be|last|stay|trip)\b"
        r"|(?:几|多少)[天晚]|过(?:多久|几年|多少年)",
    ),
)
_KINDS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _ASKED)
_COUNTED = re.compile(r"\bhow many\b|几(?:个|位|只|种|家|门|本|次)|多少(?:个|位|只|种|家|门|本|次)", re.IGNORECASE)
_NUMBER_WORDS = (
    r"\d{1,3}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five|six|seven"
    r"|eight|nine))?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen"
)
_HAN_NUMBER = r"\d{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九]"
_BORN = re.compile(r"\bborn\b|\bbirth|出生|生于|年生", re.IGNORECASE)
_TURNS = re.compile(
    rf"\b(?:turn(?:s|ed|ing)?|(?:will|['’]ll) be|hits?) (?P<age>{_NUMBER_WORDS})\b"
    rf"|(?:就|满|要)(?P<han>{_HAN_NUMBER})岁?了?",
    re.IGNORECASE,
)
_AGED = re.compile(
    rf"\b(?:is|am|are|['’](?:m|s|re)|aged?) (?:now |already |only |almost )?(?P<age>{_NUMBER_WORDS})\b"
    r"(?=\s{0,2}(?:[,.;!?)]|$|(?:and|now|years?|already|but|this|next|today)\b))"
    rf"|\b(?P<years>{_NUMBER_WORDS})[- ]years?[- ]old\b"
    rf"|(?P<han>{_HAN_NUMBER})岁|今年(?P<this>{_HAN_NUMBER})(?![月号日天个])",
    re.IGNORECASE,
)
_LASTED = re.compile(
    rf"\b(?P<count>{_NUMBER_WORDS}) (?P<unit>years?|months?)\b(?! (?:ago|old))"
    rf"|(?<![\d一二三四五六七八九])(?P<han>{_HAN_NUMBER})(?P<sign>年|个月)(?!前|后|级)",
    re.IGNORECASE,
)
_WORDS = {
    "en": {
        "age": "{age} years old on {day}.", "about_age": "{age} or {next} years old on {day}.",
        "since": "{span} on {day}.", "about_since": "About {span} on {day}.", "until": "In {count}, on {date}.",

        "today": "Today, {date}.", "again": ": {every}.", "length": "{count}: {period}.",
        "count": "{count} memories name it.", "years": "{n} years", "year": "1 year", "months": "{n} months",
        "month": "1 month", "days": "{n} days", "day": "1 day", "end": ".",
    },
    "zh": {
        "age": "{day}时{age}岁。", "about_age": "{day}时{age}或{next}岁。", "since": "到{day}{span}。",
        "about_since": "到{day}大约{span}。", "until": "还有{count}：{date}。", "today": "就是今天，{date}。",
        "again": "，{every}。", "length": "{count}：{period}。", "count": "有{count}条记忆提到。",
        "years": "{n}年", "year": "1年", "months": "{n}个月", "month": "1个月", "days": "{n}天", "day": "1天",
        "end": "。",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Computed:
    """A computation of an answer: from the quote with a marker (0: from all), on a day."""

    kind: Computation
    marker: int
    day: date

    @property
    def place(self) -> str:
        """Return the text that stands for the result in a stored answer."""
        return f"[={self.kind} {self.marker} {self.day.isoformat()}]"


def asked_computation(question: str) -> Computation | None:
    """Return the computation that a question asks for."""
    return next((kind for kind, pattern in _KINDS if pattern.search(question)), None)


def asks_for_count(question: str) -> bool:
    """Return whether a question asks for the number of things."""
    return _COUNTED.search(question) is not None


def compute_line(kind: Computation, passages: Mapping[int, Passage], marker: int, day: date, language: str) -> str:
    """Return the sentence of a computation from the passage with a marker; empty if it does not hold what is needed.

    passages: those that the reader may read, by marker.
    """
    words = _WORDS["zh" if language == "zh" else "en"]
    if kind is Computation.COUNT:
        return words["count"].format(count=len(passages)) if len(passages) > 1 else ""
    passage = passages.get(marker)
    if passage is None or passage.time is None:
        return ""
    compute = {
        Computation.AGE: _compute_age,
        Computation.SINCE: _compute_since,
        Computation.UNTIL: _compute_until,
        Computation.LENGTH: _compute_length,
    }[kind]
    return compute(passage, passage.time, day, language, words)


def insert_computations(text: str, passages: Mapping[int, Passage], language: str) -> str:
    """Put the results of the computations of an answer in their places; those without a result go."""

    def write(found: re.Match[str]) -> str:
        day = date.fromisoformat(found["day"])
        line = compute_line(Computation(found["kind"]), passages, int(found["marker"]), day, language)
        return f"\n{line}" if line else ""

    return PLACE.sub(write, text)


def _compute_age(passage: Passage, said: datetime, day: date, language: str, words: Mapping[str, str]) -> str:
    if (least := _find_age(passage, said, day)) is None:
        return ""
    age, is_exact = least
    text = words["age" if is_exact else "about_age"]
    return text.format(age=age, next=age + 1, day=write_day(day, language))


def _find_age(passage: Passage, said: datetime, day: date) -> tuple[int, bool] | None:
    """Return an age in years on a day, and whether it is not perhaps one more."""
    text, periods = passage.text, _list_times(passage, said)
    if _BORN.search(text) and periods:
        first, last = periods[0].start.date(), (periods[0].end - ONE_DAY).date()
        return _years_between(last, day), _years_between(first, day) == _years_between(last, day)
    if found := _TURNS.search(text):
        age = read_number(found["age"] or found["han"])
        at = passage.happens or (periods[0].start if periods else said)
        return age + _years_between(at.date(), day), True
    if found := _AGED.search(text):
        age = read_number(found["age"] or found["years"] or found["han"] or found["this"])
        return age + _years_between(said.date(), day), (day - said.date()).days < 1
    return None


def _compute_since(passage: Passage, said: datetime, day: date, language: str, words: Mapping[str, str]) -> str:
    past = [period for period in _list_times(passage, said) if period.start.date() < day]
    if past:
        start = past[0]
        is_exact = start.end - start.start <= ONE_DAY
        span = _write_span((day - start.start.date()).days, words)
    elif lasted := _find_lasted(passage.text):
        span, is_exact = _write_span(lasted + (day - said.date()).days, words), False
    else:
        return ""
    return words["since" if is_exact else "about_since"].format(span=span, day=write_day(day, language))


def _compute_until(passage: Passage, said: datetime, day: date, language: str, words: Mapping[str, str]) -> str:
    recurrence = read_recurrence(passage.text)
    times = (period.start.date() for period in _list_times(passage, said))
    coming = recurrence.next_day(day) if recurrence else next((at for at in times if at >= day), None)
    if coming is None:
        return ""
    date_of = write_day(coming, language)
    line = words["until"].format(count=_write_days((coming - day).days, words), date=date_of)
    if coming == day:
        line = words["today"].format(date=date_of)
    return line[:-1] + words["again"].format(every=write_recurrence(recurrence, language)) if recurrence else line


def _compute_length(passage: Passage, said: datetime, day: date, language: str, words: Mapping[str, str]) -> str:
    periods = [event_period(passage.text, said, passage.happens)] if passage.happens else _list_times(passage, said)
    longest = max(periods, key=lambda period: period.end - period.start, default=None)
    if longest is None or longest.end - longest.start <= ONE_DAY or _is_calendar_unit(longest):
        return f"{_write_span(lasted, words)}{words['end']}" if (lasted := _find_lasted(passage.text)) else ""
    count = _write_days((longest.end - longest.start).days, words)
    return words["length"].format(count=count, period=write_period(longest, language))


def _list_times(passage: Passage, said: datetime) -> list[Period]:
    """Return the times that a passage names, the time of its event first."""
    named = list_times(passage.text, said)
    if passage.happens is None or passage.happens.date() == said.date():
        return named
    event = event_period(passage.text, said, passage.happens)
    return [event, *(period for period in named if period.start != event.start)]


def _find_lasted(text: str) -> int:
    """Return the days of the years or months that a text tells of; 0 if it tells of none."""
    found = _LASTED.search(text)
    if found is None:
        return 0
    is_years = (found["unit"] or "").lower().startswith("year") or found["sign"] == "年"
    count = read_number(found["count"] or found["han"])
    return round(count * (DAYS_OF_YEAR if is_years else DAYS_OF_YEAR / 12))


def _is_calendar_unit(period: Period) -> bool:
    """Return whether a period is a weekend, a week or whole months: "in March" tells no length."""
    length, first = (period.end - period.start).days, period.start
    is_week = (first.weekday(), length) in {(5, 2), (0, 7)}
    return is_week or (first.day == 1 and period.end.day == 1)


def _years_between(first: date, last: date) -> int:
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


def _write_span(days: int, words: Mapping[str, str]) -> str:
    """Return days as years, as months if they are less than two years, or as days if less than two months."""
    months = int(days / DAYS_OF_YEAR * 12 + 0.1)  # years in days are rounded
    if months >= 24:
        return words["years"].format(n=months // 12)
    return words["months"].format(n=months) if months >= 2 else _write_days(days, words)


def _write_days(days: int, words: Mapping[str, str]) -> str:
    return words["day"] if days == 1 else words["days"].format(n=days)
