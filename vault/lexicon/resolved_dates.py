"""Dates of the relative times in a text, resolved at the time when it was said, to be written beside it. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from itertools import islice, zip_longest

from vault.lexicon import readings
from vault.lexicon.calendar_units import DAY, MONTH, ONE_DAY, VAGUE, Meaning, Period, days, midnight
from vault.lexicon.dates import HAN_TO, TO, NamedTime, find_named_times, fold_signs
from vault.lexicon.tokens import language_of
from vault.lexicon.written_dates import write_period

MOST_TIMES = 2  # of one text
LONGEST_EXACT = 15 * ONE_DAY  # of a time that is preferred to a month or a season
LONGEST_GAP = 6  # characters between a weekday and its date: "Tuesday, 3 June", "the weekend of 3 and 4 May"
LONGEST_CLAUSE = 200  # characters before and after a time that may tell its tense
MOST_READ = 20  # times of one text
FEW_WORDS = 4  # of a clause without a verb of its own
JUST_NOW = 21 * ONE_DAY  # ago, that a holiday without a year may have been
EARLIEST_YEAR, LATEST_YEAR = 1_100, 8_980  # as of which `999 years ago` and 999年后 still are times
_DATES = frozenset({readings.english_date, readings.chinese_date, readings.numeric_date, readings.ambiguous_date})
_HOLIDAYS = frozenset({readings.holiday, readings.lunar_date})
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_TO = re.compile(rf"(?:{TO}|{HAN_TO})(?:the )?", re.IGNORECASE)
_RELATIVE = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|this|ago|before|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|[昨前今明后上下这本去]|周|星期|礼拜|^the \d{1,2}(?:st|nd|rd|th)$|^[\d一二三四五六七八九十]{1,3} ?号$",
    re.IGNORECASE,
)
# In such a sentence, a day without a year or a week is the next one: "the appointment is on 17 November".
_AHEAD = re.compile(
    r"\b(?:is|are|will be) (?:on|due|scheduled)\b"
    r"|\b(?:is|are|was|were|been) (?:moved|postponed|rescheduled) (?:to|for)\b"
    r"|\b(?:moved|pushed|postponed|rescheduled|put off) (?:\S{1,20} ){1,4}(?:to|until|till)\b"
    r"|\b(?:starts?|begins?|arrives?|leaves?|comes?|returns?|expires?|ends?) (?:back )?(?:on|at)\b|\buntil\b"
    r"|\b(?:i|we|he|she|they)(?:'ll| will| have to| need to| must)\b"
    r"|\b(?:has|have|'ve got|is having) (?:an?|the|my|our|his|her|their) [^.;!?]{1,60}\bon\b"
    r"|(?<![不需重主])要(?![么是不])|(?:周|星期|礼拜)[一二三四五六日天末][^，。；！？]{0,6}有(?![过了])|将(?!近)|直到|截止|为止|到(?:下?个?(?:周|星期|礼拜)|[0-9一二三四五六七八九十]{1,3}[月号日])",
    re.IGNORECASE,
)

# Without any of these a sentence tells of what is to come: "Roofer's coming Monday", "the dentist on the 27th".
_PAST = re.compile(
    r"\b(?:was|were|had|did|been|has|went|came|got|took|made|saw|met|said|told|ran|won|lost|gave|bought|found|left|began"
    r"|broke|fell|felt|spent|wrote|drove|flew|held|kept|knew|thought|became|brought|sent|sold|slept|sat|stood|taught"
    r"|ate|drank|sang|swam|wore|built|paid|caught|rang|heard|hurt|led|read|rode|set|quit|born|since|ago|last|yesterday"
    r"|[a-z]+[a-df-z]ed)\b|['’](?:ve|d)\b"
    r"|[了刚昨]|(?<![一二三四五六七八九十日号节年])过(?![生年节来去敏期])|已经|曾|[前上](?:天|周|个|次|星期|礼拜|月|年)|去年|以来|[日号][^我你他她它谁的]的|那天|当时|生于|出生|毕业"
    r"|是[^，。；！？]{0,8}[日号月年](?!早|晚|上|下|中|凌|那|份|底|初)[^，。；！？]{1,8}的(?=[。！!\s]|$)",
    re.IGNORECASE,
)


_CLAUSE_END = re.compile(
    r"[,:](?!\d)\s*|[;!?，；：！？。、—…]\s*|\s(?:and|but|so|because|though|while)\s", re.IGNORECASE
)
_VERB = re.compile(
    r"\b(?:is|are|am|will|shall|going|do|does|can|may|must|should|comes?|goes|flies|starts?|begins?|leaves?|moves?)\b"
    r"|['’](?:s|re|m|ll)\b",
    re.IGNORECASE,
)


class Tense(Enum):
    """The tense of a clause: FUTURE and PAST if a word tells it."""

    PAST = auto()
    PRESENT = auto()
    FUTURE = auto()


def time_of(text: str, said_at: datetime, *, is_plan: bool = False) -> datetime | None:
    """Return the beginning of the first time that `text` names, in UTC, relative to `said_at` in its own offset.

    A day is the UTC day with the speaker's date: "yesterday", said on 2 May at 20:00 -05:00, is 1 May at 0:00.

    None if it names none exactly or only the present week, month or year, and for texts said before EARLIEST_YEAR or
    after LATEST_YEAR.

    Of several possible times: the next one for is_plan or unless the text tells of the past, else the last one.
    """
    as_of = said_at.replace(tzinfo=UTC)  # the speaker's clock
    named = _list_meanings(text, as_of, is_plan=is_plan)
    times = [(time, period) for time, period in named if not _is_now(period, as_of)]
    # "For Easter, 12 to 21 April": a date says it better than a holiday.
    has_date = any(time.reader in _DATES and period.end - period.start <= LONGEST_EXACT for time, period in times)
    found = [_middle_day(*named) for named in times if not (has_date and named[0].reader in _HOLIDAYS)]
    exact = next((period for period in found if period.end - period.start <= LONGEST_EXACT), None)
    period = exact or next(iter(found), None)
    if period is None:
        return None
    is_day = period.start == midnight(period.start)
    return period.start if is_day else period.start.replace(tzinfo=said_at.tzinfo).astimezone(UTC)


def _middle_day(time: NamedTime, period: Period) -> Period:
    """Return the day in the middle of the days around "a week ago"; other times as they are."""
    length = period.end - period.start
    if time.reader is not readings.ago or not ONE_DAY < length <= LONGEST_EXACT:
        return period
    return days(midnight(period.start + (length - ONE_DAY) / 2))


def event_period(text: str, said_at: datetime, event_time: datetime) -> Period:
    """Return the day or longer time that a text names for its event: all of March, if it says no more, or "from 3 to
    10 May"; else its day."""
    as_of = said_at.replace(tzinfo=UTC)
    for is_plan in (False, True):
        for period in _list_ranges(text, as_of, is_plan=is_plan):
            if period.start == event_time:
                return period
    return days(midnight(event_time))


