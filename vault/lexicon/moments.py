"""Time in words, in English and Chinese: whether a text names one, whether a question asks for one, which one it means.

Pure; `now` is an argument. A library for dates was tried for this and left out: see docs/decisions/0008.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = "|".join(_MONTH_NAMES)
_FULL_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug"
    "|sept|sep|oct|nov|dec"
)
_NAMED = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|week(?:end)?|month|year"
    rf"|(?:{_MONTHS})[a-z]*|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d\d)\b"
    r"|昨[天晚日]|今[天晚日年早]|明[天晚日年早]|前天|后天|去年|前年|上个?[周月]|下个?[周月]|星期|周[一二三四五六日天末]"
    r"|\d+[年月日号]|[一二三四五六七八九十]+月",
    re.IGNORECASE,
)
_RUN = re.compile(r"\w+")
LONGEST_REMEMBERED, REMEMBERED = 64, 2**14  # characters; words
_ASKED = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:time|day|date|month|year)\b|\bhow long\b|\bsince when\b"
    r"|什[么麼][时時]候|何时|哪[天年月]|几[点月号]|多久",
    re.IGNORECASE,
)
_DATE = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<last>last\s+)?(?P<month>{_FULL_MONTHS})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!:))?(?:\s*,?\s*(?P<year>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_BEFORE_A_MONTH = re.compile(r"\b(?:in|since|during|until|till|by|of|this|next|early|mid|late)[\s-]+$", re.IGNORECASE)
_CHINESE_DATE = re.compile(r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>1[0-2]|0?[1-9])月(?:(?P<day>[0-3]?\d)[日号])?")
_ISO_DATE = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>[0-3]\d))?\b")
_YEAR = re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d)(?!\d)")
# What is told on a day is mostly told within the week after it.
TOLD_WITHIN = timedelta(days=8)
YEARS_BACK = 10  # a month without a year may be that of any of these
_RELATIVE = (
    (re.compile(r"\byesterday\b|昨[天日晚]", re.IGNORECASE), timedelta(days=1), timedelta(days=1)),
    (re.compile(r"\blast week\b|上个?(?:周|星期)", re.IGNORECASE), timedelta(days=14), timedelta(days=11)),
    (re.compile(r"\blast month\b|上个?月", re.IGNORECASE), timedelta(days=62), timedelta(days=50)),
)
_LAST_YEAR = re.compile(r"\blast year\b|去年", re.IGNORECASE)


@dataclass(frozen=True)
class Span:
    """From `start` to before `end`; `weight` in 0..1 says how well a time in it fits."""

    start: datetime
    end: datetime
    weight: float


def mentions_time(text: str) -> bool:
    """Whether `text` names a day, a month, a year or a time relative to now."""
    if not text.isascii():
        return _NAMED.search(text) is not None
    words = _RUN.findall(text.lower())  # between two of them nothing matches: there is no Chinese
    return any(_names_time(word) for word in words if len(word) <= LONGEST_REMEMBERED)


@lru_cache(REMEMBERED)
def _names_time(word: str) -> bool:
    return _NAMED.fullmatch(word) is not None


def asks_for_time(question: str) -> bool:
    """Whether `question` wants to know when, or for how long."""
    return _ASKED.search(question) is not None


def spans_of(question: str, now: datetime) -> list[Span]:
    """The times that `question` speaks of, as of `now`; empty when it names none."""
    return [*_dated(question, now), *_relative(question, now)]


def _dated(question: str, now: datetime) -> Iterator[Span]:
    dates = [_english(match, now) for match in _DATE.finditer(question) if _is_month(match)]
    for pattern in (_CHINESE_DATE, _ISO_DATE):
        dates += [_numbers(match) for match in pattern.finditer(question)]
    for year, month, day in dates:
        for each in [year] if year else range(now.year - YEARS_BACK, now.year + 1):
            yield from _month(each, month, day)
    if not dates:
        for match in _YEAR.finditer(question):
            yield Span(*_year(int(match["year"])), weight=0.5)


def _is_month(match: re.Match[str]) -> bool:
    """`may` and `march` are other words too, unless a number or a preposition says that the month is meant."""
    if match["month"].lower() not in {"may", "march"} or any(
        match[part] for part in ("before", "last", "after", "year")
    ):
        return True
    return _BEFORE_A_MONTH.search(match.string[: match.start()]) is not None


def _english(match: re.Match[str], now: datetime) -> tuple[int | None, int, int | None]:
    month = _MONTH_NAMES.index(match["month"][:3].lower()) + 1
    year = int(match["year"]) if match["year"] else None
    if match["last"] and year is None:
        year = now.year if month < now.month else now.year - 1
    day = match["before"] or match["after"]
    return year, month, int(day) if day else None


def _numbers(match: re.Match[str]) -> tuple[int | None, int, int | None]:
    return (
        int(match["year"]) if match["year"] else None,
        int(match["month"]),
        int(match["day"]) if match["day"] else None,
    )


def _month(year: int, month: int, day: int | None) -> Iterator[Span]:
    start = datetime(year, month, 1, tzinfo=UTC)
    end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    yield Span(start, end, weight=0.5 if day else 1.0)
    if day and 1 <= day <= (end - start).days:
        told = start + timedelta(days=day - 1)
        yield Span(told, told + TOLD_WITHIN, weight=1.0)


def _year(year: int) -> tuple[datetime, datetime]:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _relative(question: str, now: datetime) -> Iterator[Span]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for pattern, back, length in _RELATIVE:
        if pattern.search(question):
            yield Span(today - back, today - back + length + TOLD_WITHIN, weight=1.0)
    if _LAST_YEAR.search(question):
        yield Span(*_year(now.year - 1), weight=0.5)
