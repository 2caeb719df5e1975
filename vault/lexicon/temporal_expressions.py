"""Temporal expressions in English and Chinese: recognises them in texts and questions, and resolves them to ranges.

Pure; `now` is an aware argument. Days are UTC days. Date libraries parse single times, not ranges, and miss much
Chinese; so this module has its own rules.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import islice

from vault.lexicon.calendar_units import DAY, EARLIEST, LATEST, ONE_DAY, Meaning, Period
from vault.lexicon.dates import (
    COUNT,
    HAN_TO,
    MONTH,
    SEASON,
    TO,
    UNIT,
    NamedTime,
    S,
    find_named_times,
    fold_signs,
    follows_preposition,
)
from vault.lexicon.readings import length, read_count

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_NAMED = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|week(?:end)?|month|year"
    rf"|(?:{_MONTHS})[a-z]*|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d\d)\b"
    r"|昨[天晚日]|今[天晚日年早]|明[天晚日年早]|前天|后天|去年|前年|上个?[周月]|下个?[周月]|星期|周[一二三四五六日天末]"
    r"|\d[年月日号]|[一二三四五六七八九十]月",
    re.IGNORECASE,
)
_RUN = re.compile(r"\w+")
LONGEST_REMEMBERED, REMEMBERED = 64, 2**14  # characters; words
_ASKED = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:time|day|date|month|year)\b|\bhow long\b|\bsince when\b"
    r"|什[么麼][时時]候|何时|哪[天年月]|几[点月号]|多久",
    re.IGNORECASE,
)
MOST_TIMES = 8  # of one question: a pasted page is searched by its first
# People mostly talk about a day or a week within the week after it, which fits less than the time itself.
TOLD_WITHIN = 7 * ONE_DAY
TOLD_AFTER = 0.8
OPEN = 0.5  # how well fits what is before or after a time: that is much
# Words around a time that change its meaning, searched in this many characters before and after it.
BEFORE_IT, AFTER_IT = 64, 12
_THE = rf"(?:the{S})?"
_LEAD = re.compile(
    rf"(?:\b(?:(?:(?:the|(?P<count>{COUNT})){S})?(?P<unit>{UNIT})s?{S})?"
    rf"(?:(?P<before>before|prior{S}to|earlier{S}than)|(?P<after>after|later{S}than)"
    rf"|(?P<since>since)|(?P<until>up{S}to|until|till)){S}{_THE}(?:(?:start|beginning|middle|end){S}of{S}{_THE})?"
    r"|(?P<since_han>(?<!来)自从?)|(?P<until_han>直到|截至|截止到?)|(?P<from_han>从))$",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"的?[之以](?:(?P<before>前)|(?P<after>后))"
    r"|(?:(?P<just_before>前)|(?P<just_after>后))(?![\d一二三四五六七八九十几两些半前后天日年晚来面])"
    rf"|(?P<since>以来|至今|到现在|到目前|{TO}now\b|{S}onwards?\b|{S}and{S}later\b)|(?P<until>为止)|(?P<begun>起|开始)",
    re.IGNORECASE,
)
_TO_LAST = re.compile(rf"(?:{TO}|{HAN_TO}){_THE}", re.IGNORECASE)
_AND_LAST = re.compile(rf"(?:{S}and{S}{_THE}|[和与跟])", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween{S}{_THE}$", re.IGNORECASE)
_BETWEEN_TAIL = re.compile("的?(?:之间|期间|间)")
# Words of a time that matching texts have too, since they mean the same at any time.
_SAME_ALWAYS = re.compile(
    rf"\b(?:{MONTH}|{SEASON}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend)\b"
    r"|(?<!\d)(?:19|20)\d\d(?!\d)|[一二][〇零○一二三四五六七八九]{3}(?=年)|[春夏秋冬][天季]"
    r"|(?:周|星期|礼拜)[一二三四五六日天末]|(?<![一二三四五六七八九十])(?:[一二三四五六七八九]|十[一二]?)月",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TimeRange:
    """The time from `start` to before `end`. weight: how well a time in the range fits the question, 0..1."""

    start: datetime
    end: datetime
    weight: float


@dataclass(frozen=True)
class _Time:
    """A time in a question, with the neighbouring words that change its meaning."""

    begin: int
    end: int
    spans: Callable[[datetime], list[TimeRange]]


def mentions_time(text: str) -> bool:
    """Return whether `text` names a day, a month, a year or a time relative to now."""
    if not text.isascii():
        return _NAMED.search(text) is not None
    words = _RUN.findall(text.lower())  # between two of them nothing matches: there is no Chinese
    return any(_names_time(word) for word in words if len(word) <= LONGEST_REMEMBERED)


@lru_cache(REMEMBERED)
def _names_time(word: str) -> bool:
    return _NAMED.fullmatch(word) is not None


def merge_ranges(spans: Sequence[TimeRange]) -> tuple[list[datetime], list[datetime]]:
    """Return the starts and ends of `spans`, with overlapping ones joined."""
    starts: list[datetime] = []
    ends: list[datetime] = []
    for span in sorted(spans, key=lambda time_range: time_range.start):
        if ends and span.start <= ends[-1]:
            ends[-1] = max(ends[-1], span.end)
        else:
            starts.append(span.start)
            ends.append(span.end)
    return starts, ends


def asks_for_time(question: str) -> bool:
    """Return whether `question` asks for a time or a duration."""
    return _ASKED.search(question) is not None


def time_ranges_of(question: str, now: datetime, names: Collection[str] = ()) -> list[TimeRange]:
    """Return the times that `question` names, relative to `now`; empty if it names none.

    They overlap: days after a time, times around it and less likely meanings weigh less than the time itself; where
    ranges overlap, the greatest weight counts. `before` and `after` reach to `EARLIEST` and `LATEST`; other past times
    end at `now`. At most the first MOST_TIMES. names: of people; `June` is a name unless words announce the month.
    """
    as_of = now.astimezone(UTC)
    spans = [
        span for time in islice(_find_times(fold_signs(question), names), MOST_TIMES) for span in time.spans(as_of)
    ]
    return list(dict.fromkeys(spans))


def remove_times(question: str, names: Collection[str] = (), *, but_names: bool = False) -> str:
    """Return `question` with each time that `time_ranges_of` understands replaced by blanks; positions stay the same.

    but_names: keep names of months, weekdays and seasons, and years, as matching texts have the same words. A relative
    time (`last week`, `yesterday`, 上个月) in another text means another time.
    """
    plain = fold_signs(question)
    places = [(time.begin, time.end) for time in _find_times(plain, names)]
    if but_names:
        places = [gap for place in places for gap in _gaps_between(_SAME_ALWAYS.finditer(plain, *place), place)]
    pieces, at = [], 0
    for begin, end in places:
        pieces += [question[at:begin], " " * (end - begin)]
        at = end
    return "".join([*pieces, question[at:]])


def _gaps_between(matches: Iterator[re.Match[str]], place: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range of characters that no match covers."""
    at, end = place
    for match in matches:
        yield at, match.start()
        at = match.end()
    yield at, end


