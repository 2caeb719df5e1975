"""Phone numbers, by the numbering plans of `phonenumbers`; this module chooses the digits that the library checks.

The library's own matcher takes ten times as long and reads orders and dates as numbers. Digits without `+` count only
if they have the grouping of their region, are a mobile number, or follow a word that announces a phone number.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from phonenumbers import (
    COUNTRY_CODE_TO_REGION_CODE,
    NumberParseException,
    PhoneMetadata,
    PhoneNumber,
    PhoneNumberFormat,
    PhoneNumberType,
    country_code_for_region,
    format_number,
    is_valid_number,
    number_type,
    parse,
)

from governance.privacy.pii.context import Topic, topic_before
from governance.privacy.pii.patterns import has_long_number
from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind

# The marks between two groups of digits. Each text matches in one way only and possessively, so that the time is
# linear: alternatives would double it with each mark.
_GAP = r"(?:[ .\-/)]{1,2}+(?:\([ .\-/)]?+){0,3}+|(?:\([ .\-/)]?+){1,3}+)"
BLOB = re.compile(
    r"[+(0-9](?<![A-Za-z0-9_#$¥￥€£].)(?<![0-9][.,].)(?:(?<=\()\+)?"
    rf"[0-9]*+(?:{_GAP}[0-9]++)*(?<=[0-9])(?![A-Za-z0-9_%元万亿])",
    re.DOTALL,
)
GROUP = re.compile("[0-9]+")
MOST_DIGITS, LEAST_DIGITS = 15, 7  # E.164; the shortest national numbers
LEAST_GROUPED, LEAST_MOBILE = 9, 11  # digits of a number that no word introduces
LEAST_GROUP = 2  # digits of a group that is not its first, in every region
MOST_GROUPS = 7
MOST_QUESTIONS = 600  # to the library, about one text: each takes a fifth of a millisecond
ABROAD = "00"  # what most of the world dials before a country code
HARD = frozenset(" /")  # where another number may end, and the next begin
BEGINNINGS = HARD | frozenset("(+")
Groups = Sequence[tuple[int, int]]


def phones(text: str, regions: Sequence[str]) -> Iterator[Span]:
    """Yield phone numbers with a country code, and those that `regions` (ISO 3166) dial without one."""
    if not has_long_number(text):
        return
    search = _Search(text, regions)
    for blob in BLOB.finditer(text):
        yield from search.numbers_in(blob)


@dataclass
class _Search:
    """Searches one text. `questions`: the number of calls to the library that are left.

    After these, only the numbering plans decide, which accept too many numbers rather than too few.
    """

    text: str
    regions: Sequence[str]
    questions: int = MOST_QUESTIONS

    def numbers_in(self, blob: re.Match[str]) -> Iterator[Span]:
        groups = [found.span() for found in GROUP.finditer(self.text, blob.start(), blob.end())]
        first = 0
        while first < len(groups):
            last = self._last_group(groups, first)
            if last is None:
                first += 1
                continue
            start = _with_sign(self.text, groups[first][0], blob.start())
            yield Span(PiiKind.PHONE, start, groups[last][1], "phone")
            first = last + 1

    def _last_group(self, groups: Groups, first: int) -> int | None:
        """Return the index of the last group of the longest number that begins with group `first`, or None."""
        start = groups[first][0]
        before = self.text[start - 1] if first else ""
        ends = _find_last_groups(self.text, groups, first) if first == 0 or before in BEGINNINGS else []
        if not ends:
            return None
        has_code = self.text[max(0, start - 1) : start] == "+"
        topic = None if has_code else topic_before(self.text, start)
        if topic is Topic.OTHER:
            return None
        pieces = [self.text[begin:end] for begin, end in groups[first : ends[-1] + 1]]
        for last in reversed(ends):
            number = _Number(pieces[: last - first + 1], self.text[start : groups[last][1]], topic is Topic.PHONE)
            if self._has_country_code(number) if has_code else self._is_phone(number):
                return last
        return None

    def _has_country_code(self, number: "_Number") -> bool:
        return not self._may_ask() or _valid(f"+{number.digits}", None) is not None

    def _is_phone(self, number: "_Number") -> bool:
        if number.digits.startswith(ABROAD) and self._has_country_code(number.abroad()):
            return True
        return number.may_be_plain() and any(
            _in_plan(number.digits, region) and self._fits_region(number, region) for region in self.regions
        )

    def _fits_region(self, number: "_Number", region: str) -> bool:
        if not self._may_ask():
            return True
        known = _valid(number.digits, region)
        return known is not None and (number.is_introduced or number.is_plain(known))

    def _may_ask(self) -> bool:
        self.questions -= 1
        return self.questions >= 0


@dataclass(frozen=True)
class _Number:
    """Digits that may be a phone number. `is_introduced`: the words before them announce one."""

    pieces: Sequence[str]
    written: str
    is_introduced: bool

    @property
    def digits(self) -> str:
        return "".join(self.pieces)

    def abroad(self) -> "_Number":
        """Return the number without the zeros that are dialled before a country code."""
        return _Number([self.digits[len(ABROAD) :]], self.written, self.is_introduced)

    def may_be_plain(self) -> bool:
        """Return False if neither a word nor the grouping suggests a phone number: a cheap test before `is_plain`."""
        if self.is_introduced:
            return True
        count = len(self.digits)
        if len(self.pieces) == 1:
            return count >= LEAST_MOBILE
        is_decimal = len(self.pieces) == 2 and "." in self.written  # 1.8230858028
        return count >= LEAST_GROUPED and not is_decimal and min(map(len, self.pieces[1:])) >= LEAST_GROUP

    def is_plain(self, known: PhoneNumber) -> bool:
        """Return whether it is a mobile number in one piece, or a number with the grouping of its region."""
        if len(self.pieces) == 1:
            return number_type(known) == PhoneNumberType.MOBILE
        return _find_group_positions(self.pieces) <= _format_group_positions(known) | {len(self.digits) - 1}


def _find_last_groups(text: str, groups: Groups, first: int) -> list[int]:
    """Return the indexes of groups with which a number that begins with group `first` may end."""
    found, digits = [], 0
    for last in range(first, min(len(groups), first + MOST_GROUPS)):
        digits += groups[last][1] - groups[last][0]
        if digits > MOST_DIGITS + len(ABROAD):
            break
        if digits >= LEAST_DIGITS and (last + 1 == len(groups) or text[groups[last][1]] in HARD):
            found.append(last)
    return found


def _with_sign(text: str, start: int, earliest: int) -> int:
    while start > earliest and text[start - 1] in "+(":
        start -= 1
    return start


def _valid(digits: str, region: str | None) -> PhoneNumber | None:
    try:
        number = parse(digits, region)
    except NumberParseException:
        return None
    return number if is_valid_number(number) else None


def _in_plan(digits: str, region: str) -> bool:
    """Return whether the region has numbers of this form. A cheap check before the library decides."""
    return bool(_plan_pattern(region).fullmatch(digits))


@cache
def _plan_pattern(region: str) -> re.Pattern[str]:
    """Return a pattern of the numbers of all regions with this region's country code, with or without its prefix.

    Raises ValueError for a region that the library does not know.
    """
    code = COUNTRY_CODE_TO_REGION_CODE.get(country_code_for_region(region), ())
    plans = [plan for plan in map(PhoneMetadata.metadata_for_region, code) if plan is not None]
    if not plans:
        raise ValueError(f"no region {region!r}")
    looks = {look for plan in plans for look in _number_patterns(plan)}
    return re.compile(f"(?:{plans[0].country_code}|{plans[0].national_prefix or ''})?(?:{'|'.join(sorted(looks))})")


def _number_patterns(plan: PhoneMetadata) -> Iterator[str]:
    kinds = (
        *(plan.fixed_line, plan.mobile, plan.pager, plan.toll_free, plan.premium_rate),
        *(plan.shared_cost, plan.personal_number, plan.voip, plan.uan, plan.voicemail),
    )
    yield from (kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)


def _find_group_positions(pieces: Sequence[str]) -> set[int]:
    """Return the positions between the groups of a number, counted in digits from its end."""
    cuts, total = set(), 0
    for piece in reversed(pieces[1:]):
        total += len(piece)
        cuts.add(total)
    return cuts


def _format_group_positions(number: PhoneNumber) -> set[int]:
    return _find_group_positions(GROUP.findall(format_number(number, PhoneNumberFormat.INTERNATIONAL)))