def list_times(text: str, said_at: datetime) -> list[Period]:
    """Return the times that `text` names, said at a time in the speaker's offset, in order."""
    return _list_ranges(text, said_at.replace(tzinfo=UTC), is_plan=False)


def _list_ranges(text: str, as_of: datetime, *, is_plan: bool) -> list[Period]:
    """Return the times of a text, with two ends joined by a `to` as one period."""
    periods: list[Period] = []
    last = 0
    for named, period in _list_meanings(text, as_of, is_plan=is_plan):
        joins = periods and _TO.fullmatch(text[last : named.begin]) is not None
        if joins and periods[-1].start < period.start:
            periods[-1] = replace(periods[-1], end=period.end)
        else:
            periods.append(period)
        last = named.end
    return periods


def event_of_changed(
    text: str, before: str, said_at: datetime | None, event_time: datetime | None, *, is_hidden: bool
) -> datetime | None:
    """Return the time of the event of a text that was `before`.

    It stays if both name the same times. Else it is what the new text names, or when it was said; but a time that the
    former text does not name was given by a client, and stays unless `is_hidden`: then a part of the text was hidden.
    """
    if said_at is None or event_time in {None, said_at} or text == before:
        return event_time
    if _expressions(text, said_at) == _expressions(before, said_at):
        return event_time
    if not is_hidden and event_time not in {time_of(before, said_at), time_of(before, said_at, is_plan=True)}:
        return event_time
    return time_of(text, said_at) or said_at


def _expressions(text: str, said_at: datetime) -> list[str]:
    found = islice(_find_times(text, said_at), MOST_READ)
    return [fold_signs(text)[time.begin : time.end].casefold() for time in found]