def _find_times(text: str, names: Collection[str]) -> Iterator[_Time]:
    """Yield the times of a text in order: ranges between two times, times with `before` or `after`, single times."""
    people = {name.casefold() for name in names}
    named = [
        time
        for time in find_named_times(text)
        if text[time.begin : time.end].casefold() not in people or follows_preposition(text, time.begin)
    ]
    at = done = 0
    while at < len(named):
        ranging = _find_range(text, named[at], named[at + 1], done) if at + 1 < len(named) else None
        time = ranging or _find_time_beside(text, named[at], done)
        at += 2 if ranging else 1
        done = time.end
        yield time


def _find_range(text: str, first: NamedTime, last: NamedTime, done: int) -> _Time | None:
    """Return the range from the first time to the last, if the words between or beside them announce one."""
    gap = text[first.end : last.begin] if last.begin - first.end < AFTER_IT else ""
    lead = _BETWEEN.search(text[max(done, first.begin - BEFORE_IT) : first.begin])
    tail = _BETWEEN_TAIL.match(text, last.end)
    if not (_TO_LAST.fullmatch(gap) or ((lead or tail) and _AND_LAST.fullmatch(gap))):
        return None
    begin = first.begin - len(lead[0]) if lead else first.begin
    return _Time(begin, tail.end() if tail else last.end, partial(_make_ranges_between, first, last))


