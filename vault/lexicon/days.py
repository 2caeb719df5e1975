"""Days of a year as index terms, so that dates match in any spelling. Pure; linear in the length of the text."""

import re
from collections.abc import Iterator

from vault.lexicon.dates import MONTH
from vault.lexicon.readings import number

LONGEST_RANGE = 31  # days
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = "(?:3[01]|[12][0-9]|0?[1-9])"
_NTH = "(?:st|nd|rd|th)?"
_TO = "(?:-| ?[–—~] ?| (?:to|until|till|through) (?:the )?)"
_NO_DAY = "(?! ?(?:am|pm|a[.]m|p[.]m|o'clock|people)(?![a-z]))"  # what follows an hour, or a number of something
_HAN_DAY = f"{_DAY}|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九]"
_YEAR = "(?:19|20)[0-9][0-9]"
_MONTH_NUMBER = "1[0-2]|0?[1-9]"
_DAYS = re.compile(
    rf"(?:(?<![0-9:.])(?P<from>{_DAY}){_NTH}(?:{_TO}|(?P<and> (?:and|or) (?:the )?)))?(?<![0-9])(?P<day>{_DAY}){_NTH}"
    rf"(?: of)? (?P<month>{MONTH})(?![a-z])"
    rf"|(?<![a-z])(?P<first>{MONTH})\.? (?:the )?(?P<then>{_DAY}){_NTH}"
    rf"(?:{_TO}(?P<until>{_DAY}){_NTH}{_NO_DAY}(?![0-9]|[:.][0-9]))?(?![0-9]|[:.][0-9])"
    rf"|(?<![0-9]){_YEAR}(?P<sign>[-/.])(?P<iso>{_MONTH_NUMBER})(?P=sign)(?P<iso_day>{_DAY})(?![0-9])"
    rf"|(?<![0-9.])(?P<dotted_day>{_DAY})\.(?P<dotted>{_MONTH_NUMBER})\.{_YEAR}(?![0-9])"
    rf"|(?<![0-9/])(?P<left>{_DAY})/(?P<right>{_DAY})/{_YEAR}(?![0-9])"
    rf"|(?<![0-9一二三四五六七八九])(?P<han>{_MONTH_NUMBER}|十[一二]?|[一二三四五六七八九])月(?P<han_day>{_HAN_DAY})"
    rf"(?:[日号號]?[到至~—–-](?P<han_until>{_HAN_DAY}))?[日号號]"
)
_SIGNS = re.compile("[0-9月]")


def days_of(normal: str) -> Iterator[str]:
    """Yield `5-12` for each 12 May in a folded lower-case text: 12 May, May the 12th, 5月12日, 五月十二日, 2027-05-12,
    12.05.2027; for 12–14 May each of the three days. 5/12/2027 is ambiguous and yields both.
    """
    if not _SIGNS.search(normal):
        return
    for match in _DAYS.finditer(normal):
        if match["left"]:
            yield from _write_both_orders(int(match["left"]), int(match["right"]))
            continue
        name = match["month"] or match["first"]
        month = _MONTHS.index(name[:3]) + 1 if name else number(match["iso"] or match["dotted"] or match["han"])
        begin, end = _read_begin_and_end(match)
        is_range = 0 <= end - begin < LONGEST_RANGE and not match["and"]
        for day in range(begin, end + 1) if is_range else (begin, end):
            yield f"{month}-{day}"


def _read_begin_and_end(match: re.Match[str]) -> tuple[int, int]:
    day = match["day"] or match["then"] or match["iso_day"] or match["dotted_day"] or match["han_day"]
    return number(match["from"] or day), number(match["until"] or match["han_until"] or day)


def _write_both_orders(first: int, second: int) -> Iterator[str]:
    if second <= 12:
        yield f"{second}-{first}"
    if first <= 12 and first != second:
        yield f"{first}-{second}"
