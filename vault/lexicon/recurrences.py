"""Times that come again, in English and Chinese: "every Tuesday", birthdays, 每月15号. Pure; linear in the text."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from vault.lexicon import readings
from vault.lexicon.dates import MONTH, find_named_times, fold_signs
from vault.lexicon.readings import number
from vault.lexicon.written_dates import MONTH_NAMES

_ANY_YEAR = datetime(2024, 12, 31, tzinfo=UTC)  # has a 29 February
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HAN_WEEKDAYS = {sign: at % 7 for at, sign in enumerate("一二三四五六日")} | {"天": 6}
_DAY = "|".join(_WEEKDAYS)
LONGEST_READ = 2_000  # characters of a text
_MAY_RECUR = re.compile(
    r"every|each|days\b|daily|of the month|birth|anniv|born|turn|hits? \d|(?:will|'ll) be"
    r"|每|逢|天天|生日|出生|生于|纪念日|周年|就\d",
    re.IGNORECASE,
)
_WEEKLY = re.compile(
    rf"\b(?:every|each)\s(?P<other>other\s|second\s)?(?P<every>(?:{_DAY})(?:(?:,\s|\sand\s|\s&\s)(?:{_DAY})){{0,6}})\b"
    rf"|\b(?P<plural>(?:{_DAY})s(?:(?:,\s|\sand\s|\s&\s)(?:{_DAY})s){{0,6}})\b"
    r"|(?:每|逢)(?:个)?(?:周|星期|礼拜)(?P<han>[一二三四五六日天](?:[、和到至]?(?:周|星期|礼拜)?[一二三四五六日天]){0,6})(?![个次点])",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(_DAY, re.IGNORECASE)
_DAILY = re.compile(
    r"\b(?:every|each)\s(?:single\s)?(?:day|morning|afternoon|evening|night)\b|\bdaily\b|每[天日晚]|每个?(?:早上|晚上)|天天",
    re.IGNORECASE,
)
_NTH = re.compile(
    rf"\b(?:(?P<nth>first|second|third|fourth|last)\s(?P<day>{_DAY})\s(?:of|in)\s(?:the|every|each)\smonth)\b"
    rf"|\bevery\s(?P<every>first|third|fourth|last)\s(?P<weekday>{_DAY})\b"
    r"|每个?月的?(?P<han>第[一二三四]|最后一)个?(?:周|星期|礼拜)(?P<sign>[一二三四五六日天])",
    re.IGNORECASE,
)
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "last": -1,
    "第一": 1,
    "第二": 2,
    "第三": 3,
    "第四": 4,
    "最后一": -1,
}
_MONTHLY = re.compile(
    r"\b(?:on\s)?the\s(?P<day>\d{1,2})(?:st|nd|rd|th)\sof\s(?:every|each|the)\smonth\b"
    r"|每个?月的?(?P<han>\d{1,2}|[一二三]?十?[一二三四五六七八九十]) ?[号日]",
    re.IGNORECASE,
)
_YEARLY = re.compile(
    rf"\b(?:every|each)\s(?:year|{MONTH})\b|\bbirthdays?\b|\banniversar(?:y|ies)\b|\bborn on\b"
    rf"|\bturn(?:s|ed|ing)?\s\d{{1,3}}\b"
    r"|\bi(?:'ll| will) be \d{1,3} on\b|生日|出生|生于|纪念日|周年|每年|就\d{1,3}岁?了",
    re.IGNORECASE,
)
_NAMES = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
}


@dataclass(frozen=True)
class Recurrence:
    """The days on which something comes again: weekdays (0 is Monday; all seven: daily), a day of each month, or a
    month and its day in each year. weeks: 2 for every other week, whose first is not known. nth: of its weekday in each
    month, -1 for the last.
    """

    weekdays: tuple[int, ...] = ()
    month: int = 0
    day: int = 0
    weeks: int = 1
    nth: int = 0

    def next_day(self, after: date) -> date | None:
        """Return the first such day from `after` on; None if it is not known."""
        if self.weeks > 1:
            return None
        return next((day for day in (after + timedelta(days=at) for at in range(366 * 8)) if self.falls_on(day)), None)

    def stands_for(self, day: date) -> bool:
        """Return whether a day that the text names is only one of its days: that of a birthday, or next Thursday."""
        return bool(self.month) or self.falls_on(day)

    @property
    def rule(self) -> str:
        """Return the recurrence rule of RFC 5545, such as `FREQ=WEEKLY;BYDAY=TU,TH`."""
        if len(self.weekdays) == len(_WEEKDAYS):
            return "FREQ=DAILY"
        if self.nth:
            return f"FREQ=MONTHLY;BYDAY={self.nth}{_WEEKDAYS[self.weekdays[0]][:2].upper()}"
        if self.weekdays:
            interval = f"INTERVAL={self.weeks};" if self.weeks > 1 else ""
            return f"FREQ=WEEKLY;{interval}BYDAY={','.join(_WEEKDAYS[day][:2].upper() for day in self.weekdays)}"
        if self.month:
            return f"FREQ=YEARLY;BYMONTH={self.month};BYMONTHDAY={self.day}"
        return f"FREQ=MONTHLY;BYMONTHDAY={self.day}"

    def falls_on(self, day: date) -> bool:
        """Return whether it may come on a day."""
        if self.nth:
            is_last = (day + timedelta(days=7)).month != day.month
            is_nth = is_last if self.nth < 0 else (day.day - 1) // 7 + 1 == self.nth
            return day.weekday() in self.weekdays and is_nth
        if self.weekdays:
            return day.weekday() in self.weekdays
        return day.day == self.day and self.month in {0, day.month}


def read_recurrence(text: str) -> Recurrence | None:
    """Return the first recurrence that a text states: of weekdays, of a day of each month, or of a day of each year."""
    plain = fold_signs(text[:LONGEST_READ])
    if _MAY_RECUR.search(plain) is None:
        return None
    if found := _NTH.search(plain):
        return _read_nth(found)
    if found := _WEEKLY.search(plain):
        return Recurrence(_read_weekdays(found), weeks=2 if found["other"] else 1)
    if found := _MONTHLY.search(plain):
        return _of_month(0, number(found["day"] or found["han"]))
    if _YEARLY.search(plain) and (yearly := _read_yearly(plain)):
        return yearly
    return Recurrence(tuple(range(7))) if _DAILY.search(plain) else None


def write_recurrence(recurrence: Recurrence, language: str) -> str:
    """Return a recurrence in English, or in Chinese if `language` is `zh`."""
    is_chinese = language == "zh"
    if len(recurrence.weekdays) == len(_WEEKDAYS):
        return "每天" if is_chinese else "every day"
    if recurrence.nth:
        return _write_nth(recurrence, is_chinese=is_chinese)
    if recurrence.weekdays:
        names = [_NAMES["zh" if is_chinese else "en"][day] for day in recurrence.weekdays]
        if is_chinese:
            return ("每隔一周的" if recurrence.weeks > 1 else "每") + "、".join(names)
        return ("every other " if recurrence.weeks > 1 else "every ") + " and ".join(names)
    if recurrence.month:
        month = MONTH_NAMES[recurrence.month - 1]
        return (
            f"每年{recurrence.month}月{recurrence.day}日" if is_chinese else f"every year on {recurrence.day} {month}"
        )
    return f"每月{recurrence.day}日" if is_chinese else f"every month on day {recurrence.day}"


def recurring_words(day: date) -> str:
    """Return the words by which texts state what comes again on a day, in both languages."""
    english, chinese = _NAMES["en"][day.weekday()], _NAMES["zh"][day.weekday()]
    month = MONTH_NAMES[day.month - 1]
    return (
        f"every {english} {english}s the {day.day}th of every month birthday born {day.day} {month}"
        f" 每{chinese} 每星期{chinese[1:]} 每个{chinese} 每月{day.day}号 每月{day.day}日"
        f" 生日 {day.month}月{day.day}日 {day.month}月{day.day}号"
    )


def _read_nth(found: re.Match[str]) -> Recurrence:
    if found["han"]:
        return Recurrence((_HAN_WEEKDAYS[found["sign"]],), nth=_ORDINALS[found["han"]])
    day, nth = found["day"] or found["weekday"], found["nth"] or found["every"]
    return Recurrence((_WEEKDAYS.index(day.lower()),), nth=_ORDINALS[nth.lower()])


def _write_nth(recurrence: Recurrence, *, is_chinese: bool) -> str:
    (day,) = recurrence.weekdays
    names = {at: name for name, at in _ORDINALS.items() if name.isascii() != is_chinese}
    if is_chinese:
        return f"每月{names[recurrence.nth]}个{_NAMES['zh'][day]}"
    return f"every {names[recurrence.nth]} {_NAMES['en'][day]} of the month"


def _read_weekdays(found: re.Match[str]) -> tuple[int, ...]:
    if signs := found["han"]:
        days = [_HAN_WEEKDAYS[sign] for sign in signs if sign in _HAN_WEEKDAYS]
        if ("到" in signs or "至" in signs) and len(days) == 2 and days[0] < days[1]:
            days = list(range(days[0], days[1] + 1))
    else:
        days = [_WEEKDAYS.index(name.lower()) for name in _WEEKDAY.findall(found["every"] or found["plural"])]
    return tuple(sorted(set(days)))


def _read_yearly(plain: str) -> Recurrence | None:
    """Return the month and day of the first date in a text."""
    for named in find_named_times(plain):
        if named.reader in {readings.english_date, readings.chinese_date, readings.numeric_date, readings.holiday}:
            period = next(iter(named.read(_ANY_YEAR).list_likely_times()), None)
            if period is not None and (period.end - period.start).days == 1:
                return _of_month(period.start.month, period.start.day)
    return None


def _of_month(month: int, day: int) -> Recurrence | None:
    return Recurrence(month=month, day=day) if 1 <= day <= 31 else None