def _list_meanings(text: str, as_of: datetime, *, is_plan: bool = False) -> Iterator[tuple[NamedTime, Period]]:
    """Yield the times of a text with their meaning. A day of the month is one of the month named before it; a weekday
    beside a date is left out."""
    named, month = list(islice(_find_times(text, as_of), MOST_READ)), None
    for time, following in zip_longest(named, named[1:]):
        meaning = time.read(as_of)
        if following is not None and _is_weekday(time) and _dates_weekday(time, following, as_of):
            continue
        tense = Tense.FUTURE if is_plan else _read_tense(text, time)
        if tense is Tense.PRESENT and time.reader in _HOLIDAYS and _was_just_now(meaning, as_of):
            tense = Tense.PAST
        period = _select_period(meaning, as_of, tense)
        if period is None:
            continue
        if following is not None and _TO.fullmatch(text[time.end : following.begin]):
            period = _in_year_of(text, time, following, period)
        if meaning.grain == MONTH:
            month = period
        elif month is not None and time.reader is readings.day_of_month and meaning.coming is not None:
            period = days(month.start + (period.start.day - 1) * ONE_DAY)
        yield time, period


def _in_year_of(text: str, first: NamedTime, last: NamedTime, period: Period) -> Period:
    """Return a period in the year that its last day names: "from 3 May to 10 May 2027"."""
    year = _YEAR.search(text, last.begin, last.end)
    if year is None or _YEAR.search(text, first.begin, first.end):
        return period
    while period.start.year < int(year[0]):
        period = _next_year(period)
    return period


def _dates_weekday(weekday: NamedTime, date: NamedTime, as_of: datetime) -> bool:
    """Return whether a date stands beside a weekday."""
    return date.begin - weekday.end <= LONGEST_GAP and date.read(as_of).grain == DAY


def _is_weekday(time: NamedTime) -> bool:
    return time.reader in {readings.weekday, readings.weekend}


def _read_tense(text: str, time: NamedTime) -> Tense:
    """Return the tense of the clause that names a time. A short clause goes with the one before it: "we were in Oslo in
    May, and Bergen in June"."""
    first = max(0, time.begin - LONGEST_CLAUSE)
    around = text[first : time.end + LONGEST_CLAUSE]
    bounds = [0, *(match.end() for match in _CLAUSE_END.finditer(around)), len(around)]
    at = max(index for index, bound in enumerate(bounds[:-1]) if bound <= time.begin - first)
    clause = around[bounds[at] : bounds[at + 1]]
    rest = len(clause.split()) - len(text[time.begin : time.end].split())
    if clause.isascii() and at and rest <= FEW_WORDS and not _VERB.search(clause):
        clause = around[bounds[at - 1] : bounds[at + 1]]
    if _AHEAD.search(clause):
        return Tense.FUTURE
    return Tense.PAST if _PAST.search(clause) else Tense.PRESENT


def _is_now(period: Period, as_of: datetime) -> bool:
    """Return whether a period is longer than a day and contains `as_of`, like "this year"."""
    return period.start <= as_of < period.end and period.end - period.start > ONE_DAY


def write_dates(text: str, said_at: datetime) -> str:
    """Return `yesterday = 7 May 2026` for the first relative times of `text`, resolved at `said_at`; may be empty."""
    as_of = said_at.astimezone(UTC)
    language = "zh" if language_of(text) == "zh" else "en"
    found: list[str] = []
    for named, period in _list_meanings(text, as_of):
        expression = text[named.begin : named.end]
        if _RELATIVE.search(expression) and len(found) < MOST_TIMES:
            found.append(f"{expression} = {write_period(period, language)}")
    return ", ".join(found)


def _find_times(text: str, as_of: datetime) -> Iterable[NamedTime]:
    return find_named_times(fold_signs(text)) if EARLIEST_YEAR <= as_of.year <= LATEST_YEAR else ()


def _was_just_now(meaning: Meaning, as_of: datetime) -> bool:
    return any(timedelta(0) <= as_of - period.start <= JUST_NOW for period in meaning.periods)


def _select_period(meaning: Meaning, as_of: datetime, tense: Tense) -> Period | None:
    """Return the meaning that fits the tense; in the present tense a day of the year is the next one."""
    if meaning.grain == VAGUE or not meaning.list_likely_times():
        return None
    later = [period for period in meaning.list_likely_times() if period.start > as_of]
    past = [period for period in meaning.list_likely_times() if period.start <= as_of]
    if tense is Tense.PAST:
        return past[-1] if past else later[0]
    if not later and meaning.coming:
        return meaning.coming
    if not later and len(past) > 1:
        return _next_year(past[-1])
    return later[0] if later else past[-1]


def _next_year(period: Period) -> Period:
    """Return the same days one year later; 29 February becomes 1 March."""
    return replace(period, start=_year_after(period.start), end=_year_after(period.end))


def _year_after(moment: datetime) -> datetime:
    try:
        return moment.replace(year=moment.year + 1)
    except ValueError:
        return moment.replace(year=moment.year + 1, month=3, day=1)