def _find_time_beside(text: str, named: NamedTime, done: int) -> _Time:
    """Return the time before or after `named`, if words beside it say so; otherwise `named` itself."""
    lead = _LEAD.search(text[max(done, named.begin - BEFORE_IT) : named.begin])
    tail = _TAIL.match(text, named.end)
    begin = named.begin - len(lead[0]) if lead else named.begin
    if lead and lead["unit"] and (lead["before"] or lead["after"]):
        return _Time(begin, named.end, partial(_make_ranges_beside, lead, named))
    if side := _find_side(lead, tail):
        return _Time(begin, tail.end() if tail else named.end, partial(_make_open_range, side, named))
    return _Time(named.begin, named.end, lambda now: _make_ranges(named.read(now), now))


def _find_side(lead: re.Match[str] | None, tail: re.Match[str] | None) -> str | None:
    """Return `before`, `after`, `since`, `until` or None. Words after a time decide before words in front of it."""
    said = str(lead.lastgroup).removesuffix("_han") if lead else None
    then = str(tail.lastgroup).removeprefix("just_") if tail else None
    if then == "begun":  # the verb, too: 昨天开始学琴, 昨天起床
        return "since" if said in {"from", "since"} else None
    return then or (None if said == "from" else said)


def _make_ranges(meaning: Meaning, now: datetime) -> list[TimeRange]:
    """Return the periods, and the days after them in which people still talk about them."""
    weight = meaning.grain.weight
    spans = [TimeRange(period.start, period.end, weight * period.fit) for period in meaning.periods]
    if meaning.grain.told_after:
        told = [(period.end, min(period.end + TOLD_WITHIN, now)) for period in meaning.list_likely_times()]
        spans += [TimeRange(end, until, weight * TOLD_AFTER) for end, until in told if end < until]
    return spans


def _make_ranges_between(first: NamedTime, last: NamedTime, now: datetime) -> list[TimeRange]:
    """Return ranges from each possible first time to the next possible last one; both alone if none follows."""
    since, until = first.read(now), last.read(now)
    pairs: dict[datetime, datetime] = {}
    for period in until.list_likely_times():
        starts = [other.start for other in since.list_likely_times() if other.start <= period.start]
        if starts:
            pairs.setdefault(max(starts), period.end)
    if not pairs:
        return [*_make_ranges(since, now), *_make_ranges(until, now)]
    grain = replace(until.grain, weight=min(since.grain.weight, until.grain.weight))
    return _make_ranges(Meaning(grain, tuple(Period(*pair) for pair in pairs.items())), now)


def _make_open_range(side: str, named: NamedTime, now: datetime) -> list[TimeRange]:
    """Return the range before, after, since or until the latest possible meaning. `after` excludes a time longer than a
    day.
    """
    meant = named.read(now).list_likely_times()
    begun = [period for period in meant if period.start <= now] or meant[:1]
    if not begun:
        return []
    period = begun[-1]
    after = period.start if period.end - period.start <= ONE_DAY else period.end
    start = {"since": period.start, "after": after}.get(side, EARLIEST)
    end = {"before": period.start, "until": period.end}.get(side, LATEST)
    return [TimeRange(start, end, OPEN)]


def _make_ranges_beside(lead: re.Match[str], named: NamedTime, now: datetime) -> list[TimeRange]:
    """Return the range for `two days before` or `the week after` a time."""
    count, slack, unit = read_count(lead)
    far = length(count + slack, unit)
    sides = [
        (period.start - min(far, period.start - EARLIEST), period.start)
        if lead["before"]
        else (period.end, period.end + min(far, LATEST - period.end))
        for period in named.read(now).list_likely_times()
    ]
    return _make_ranges(Meaning(DAY, tuple(Period(*side) for side in sides)), now)
