"""The meaning of each kind of temporal expression at a given time: from a match of its pattern to periods. Pure.

`dates` has the patterns and their groups. `now` is a time in UTC.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from vault.lexicon import holidays
from vault.lexicon.calendar_units import (
    DAY,
    MONTH,
    ONE_DAY,
    SEASON,
    VAGUE,
    WEEK,
    YEAR,
    Meaning,
    Period,
    days,
    midnight,
    months,
    season,
    week,
    year_of,
)

MONTHS_AROUND = 13  # in which a weekday falls on a day of the month
YEARS_BACK = 10  # a month without a year may be that of any of these
NEARLY, MAYBE, AROUND = 0.9, 0.6, 0.5  # how well fits what is nearly, or may be, or lies around what is meant

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
COUNTS = {  # how many, and how many more or fewer that may be
    **{word: (at, 0) for at, word in enumerate(_NUMBERS, 1)},
    **{"twenty": (20, 0), "thirty": (30, 0), "a": (1, 0), "an": (1, 0)},
    **dict.fromkeys(("a couple of", "a couple", "couple of"), (2, 1)),
    **dict.fromkeys(("a few", "few", "some", "几"), (3, 2)),
    **dict.fromkeys(("several", "数"), (5, 3)),
    **dict.fromkeys(("half a", "half an", "半"), (0.5, 0)),
}
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = {
    **{word: at for at, word in enumerate((*_NUMBERS, *_TEENS), 1)},
    **{word: 10 * at for at, word in enumerate(_TENS, 2)},
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4} | dict.fromkeys(
    ("last", "very last", "最后一"), holidays.LAST
)
_LUNAR_MONTHS = {"正": 1, "冬": 11, "腊": 12}
_DIGITS = {character: at for at, character in enumerate("〇一二三四五六七八九")} | {"零": 0, "○": 0, "两": 2}
_UNITS = {
    **{"分钟": "minute", "小时": "hour", "钟头": "hour", "天": "day", "日": "day"},
    **{"周": "week", "星期": "week", "礼拜": "week", "月": "month", "季": "quarter", "季度": "quarter", "年": "year"},
}
_DAYS = {"day": 1.0, "week": 7.0, "fortnight": 14.0, "month": 30.44, "year": 365.25}
_WITHIN = {"day": 0, "week": 3, "fortnight": 3, "month": 15, "year": 91}  # days more or fewer that `a year ago` may be
_NEAR_YEARS = {"last": -1, "this": 0, "next": 1, "大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
_WHICH = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "上": -1, "这": 0, "本": 0, "下": 1}

Match = re.Match[str]


def number(text: str) -> int:
    """Return the number in digits, as in `3` or `二〇二三`, or in tens, as in `二十五`."""
    if text.isdecimal():
        return int(text)
    if "十" not in text:
        return int("".join(str(_DIGITS[character]) for character in text))
    tens, _, units = text.partition("十")
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(units, 0)


def read_number(text: str) -> int:
    """Return the number below 1,000 in digits, in Chinese or in English words: `34`, 三十四, `thirty-four`."""
    words = text.lower().replace("-", " ").split()
    if words[0] in _NUMBER_WORDS:
        return sum(_NUMBER_WORDS[word] for word in words)
    return number(text)


def length(count: float, unit: str) -> timedelta:
    """Return the duration of `count` units, in whole days except for hours and minutes."""
    if unit in {"minute", "hour"}:
        return timedelta(hours=count) if unit == "hour" else timedelta(minutes=count)
    return timedelta(days=round(count * _DAYS[unit]))


def read_count(match: Match) -> tuple[float, int, str]:
    """Return the count, its tolerance and the unit of `3 days`, `a couple of weeks` or 三个月."""
    words = " ".join((match["count"] or "a").lower().split())
    return *(COUNTS.get(words) or (number(words), 0)), _unit(match)


def day_from_today(offset: int, _match: Match, now: datetime) -> Meaning:
    return Meaning(DAY, (days(midnight(now) + offset * ONE_DAY),))


def unit_from_now(match: Match, now: datetime) -> Meaning:
    """Return for `last week` the calendar week, and with nearly the same weight the seven days before today."""
    unit, offset = _unit(match), _offset(match)
    meaning = _calendar(unit, offset, now)
    if offset == -1 and unit in {"week", "month"}:
        rolling = Period(midnight(now) - length(1, unit), now, NEARLY)
        return Meaning(meaning.grain, (*meaning.periods, rolling))
    return meaning


def two_away(match: Match, now: datetime) -> Meaning:
    """Return the week, month or year before last, or after next."""
    return _calendar(_unit(match), 2 if "next" in match[0].lower() else -2, now)


def ago(match: Match, now: datetime) -> Meaning:
    """Return the time so long ago; of "exactly", "a month ago today" and 整整 the day."""
    count, slack, unit = read_count(match)
    if match["exact"] or match["today"]:
        back = midnight(now) - length(count, unit)
        if unit in {"month", "year"} and count == int(count):
            same = months(now.year, now.month - int(count) * (12 if unit == "year" else 1))
            back = same.start + (min(now.day, (same.end - same.start).days) - 1) * ONE_DAY
        return Meaning(DAY, (days(midnight(back)),))
    return _units_ago(count, slack, unit, now)


def ahead(match: Match, now: datetime) -> Meaning:
    """Return the day that many units after now, or after the day that the match names: `a week from Friday`."""
    count, _, unit = read_count(match)
    named = match.groupdict()
    base, today = (named.get("base") or "today").lower(), midnight(now)
    if base == "tomorrow":
        today += ONE_DAY
    elif base[:3] in _WEEKDAYS:
        today += ((_WEEKDAYS.index(base[:3]) - today.weekday() - 1) % 7 + 1) * ONE_DAY
    if unit in {"minute", "hour"}:
        return Meaning(DAY, (days(midnight(now + length(count, unit))),))
    return Meaning(DAY, (days(midnight(today + length(count, unit))),))


def holiday(match: Match, now: datetime) -> Meaning:
    """Return a holiday in the years that it may mean."""
    name = " ".join(match["holiday"].lower().replace("\u2019", "'").split())
    return _make_days(holidays.days_of(name, range(now.year - YEARS_BACK, now.year + 2)))


def lunar_date(match: Match, now: datetime) -> Meaning:
    """Return a day of the Chinese lunar calendar in the years that it may mean: 正月初五, 大年初三, 农历四月初八."""
    month = _LUNAR_MONTHS.get(match["month"] or "正") or number(match["month"])
    day = number(match["day"].replace("初", "").replace("廿", "二十"))
    found = (holidays.lunar_day(year, month, day) for year in range(now.year - YEARS_BACK, now.year + 2))
    return _make_days([each for each in found if each is not None])


def nth_of_month(match: Match, now: datetime) -> Meaning:
    """Return the nth or last weekday or day of a month: `the first Monday of May`, 这个月最后一天."""
    name = " ".join((match["nth"] or "last").lower().split())
    nth = _ORDINALS.get(name) or number(name)
    weekday = None if match["day"].lower() in {"day", "天", "日"} else _weekday_at(match["day"])
    if match["month"]:
        name = match["month"]
        month = _MONTHS.index(name[:3].lower()) + 1 if name.isascii() else number(name)
        of = [(year, month) for year in (*_years(match, now), *([] if match["year"] else [now.year + 1]))]
    else:
        first = months(now.year, now.month + (_offset(match) if match["which"] else 0)).start
        of = [(first.year, first.month)]
    found = (holidays.nth_day(year, month, weekday, nth) for year, month in of)
    return _make_days([each for each in found if each is not None])


def weekday_of_week(match: Match, now: datetime) -> Meaning:
    """Return a day of last, this or next week: `Saturday of next week`, `next week on Tuesday`."""
    start = week(midnight(now)).start
    return Meaning(DAY, (days(start + (_weekday_at(match["day"]) + 7 * _offset(match)) * ONE_DAY),))


def weekday_after_next(match: Match, now: datetime) -> Meaning:
    """Return the day a week after the next such one: `Monday week`, `the Sunday after next`."""
    today = midnight(now)
    return Meaning(DAY, (days(today + ((_weekday_at(match["day"]) - today.weekday() - 1) % 7 + 8) * ONE_DAY),))


def weekday_date(match: Match, now: datetime) -> Meaning:
    """Return the latest day of a month that is such a weekday: `Saturday the 22nd`, 周六22号; coming: the next one."""
    at, day = _weekday_at(match["weekday"]), number(match["day"])
    starts = [months(now.year, now.month + offset) for offset in range(-MONTHS_AROUND, MONTHS_AROUND)]
    all_days = [period.start + (day - 1) * ONE_DAY for period in starts if 1 <= day <= (period.end - period.start).days]
    found = [days(each) for each in all_days if each.weekday() == at]
    past = [period for period in found if period.start <= now]
    coming = next((period for period in found if period.start > now), None)
    return Meaning(DAY, tuple(past[-1:]), coming)


def some_days_ago(_match: Match, now: datetime) -> Meaning:
    return _units_ago(*COUNTS["few"], "day", now)


def last_units(match: Match, now: datetime) -> Meaning:
    """Return for `in the last three weeks` the time from then until now."""
    count, slack, unit = read_count(match)
    back = length(count + slack, unit)
    start = now - back if unit in {"minute", "hour"} else midnight(now) - back
    return Meaning(YEAR if unit == "year" else MONTH, (Period(start, now),))


def recently(_match: Match, now: datetime) -> Meaning:
    today = midnight(now)
    return Meaning(VAGUE, (Period(today - 7 * ONE_DAY, now), Period(today - 30 * ONE_DAY, now, MAYBE)))


def weekday(match: Match, now: datetime) -> Meaning:
    """Return the latest such day, less likely the one before; `last`: before today; `this`, 上 and 下: of that week."""
    today, which, name = midnight(now), (match["which"] or "").lower(), match["day"]
    at = _weekday_at(name)
    if which not in {"", "on", "last", "past"}:
        return Meaning(DAY, (days(week(today).start + (at + 7 * _offset(match)) * ONE_DAY),))
    latest = today - (today.weekday() - at) % 7 * ONE_DAY
    if latest == today and which in {"last", "past"}:
        latest -= 7 * ONE_DAY
    coming = None if which in {"last", "past"} else days(today + ((at - today.weekday() - 1) % 7 + 1) * ONE_DAY)
    return Meaning(DAY, (days(latest), days(latest - 7 * ONE_DAY, fit=MAYBE)), coming)


def weekend(match: Match, now: datetime) -> Meaning:
    """Return the latest weekend that has begun; `this`: also this week's; `last`: the week before's."""
    today, offset = midnight(now), _offset(match)
    saturday = week(today).start + 5 * ONE_DAY
    latest = saturday if saturday <= today else saturday - 7 * ONE_DAY
    starts = {saturday + 7 * offset * ONE_DAY} if offset else {latest, saturday} if match["which"] else {latest}
    coming = days(saturday if saturday > today else saturday + 7 * ONE_DAY, 2)
    return Meaning(WEEK, tuple(days(start, 2) for start in sorted(starts)), None if match["which"] else coming)


def day_of_month(match: Match, now: datetime) -> Meaning:
    """Return a day of last, this or next month; without such a word the latest, less likely the one before."""
    day, offset = number(match["day"]), _offset(match)
    around = [months(now.year, now.month + at) for at in ((offset,) if match["which"] else range(-4, 4))]
    found = [
        days(period.start + (day - 1) * ONE_DAY)
        for period in around
        if 1 <= day <= (period.end - period.start) // ONE_DAY
    ]
    if match["which"] or not found:
        return Meaning(DAY, tuple(found))
    *_, earlier, latest = (period for period in found if period.start <= now)
    maybe = days(earlier.start, fit=MAYBE)
    return Meaning(DAY, (maybe, latest), next(period for period in found if period.start > now))


def season_of_year(match: Match, now: datetime) -> Meaning:
    """Return a season of the named year. The winter of a year begins in it, or ends in it."""
    name, years = match["season"].lower(), _years(match, now)
    ends = [months(year, 1, 2, MAYBE) for year in years if name in {"winter", "冬"} and len(years) == 1]
    return Meaning(SEASON, (*(season(year, name) for year in years), *ends))


def season_from_now(match: Match, now: datetime) -> Meaning:
    """Return for `last summer` the latest that has ended, less likely last year's; for `this` the current or this
    year's.
    """
    name = match["season"].lower()
    around = [season(now.year + offset, name) for offset in (-3, -2, -1, 0, 1)]
    if _offset(match) > 0:
        return Meaning(SEASON, (next(period for period in around if period.start > now),))
    if _offset(match) == 0:
        return Meaning(SEASON, (next((period for period in around if period.start <= now < period.end), around[3]),))
    *_, earlier, latest = (period for period in around if period.end <= now)
    maybe = [Period(earlier.start, earlier.end, MAYBE)] if earlier.start.year == now.year - 1 else []
    return Meaning(SEASON, (latest, *maybe))


def quarter(match: Match, now: datetime) -> Meaning:
    at = _ORDINALS.get(match["number"].lower()) or number(match["number"])
    return Meaning(SEASON, tuple(months(year, 3 * at - 2, 3) for year in _years(match, now)))


def english_date(match: Match, now: datetime) -> Meaning:
    month, which = _MONTHS.index(match["month"][:3].lower()) + 1, (match["which"] or "").lower()
    years = _years(match, now)
    if which and len(years) > 1:
        begun = now.year if month < now.month else now.year - 1
        years = [{"last": begun, "this": now.year, "next": now.year + (month <= now.month)}[which]]
    day = match["before"] or match["after"]
    return _dates(years, month, match["first_before"] or match["first_after"] or day, day)


def chinese_date(match: Match, now: datetime) -> Meaning:
    month, day, years = number(match["month"]), match["day"], _years(match, now)
    first_month = number(match["first_month"] or match["month"])
    if first_month < month and not day:
        return Meaning(MONTH, tuple(months(year, first_month, month - first_month + 1) for year in years))
    return _dates(years, month, match["first"] or day, day)


def numeric_date(match: Match, now: datetime) -> Meaning:
    return _dates(_years(match, now), int(match["month"]), match["day"], match["day"])


def ambiguous_date(match: Match, _now: datetime) -> Meaning:
    """Return for `3/5/2025` both orders of day and month that are dates."""
    first, second = match["left"], match["right"]
    orders = sorted({(int(first), second), (int(second), first)})
    found = [_dates([int(match["year"])], month, day, day).periods for month, day in orders if 1 <= month <= 12]
    return Meaning(DAY, tuple(period for periods in found for period in periods))


def month_and_day(match: Match, now: datetime) -> Meaning:
    """Return the day of `3/14` or `14/3` in the years that it may mean."""
    month, day = sorted((int(match["left"]), int(match["right"])))
    return _dates([*range(now.year - YEARS_BACK, now.year + 1)], month, str(day), str(day))


def year(match: Match, now: datetime) -> Meaning:
    return Meaning(YEAR, tuple(year_of(each) for each in _years(match, now)))


def _make_days(found: Sequence[date]) -> Meaning:
    return Meaning(DAY, tuple(days(datetime(each.year, each.month, each.day, tzinfo=UTC)) for each in found))


def _weekday_at(name: str) -> int:
    """Return 0 for Monday or 一."""
    return _WEEKDAYS.index(name[:3].lower()) if name.isascii() else min("一二三四五六日天".index(name), 6)


def _unit(match: Match) -> str:
    unit = match["unit"].lower()
    return _UNITS.get(unit, unit)


def _offset(match: Match) -> int:
    """Return -1 for `last` and 上, -2 for 上上, 0 without such a word."""
    which = (match["which"] or "this").lower()
    return _WHICH[which] if which.isascii() else len(which) * _WHICH[which[0]]


def _calendar(unit: str, offset: int, now: datetime) -> Meaning:
    """Return the calendar week, month, quarter or year at an offset from now."""
    if unit == "week":
        return Meaning(WEEK, (week(midnight(now) + 7 * offset * ONE_DAY),))
    if unit == "month":
        return Meaning(MONTH, (months(now.year, now.month + offset),))
    if unit == "quarter":
        return Meaning(SEASON, (months(now.year, now.month - (now.month - 1) % 3 + 3 * offset, 3),))
    return Meaning(YEAR, (year_of(now.year + offset),))


def _units_ago(count: float, slack: int, unit: str, now: datetime) -> Meaning:
    """Return the day that many units ago; for longer units a range of days, and the month or year that contains it."""
    back = now - length(count, unit)
    if unit in {"minute", "hour"}:
        return Meaning(DAY, _cut_at_now(now, days(midnight(back))))
    within = max(_WITHIN[unit], length(slack, unit).days)
    meant = days(midnight(back) - within * ONE_DAY, 2 * within + 1)
    if unit == "year":
        return Meaning(SEASON, _cut_at_now(now, meant, year_of(back.year, MAYBE)))
    if unit == "month":
        return Meaning(MONTH, _cut_at_now(now, meant, months(back.year, back.month, fit=NEARLY)))
    return Meaning(DAY, _cut_at_now(now, meant))


def _cut_at_now(now: datetime, *periods: Period) -> tuple[Period, ...]:
    """Return the periods, cut at the current time."""
    return tuple(Period(period.start, min(period.end, now), period.fit) for period in periods if period.start < now)


def _years(match: Match, now: datetime) -> list[int]:
    """Return the year in the match, or all years that it may mean."""
    if match["year"]:
        return [number(match["year"])]
    if match["near"]:
        return [now.year + _NEAR_YEARS[match["near"].lower()]]
    return list(range(now.year - YEARS_BACK, now.year + 1))


def _dates(years: list[int], month: int, first: str | None, last: str | None) -> Meaning:
    """Return the days `first` to `last` of a month and the month itself; only the month if it lacks such days."""
    if not last:
        return Meaning(MONTH, tuple(months(year, month) for year in years))
    until = number(last)
    since = min(number(first or last), until)
    around = [months(year, month, fit=AROUND) for year in years]
    starts = [period.start for period in around if since >= 1 and until <= (period.end - period.start).days]
    meant = [days(start + (since - 1) * ONE_DAY, until - since + 1) for start in starts]
    return Meaning(DAY if meant else MONTH, (*meant, *around))
