"""The times that a text names, in English and Chinese: their places in it, and their meaning at a given time. Pure.

Each kind is a pattern and a reader. All repetitions in patterns are bounded, so the work is linear in the text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from vault.lexicon import holidays, readings
from vault.lexicon.calendar_units import Meaning
from vault.lexicon.readings import COUNTS, Match, number

BEFORE_A_NAME = 32  # characters that are looked at before a month or a season

_FOLDED = str.maketrans(
    # The last letters equal `s`, `i` and `k` when patterns ignore case.
    "０１２３４５６７８９週號個後禮兩這來間從過內開時鐘頭幾數ſıİ\u212a",
    "0123456789周号个后礼两这来间从过内开时钟头几数siik",
)

# Pieces of the patterns. Between two words there are a few blanks at most.
S = r"\s{1,3}"
TO = r"\s{0,2}(?:[-–—~～]|\b(?:to|until|till|through|thru)\b)\s{0,2}"
HAN_TO = r" ?[到至~～—–-] ?"
COUNT = r"\d{1,3}|" + "|".join(
    sorted((word.replace(" ", S) for word in COUNTS if word.isascii()), key=len, reverse=True)
)
UNIT = "minute|hour|day|week|fortnight|month|year"
_TO_OR_AND = rf"(?:{TO}|{S}and{S})"
_NTH = "(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"
_OF_YEAR = rf"(?:,?\s{{0,2}}(?:(?:of|in){S})?(?:(?P<year>{_YEAR})(?!\d)|(?P<near>last|this|next){S}year\b))"
MONTH = (
    "january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug"
    "|sept|sep|oct|nov|dec"
)
SEASON = "spring|summer|autumn|fall|winter"
_SEASON_SIGNS = SEASON.replace("|", " ")
WEEKDAY = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_SHORT_WEEKDAY = "mon|tues?|wed|thu(?:rs?)?|fri|sat|sun"
_WEEKDAY_SIGNS = "mon tue wed thu fri sat sun"
_HAN_NUMBER = r"(?:\d{1,2}|[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_HAN_NEAR = "大前年|(?<![之以目])前年|(?<![过出回])去年(?![轻龄])|今年|明年|(?<![之以])后年"
_HAN_YEAR = rf"(?:(?:(?P<year>{_YEAR}|[一二][〇零○一二三四五六七八九]{{3}}) ?年|(?P<near>{_HAN_NEAR}))的? ?)"
_HAN_WEEK = "周|星期|礼拜"
_EARLY_DAY = "初[一二三四五六七八九十]"
_LUNAR_DAY = rf"{_EARLY_DAY}|[二三]?十[一二三四五六七八九]?|廿[一二三四五六七八九]?"
_HAN_UNITS = (
    r"(?P<count>\d{1,3}|[一二三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九几数半]) ?"
    rf"个?(?P<unit>分钟|小时|钟头|天|日|{_HAN_WEEK}|年|(?<=个)月)"
)
_HAN_WHICH = "(?<![早晚楼日基以])(?P<which>上{1,3}|[这本]|下{1,3})"  # 早上, 日本 and 以上 end another word

# `may` and `fall` have other meanings, unless the words before them announce the month or the season.
_OTHER_WORDS = frozenset({"may", "march", "mar", "jan"})
_PREPOSITION = "in|since|during|until|till|by|of|before|after|over|from|between|through|throughout|early|mid|late"
_BEFORE_A_MONTH = re.compile(rf"(?:\b(?:{_PREPOSITION})[\s-]{{1,3}}|\b(?:{MONTH}|{_YEAR}){_TO_OR_AND})$", re.IGNORECASE)
_TIME_COMES = re.compile(rf"\b(?:{_PREPOSITION}|on|this|next|last){S}$", re.IGNORECASE)
_BEFORE_A_SEASON = re.compile(
    rf"\b(?:{_PREPOSITION})[\s-](?:the{S})?(?:(?:early|mid|late)[\s-])?$|\b(?:{SEASON}){_TO_OR_AND}$", re.IGNORECASE
)

_BEFORE_A_SCORE = re.compile(r"\b(?:scor\w{1,3}|got|rat\w{2,3}|grade|won|lost)\b.{0,12}$", re.IGNORECASE)

Reader = Callable[[Match, datetime], Meaning]


@dataclass(frozen=True)
class NamedTime:
    """A time that a text names from `begin` to before `end`; `read` returns its meaning at a time in UTC."""

    begin: int
    end: int
    read: Callable[[datetime], Meaning]
    reader: Reader


class Kind(NamedTuple):
    """A kind of time expression. signs: a text without any of them cannot match; is_time: True if a match is a time."""

    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    read: Reader
    is_time: Callable[[Match], bool]


def fold_signs(text: str) -> str:
    """Return `text` with the same length, with plain digits and simplified Chinese signs of times."""
    return text if text.isascii() else text.translate(_FOLDED)


def find_named_times(text: str) -> Iterator[NamedTime]:
    """Yield the times that a folded text names, in order. Of two that overlap, the first; then the longer."""
    small = text.lower()
    found = [
        (match.start(), -match.end(), order, match)
        for order, kind in enumerate(KINDS)
        if any(map(small.__contains__, kind.signs))
        for match in kind.pattern.finditer(text)
        if kind.is_time(match)
    ]
    last = 0
    for begin, minus_end, order, match in sorted(found, key=lambda named: named[:3]):
        if begin >= last:
            last = -minus_end
            yield NamedTime(begin, last, partial(KINDS[order].read, match), _plain_reader(KINDS[order].read))


def _plain_reader(read: Reader) -> Reader:
    return read.func if isinstance(read, partial) else read


def follows_preposition(text: str, at: int) -> bool:
    """Return whether the text before `at` announces a time: `in June`, `on Sunday`."""
    return _TIME_COMES.search(text[max(0, at - BEFORE_A_NAME) : at]) is not None


def _is_month(match: Match) -> bool:
    said = ("before", "after", "year", "near", "which")
    is_plain = match["month"].lower() not in _OTHER_WORDS
    return is_plain or any(match[part] for part in said) or _has_before(_BEFORE_A_MONTH, match)


def _is_season(match: Match) -> bool:
    return bool(match["year"] or match["near"]) or _has_before(_BEFORE_A_SEASON, match)


def _has_before(before: re.Pattern[str], match: Match) -> bool:
    return before.search(match.string[max(0, match.start() - BEFORE_A_NAME) : match.start()]) is not None


def _has_months(match: Match) -> bool:
    named = match.groupdict()
    return all(1 <= number(named[part]) <= 12 for part in ("month", "first_month") if named.get(part))


def _has_one_order(match: Match) -> bool:
    """Return whether one of two numbers is a month and the other a day that no month has the number of."""
    smaller, greater = sorted((int(match["left"]), int(match["right"])))
    return 1 <= smaller <= 12 < greater <= 31 and not _has_before(_BEFORE_A_SCORE, match)


def _is_nth(match: Match) -> bool:
    """Return whether a day is named as one of its month; 五月最后一个周五 is, 月最后三 is not."""
    return _has_months(match) and (match["day"] in "日天" or any(week in match[0] for week in _HAN_WEEK.split("|")))


def _has_month(match: Match) -> bool:
    return any(1 <= int(match[part]) <= 12 for part in ("left", "right"))


def _kind(signs: str, pattern: str, read: Reader, is_time: Callable[[Match], bool] = bool) -> Kind:
    return Kind(tuple(signs.split()), re.compile(pattern, re.IGNORECASE), read, is_time)


_DAYS_FROM_TODAY = (
    (-3, "大前", "大前[天日晚]"),
    (-2, "yesterday 前", rf"\bday{S}before{S}yesterday\b|(?<![之以目当眼从提])前[天日晚](?![气天])"),
    (-1, "yesterday night evening 昨", rf"\byesterday\b|\blast{S}(?:night|evening)\b|昨[天日晚夜早儿]"),
    (0, "today tonight this 今", rf"\btoday\b|\btonight\b|\bthis{S}(?:morning|afternoon|evening)\b|今[天日晚夜早晨儿]"),
    (1, "tomorrow 明", "\\btomorrow\\b|明[天日晚早]"),
    (2, "tomorrow 后", rf"\bday{S}after{S}tomorrow\b|(?<![之以])后[天日]"),
)
_HOLIDAY = holidays.NAMES.replace("'", "['’]").replace(" ", S)
KINDS = (
    *(_kind(signs, pattern, partial(readings.day_from_today, at)) for at, signs, pattern in _DAYS_FROM_TODAY),
    # last week, the month before last, 上个月
    _kind(
        "week month quarter year",
        rf"\b(?P<which>last|previous|this|next){S}(?P<unit>week|month|quarter|year)\b",
        readings.unit_from_now,
    ),
    _kind("before after", rf"\b(?P<unit>week|month|year){S}(?:before{S}last|after{S}next)\b", readings.two_away),
    _kind(
        "周 星期 礼拜 月 季",
        rf"{_HAN_WHICH}一?个?(?P<unit>(?:{_HAN_WEEK})(?![围期边末])|月(?![亮球饼])|季度?)",
        readings.unit_from_now,
    ),
    # a week today, two weeks from Friday, in three days, 两周后
    _kind(
        "today tomorrow now day",
        rf"\b(?P<count>{COUNT}){S}(?P<unit>day|week|fortnight|month)s?{S}(?:(?:from|on){S})?"
        rf"(?P<base>today|tomorrow|now|{WEEKDAY})\b",
        readings.ahead,
    ),
    # Monday week, the Sunday after next, Saturday of next week, next week on Tuesday
    _kind("day", rf"\b(?P<day>{WEEKDAY}){S}week\b", readings.weekday_after_next),
    _kind("after", rf"\b(?:the{S})?(?P<day>{WEEKDAY}){S}after{S}next\b", readings.weekday_after_next),
    _kind("week", rf"\b(?P<day>{WEEKDAY}),?{S}(?:of{S})?(?P<which>last|this|next){S}week\b", readings.weekday_of_week),
    _kind("week", rf"\b(?P<which>last|this|next){S}week,?{S}(?:on{S})?(?P<day>{WEEKDAY})\b", readings.weekday_of_week),
    _kind(
        "in",
        rf"\bin{S}(?P<count>{COUNT}){S}(?P<unit>minute|hour|day|week|fortnight)s?(?:['’]?{S}time)?(?=\W{{0,3}}(?:$|[,.;!?)]))",
        readings.ahead,
    ),
    # in three days I'm moving, 再过五天, 还有五天就
    _kind(
        "in",
        rf"(?:^|(?<=[,.;!?] ))in{S}(?P<count>{COUNT}){S}(?P<unit>day|week|fortnight)s?(?:['’]?{S}time)?"
        rf"(?=[^,.;!?]{{1,30}}(?:['’](?:m|re|ll)|\b(?:am|are|is|will|have{S}to|need{S}to|must))\b)",
        readings.ahead,
    ),
    _kind("再过", rf"再过(?![几数]){_HAN_UNITS}(?![前之以])", readings.ahead),
    _kind("还有", rf"还有{_HAN_UNITS}(?=[就才便])", readings.ahead),
    _kind("后", rf"(?<![\d第]){_HAN_UNITS}[之以]?后(?![面来边悔])", readings.ahead),
    _kind(
        "day eve year easter christmas xmas halloween juneteenth festival july night pentecost thanksgiving valentine"
        " fool qixi qing autumn ninth fawkes 节 夕 夜 三十 元 清明 五一 六一 端午 中秋 国庆 十一 重阳 双1 圣诞 腊八 至",
        rf"(?P<holiday>{_HOLIDAY})",
        readings.holiday,
    ),
    # 正月初五, 大年初三, 农历四月初八
    _kind(
        "月",
        rf"(?:[农阴旧]历 ?|(?=[正腊]))(?P<month>[正冬腊]|十[一二]|[一二三四五六七八九十])月(?P<day>{_LUNAR_DAY})",
        readings.lunar_date,
    ),
    _kind("年初", rf"(?P<month>)(?:大年|(?<!\d)年)(?P<day>{_EARLY_DAY})(?![中月])", readings.lunar_date),
    # the first Monday of May, the last day of the month, 这个月最后一天, 五月第二个周日
    _kind(
        "first second third fourth last 1st 2nd 3rd 4th",
        rf"\b(?:the{S})?(?P<nth>first|second|third|fourth|(?:very{S})?last|1st|2nd|3rd|4th){S}(?P<day>{WEEKDAY}|day){S}"
        rf"(?:(?:of|in){S})?(?:(?:the|(?P<which>last|this|next)){S}month\b|(?P<month>{MONTH})\b{_OF_YEAR}?)",
        readings.nth_of_month,
    ),
    _kind(
        "月",
        rf"(?:{_HAN_WHICH}一?个?月|{_HAN_YEAR}?(?<![\d一二三四五六七八九十])(?P<month>{_HAN_NUMBER}) ?月|(?<=[^每])月)"
        r"份?[底末]?的?"
        rf"(?:第(?P<nth>[一二三四1-4])个?|最后一?个?)(?:{_HAN_WEEK})?(?P<day>[一二三四五六日天])",
        readings.nth_of_month,
        _is_nth,
    ),
    # three weeks ago, 三周前, the other day
    _kind(
        "ago",
        rf"\b(?P<exact>exactly{S})?\b(?P<count>{COUNT}){S}(?P<unit>{UNIT})s?{S}ago(?P<today>{S}(?:today|tonight))?\b",
        readings.ago,
    ),
    _kind(
        "前", rf"(?P<exact>整整|正好|刚好)?(?<![\d第]){_HAN_UNITS}多?[之以]?前(?!后)(?P<today>的今天)?", readings.ago
    ),
    _kind("other 前", rf"\bthe{S}other{S}day\b|(?<![之以])前[几两些][天日]", readings.some_days_ago),
    # in the last three weeks, the past month, 最近三周, recently
    _kind(
        "last past previous",
        rf"\b(?:(?:last|past|previous){S}(?P<count>{COUNT})|past){S}(?P<unit>{UNIT})s?\b",
        readings.last_units,
    ),
    _kind("过去 近 这", rf"(?:过去|最近|近|这(?=[两几]))的? ?{_HAN_UNITS}(?![前后])", readings.last_units),
    _kind(
        "recently lately these 近 前 这",
        rf"\brecently\b|\blately\b|\bthese{S}days\b|最近(?!的)|近来|近期|前阵子|这阵子|前段时间|这段时间",
        readings.recently,
    ),
    # on Friday, last Tue, 上周五, at the weekend
    _kind(
        "day",
        rf"(?<!every )(?<!each )\b(?:(?P<which>last|past|this|next){S})?(?P<day>{WEEKDAY})\b",
        readings.weekday,
    ),
    _kind(
        "mon tue wed thu fri sat sun",
        rf"\b(?P<which>on|last|past|this|next){S}(?P<day>mon|tues?|wed|thu(?:rs?)?|fri|(?-i:Sat|Sun))\b",
        readings.weekday,
    ),
    _kind(
        "周 星期 礼拜",
        rf"(?:{_HAN_WHICH}个?|(?<![上下这本个\d一二两三四五六七八九十几每]))(?:{_HAN_WEEK})"
        r"(?P<day>[一二三四五六日天])(?![个次共起直定样些般半切气期])",
        readings.weekday,
    ),
    _kind("weekend", rf"\b(?:(?P<which>last|past|this|next){S})?weekend\b", readings.weekend),
    _kind("周末", rf"(?:{_HAN_WHICH}个?|(?<![上下这本个每]))周末", readings.weekend),
    # Saturday the 22nd, sat 22nd, 周六22号
    _kind(
        _WEEKDAY_SIGNS,
        rf"\b(?P<weekday>{WEEKDAY}|{_SHORT_WEEKDAY})\.?,?{S}(?:the{S})?(?P<day>\d{{1,2}})(?:st|nd|rd|th)\b"
        rf"(?!{S}(?:of{S})?(?:{MONTH})\b)",
        readings.weekday_date,
    ),
    _kind(
        "周 星期 礼拜",
        rf"(?:{_HAN_WEEK})(?P<weekday>[一二三四五六日天])[ ，,（(]?(?<!月)(?P<day>{_HAN_NUMBER}) ?[号日]",
        readings.weekday_date,
    ),
    # the 15th of this month, 这个月15号, on the 15th, 15号要去
    _kind(
        "month",
        rf"\b(?:the{S})?(?P<day>\d{{1,2}})(?:st|nd|rd|th){S}(?:of{S})?(?P<which>last|this|next){S}month\b",
        readings.day_of_month,
    ),
    _kind("月", rf"{_HAN_WHICH}一?个?月份?的? ?(?P<day>{_HAN_NUMBER}) ?[日号]", readings.day_of_month),
    _kind(
        "st nd rd th",
        rf"(?:(?:(?<=\bon )|(?<=\bby )|(?<=\btill )|(?<=\buntil ))(?P<which>)"
        r"|(?:(?<=\bto )|(?<=\bfor )|(?<=\bfrom )|(?<=\bis )|(?<=['’]s ))"
        r"(?=the \d{1,2}(?:st|nd|rd|th)(?:\W{0,3}(?:$|[,.;!?)])|\W{1,3}(?:at|instead|not|in the|and)\b)))"
        rf"the{S}(?P<day>\d{{1,2}})(?:st|nd|rd|th)\b"
        rf"(?!{S}(?:of|{MONTH}|floor|day|time|street|avenue)\b)",
        readings.day_of_month,
    ),
    _kind(
        "号",
        rf"(?<![\d月第年个十一二三四五六七八九到至~～—–-])(?P<which>)(?P<day>{_HAN_NUMBER}) ?号"
        r"(?![楼线桌店门房车床位机院馆井球厅仓台码文字章选馆员柜库])",
        readings.day_of_month,
    ),
    # last summer, in the spring of 2023, 去年夏天, the third quarter of 2024
    _kind(_SEASON_SIGNS, rf"\b(?P<which>last|past|this|next){S}(?P<season>{SEASON})\b", readings.season_from_now),
    _kind(_SEASON_SIGNS, rf"\b(?P<season>{SEASON})\b{_OF_YEAR}?", readings.season_of_year, _is_season),
    _kind("春 夏 秋 冬", rf"{_HAN_YEAR}?(?P<season>[春夏秋冬])[天季]", readings.season_of_year),
    _kind("q1 q2 q3 q4", rf"\bq(?P<number>[1-4])\b{_OF_YEAR}?", readings.quarter, _is_season),
    _kind("quarter", rf"\b(?P<number>first|second|third|fourth){S}quarter\b{_OF_YEAR}?", readings.quarter, _is_season),
    _kind("季度", rf"{_HAN_YEAR}第?(?P<number>[一二三四1-4])季度", readings.quarter),
    # 7 May 2023, May 3-10, last May, 五月六日, 2023-05-07, 3/5/2025
    _kind(
        "jan feb mar apr may jun jul aug sep oct nov dec",
        rf"(?:(?<![\d:.,/-])\b(?:(?P<first_before>\d{{1,2}}){_NTH}{_TO_OR_AND})?(?P<before>\d{{1,2}}){_NTH}{S}(?:of{S})?)?"
        rf"\b(?:(?P<which>last|this|next){S})?(?P<month>{MONTH})\b\.?"
        rf"(?:{S}(?:the{S})?(?:(?P<first_after>\d{{1,2}}){_NTH}{_TO_OR_AND})?(?P<after>\d{{1,2}}){_NTH}\b"
        rf"(?!:|{S}(?:of{S})?(?:{MONTH})\b))?{_OF_YEAR}?",
        readings.english_date,
        _is_month,
    ),
    _kind(
        "月",
        rf"{_HAN_YEAR}?(?<![\d一二三四五六七八九十])(?:(?P<first_month>{_HAN_NUMBER}){HAN_TO})?"
        rf"(?P<month>{_HAN_NUMBER}) ?月(?![亮球饼])[份初底末]?"
        rf"(?: ?(?:(?P<first>{_HAN_NUMBER}) ?[日号]?{HAN_TO})?(?P<day>{_HAN_NUMBER}) ?[日号])?",
        readings.chinese_date,
        _has_months,
    ),
    _kind(
        "19 20",
        rf"(?<!\d)(?P<near>)(?P<year>{_YEAR})(?P<sep>[-/.])(?P<month>\d{{1,2}})(?P=sep)(?P<day>\d{{1,2}})(?!\d)",
        readings.numeric_date,
        _has_months,
    ),
    _kind(
        "19 20", rf"(?<!\d)(?P<near>)(?P<year>{_YEAR})-(?P<month>0[1-9]|1[0-2])(?!\d)(?P<day>)", readings.numeric_date
    ),
    _kind(
        "19 20",
        rf"(?<![\d/.])(?P<left>\d{{1,2}})(?P<sep>[/.])(?P<right>\d{{1,2}})(?P=sep)(?P<year>{_YEAR})(?!\d)",
        readings.ambiguous_date,
        _has_month,
    ),
    _kind(
        "/",
        r"(?<![\d/.,$€£¥%])(?P<left>\d{1,2})/(?P<right>\d{1,2})(?![\d/])"
        r"(?=\W{0,2}(?:$|[,.;!?)]|(?:at|from|in the|and|to)\b))",
        readings.month_and_day,
        _has_one_order,
    ),
    # 2023, 去年
    _kind("年", _HAN_YEAR, readings.year),
    _kind("19 20", rf"(?<![\d$€£¥#.])(?P<near>)(?P<year>{_YEAR})(?!\d|[.,:]\d|%)", readings.year),
)
