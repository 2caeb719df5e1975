"""Holidays by their names, in English and Chinese, and the day of each in a year. Pure.

Some are a day of the year, some a weekday of a month, some depend on Easter, on the Chinese lunar calendar or on a
solar term. Days of the lunar calendar are known from 1900 to 2100.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta

from borax.calendars.lunardate import InvalidLunarDateError, LunarDate, TermUtils
from dateutil.easter import easter

MONDAY, THURSDAY, SUNDAY = 0, 3, 6
LAST = -1  # of the weekdays of a month
FIRST_TERMS, LAST_TERMS = 1901, 2100  # years
DayOf = Callable[[int], date | None]  # the day in a year


def nth_day(year: int, month: int, weekday: int | None, nth: int) -> date | None:
    """Return the nth or LAST such weekday of a month, or day for None; None if the month has fewer."""
    days = [date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1)]
    found = [day for day in days if weekday in {None, day.weekday()}]
    return found[nth - 1 if nth > 0 else nth] if nth <= len(found) else None


def lunar_day(year: int, month: int, day: int) -> date | None:
    """Return the day of a month of the Chinese lunar year that begins in a year; None if there is none."""
    try:
        found: date = LunarDate(year, month, day).to_solar_date()
    except InvalidLunarDateError:
        return None
    return found


def _fixed(month: int, day: int) -> DayOf:
    return lambda year: date(year, month, day)


def _nth(month: int, weekday: int, nth: int, after: int = 0) -> DayOf:
    return lambda year: _move(nth_day(year, month, weekday, nth), after)


def _of_easter(after: int) -> DayOf:
    return lambda year: _move(easter(year), after)


def _lunar(month: int, day: int, after: int = 0) -> DayOf:
    return lambda year: _move(lunar_day(year, month, day), after)


def _term(index: int) -> DayOf:
    return lambda year: TermUtils.nth_term_day(year, index) if FIRST_TERMS <= year <= LAST_TERMS else None


def _move(day: date | None, after: int) -> date | None:
    return None if day is None else day + timedelta(days=after)


# Patterns of the English and of the Chinese names; one of them may be empty. A name stands before its own parts.
_HOLIDAYS: tuple[tuple[str, str, DayOf], ...] = (
    ("(?:chinese|lunar) new year's eve", "除夕|(?:大年|年)三十(?![岁多几个万块元人天年周])", _lunar(1, 1, after=-1)),
    ("(?:chinese|lunar) new year(?: day)?", "春节", _lunar(1, 1)),
    ("new year's eve", "跨年夜", _fixed(12, 31)),
    ("new year's(?: day)?(?! (?:resolution|eve))", "元旦", _fixed(1, 1)),
    ("lantern festival", "元宵节?", _lunar(1, 15)),
    ("martin luther king(?: jr)? day|mlk day", "", _nth(1, MONDAY, 3)),
    ("valentine's(?: day)?", "情人节", _fixed(2, 14)),
    ("presidents'? day", "", _nth(2, MONDAY, 3)),
    ("women's day", "三八妇?女?节|妇女节", _fixed(3, 8)),
    ("", "植树节", _fixed(3, 12)),
    (r"st\.? pat(?:rick|dy)'s day", "", _fixed(3, 17)),
    ("april fools(?:'? day)?", "愚人节", _fixed(4, 1)),
    ("shrove tuesday|pancake day", "", _of_easter(-47)),
    ("ash wednesday", "", _of_easter(-46)),
    ("mothering sunday", "", _of_easter(-21)),
    ("palm sunday", "", _of_easter(-7)),
    ("good friday", "", _of_easter(-2)),
    ("easter monday", "", _of_easter(1)),
    ("easter(?: sunday| day)?(?! (?:egg|bunn|holiday|break|island))", "复活节", _of_easter(0)),
    ("ascension day", "", _of_easter(39)),
    ("pentecost|whit sunday", "", _of_easter(49)),
    ("whit monday", "", _of_easter(50)),
    ("qing ?ming|tomb.sweeping(?: day)?", "清明节?", _term(6)),
    ("may day", "劳动节|五一(?![三-九〇零路街桥广村小中])", _fixed(5, 1)),
    ("", "青年节", _fixed(5, 4)),
    ("mother's day", "母亲节", _nth(5, SUNDAY, 2)),
    ("memorial day", "", _nth(5, MONDAY, LAST)),
    ("dragon boat (?:festival|day)", "端午节?", _lunar(5, 5)),
    ("children's day", "六一儿童节|儿童节|六一(?![三-九〇零层楼栋号路街幼小中])", _fixed(6, 1)),
    ("father's day", "父亲节", _nth(6, SUNDAY, 3)),
    ("juneteenth", "", _fixed(6, 19)),
    ("canada day", "", _fixed(7, 1)),
    ("fourth of july|independence day", "", _fixed(7, 4)),
    ("bastille day", "", _fixed(7, 14)),
    ("", "建军节", _fixed(8, 1)),
    ("qixi", "七夕节?", _lunar(7, 7)),
    ("", "中元节", _lunar(7, 15)),
    ("labor day", "", _nth(9, MONDAY, 1)),
    ("", "教师节", _fixed(9, 10)),
    ("mid.autumn(?: festival| day)?", "中秋节?", _lunar(8, 15)),
    ("", "国庆节?|十一(?:假期|长假|黄金周)", _fixed(10, 1)),
    ("double ninth", "重阳节?", _lunar(9, 9)),
    ("columbus day|indigenous peoples'? day", "", _nth(10, MONDAY, 2)),
    ("halloween", "万圣节", _fixed(10, 31)),
    ("bonfire night|guy fawkes(?: night| day)?", "", _fixed(11, 5)),
    ("veterans'? day|remembrance day|armistice day", "光棍节|双(?:十一|11)", _fixed(11, 11)),
    ("black friday", "", _nth(11, THURSDAY, 4, after=1)),
    ("cyber monday", "", _nth(11, THURSDAY, 4, after=4)),
    ("thanksgiving(?: day)?", "感恩节", _nth(11, THURSDAY, 4)),
    ("", "双(?:十二|12)", _fixed(12, 12)),
    ("christmas eve", "平安夜", _fixed(12, 24)),
    ("boxing day", "", _fixed(12, 26)),
    ("(?:christmas|xmas)(?: day)?(?! (?:tree|card|part|present|gift|song|carol|jumper))", "圣诞节?", _fixed(12, 25)),
    ("", "腊八节?", _lunar(12, 8)),
    ("", "冬至", _term(23)),
    ("", "夏至", _term(11)),
)
_WORDS = [(rf"\b(?:{english})\b" if english else "", chinese, day_of) for english, chinese, day_of in _HOLIDAYS]
_DAYS = [(re.compile("|".join(filter(None, words))), day_of) for *words, day_of in _WORDS]
# Of all names, in lower case and with straight apostrophes.
NAMES = "|".join(name for english, chinese, _ in _WORDS for name in (english, chinese) if name)


def days_of(name: str, years: range) -> list[date]:
    """Return the days of a holiday in these years. name: as in NAMES."""
    day_of = next(day_of for pattern, day_of in _DAYS if pattern.fullmatch(name))
    return [day for year in years if (day := day_of(year)) is not None]
