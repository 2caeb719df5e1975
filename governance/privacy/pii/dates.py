"""Dates in English and Chinese with their day, month and year as far as they are written; and dates of birth."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from governance.privacy.pii.identifiers import Identifier
from governance.privacy.pii.worded_dates import MONTH, find_worded_dates, read_month, read_number, read_year
from governance.vocabulary import PersonalKind

REACH = 48  # characters between a date and the word that makes it one of birth
_DAY = r"[0-3]?[0-9](?:st|nd|rd|th)?"
_HAN_NUMBER = "(?:[0-9]{1,2}|[一二三四五六七八九十廿卅]{1,3})"
DATE = re.compile(
    rf"(?<![a-z0-9])(?P<day>{_DAY})(?: of)?[ -](?P<month>{MONTH})(?:,?[ -](?P<year>[12][0-9]{{3}}"
    rf"|['’]?[0-9]{{2}}))?(?![0-9])"
    rf"|(?<![a-z0-9])(?P<month2>{MONTH}) (?:the )?(?P<day2>{_DAY})(?![0-9:])(?:,? (?P<year2>[12][0-9]{{3}}))?(?![0-9])"
    rf"|(?<![a-z0-9])(?P<month3>{MONTH})(?: of)?,? (?P<year3>[12][0-9]{{3}})(?![0-9])"
    r"|(?<![0-9a-z.,/-])(?P<year4>[12][0-9]{3})[-./](?P<month4>[01]?[0-9])[-./](?P<day4>[0-3]?[0-9])"
    r"(?![0-9./-][0-9]|[0-9])"
    r"|(?<![0-9a-z.,/-])(?P<a>[0-3]?[0-9])(?P<by>[-./])(?P<b>[0-3]?[0-9])(?P=by)(?P<year5>[12][0-9]{3}"
    r"|[0-9]{2})(?![0-9a-z])"
    rf"|(?:(?P<year6>[12][0-9]{{3}}|[〇○零一二三四五六七八九]{{4}})年|民[国國](?P<roc>[0-9]{{1,3}})年)(?:\s?"
    rf"(?P<month6>{_HAN_NUMBER})月(?:\s?(?:初)?(?P<day6>{_HAN_NUMBER})[日号號]?)?)?"
    rf"|(?P<month7>{_HAN_NUMBER})月(?:初)?(?P<day7>{_HAN_NUMBER})[日号號]"
    r"|(?<![0-9a-z.,/-])(?P<year8>(?:19|20)[0-9]{2})(?P<month8>[01][0-9])(?P<day8>[0-3][0-9])(?![0-9a-z])"
    r"|(?<![0-9a-z.,/:$€£¥-])(?P<year9>(?:19|20)[0-9]{2})(?![0-9a-z年/-]|[.,:][0-9])",
    re.IGNORECASE,
)
# A word of birth before the date, or after it. `birthday party` and `born leader` are no such words.
BEFORE = re.compile(
    r"\bborn\b(?! (?:leader|again))|\b(?:date|day|year|place and date) of birth\b|\bbirth ?(?:date|day"
    r"|year)s?\b(?! (?:party|gift|present|cake|card))"
    rf"|\bbirth\b|\bd\.?o\.?b\b\.?|\bb\.(?= ?(?:[0-9]|{MONTH}))|\bgeboren\b|\bgeb\.|\bturn(?:s|ed|ing) [0-9]{{1,3}}\b"
    "|出生|生日|生辰|诞生|誕生|生于|生於|(?<=[日号號年月])生",
    re.IGNORECASE,
)
AFTER = re.compile(
    r"\s*[,，]?\s*(?:\(?(?:is|was|=)?\s*(?:(?:his|her|my|their|our|your|the|\w{1,20}['’]s)\s+)?"
    r"(?:birth ?(?:day|date)|date of birth|d\.?o\.?b\b)|(?:(?:is|was) )?when (?:\w+ ){1,3}was born|(?:(?:he"
    r"|she|I|they) )?was born"
    "|[^。！？；\n，,]{0,4}(?:出生|诞生|誕生|生日)|生(?![^\\s。，,；;）)人的]))",
    re.IGNORECASE,
)
# A question after a date of birth, right before its answer.
ASKED = re.compile(
    r"(?:birth ?(?:date|day)|date of birth|d\.?o\.?b\.?|生日|出生日期|出生年月)[^.?!。？！]{0,12}[.?!。？！]\s{0,3}"
    r"(?:[A-Z]\w{0,20}:\s)?"
    r"(?:it(?:['’]s| is)|that(?:['’]s| is)|mine is|是|我的是)?\s?\Z",
    re.IGNORECASE,
)
# A short word of birth right before the date, whose stop ends no sentence.
RIGHT_BEFORE = re.compile(r"(?<![a-z])(?:b|geb|d\.?\s?o\.?\s?b)\.?:?\s?\(?\Z", re.IGNORECASE)
_ENDS = "\n。！？；!?;"


@dataclass(frozen=True)
class Date:
    """A date at text[start:end]; 0 for what is not written. Both readings of 3/5/1990 are in `readings`."""

    start: int
    end: int
    readings: tuple[tuple[int, int, int], ...]


def find_dates(text: str) -> Iterator[Date]:
    """Yield the dates of a text that the calendar may have, bare years among them; those in words come last."""
    for found in DATE.finditer(text):
        readings = tuple(reading for reading in _readings(found) if reading[1] <= 12 and reading[2] <= 31)
        if readings:
            yield Date(found.start(), found.end(), readings)
    for start, end, reading in find_worded_dates(text):
        if reading[1] <= 12 and reading[2] <= 31:
            yield Date(start, end, (reading,))


def find_birth_dates(text: str) -> Iterator[tuple[Identifier, Date]]:
    """Yield the dates that a word of the same sentence calls a birth."""
    if not BEFORE.search(text):
        return
    for date in find_dates(text):
        if _is_after_word(text, date.start) or AFTER.match(text, date.end, date.end + REACH):
            yield Identifier(PersonalKind.BIRTH_DATE, date.start, date.end, "birth:word"), date


def _is_after_word(text: str, start: int) -> bool:
    earliest = max(0, start - REACH)
    sentence = max(text.rfind(end, earliest, start) for end in (*_ENDS, ". "))
    if BEFORE.search(text, max(earliest, sentence + 1), start):
        return True
    return any(pattern.search(text, earliest, start) for pattern in (RIGHT_BEFORE, ASKED))


def _readings(found: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    part = {name: value for name, value in found.groupdict().items() if value is not None}
    if "a" in part:
        year, first, second = read_year(part["year5"]), int(part["a"]), int(part["b"])
        yield from {(year, first, second), (year, second, first)}
        return
    year = next((read_year(value) for name, value in part.items() if name.startswith("year")), 0)
    if "roc" in part:
        year = 1911 + int(part["roc"])
    month = next((read_month(value) for name, value in part.items() if name.startswith("month")), 0)
    day = next((read_number(value) for name, value in part.items() if name.startswith("day")), 0)
    yield year, month, day
