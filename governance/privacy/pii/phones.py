"""Phone numbers, by the numbering plans of `phonenumbers`; what this adds is which digits of a text to ask about.

The library's own matcher takes ten times as long and reads orders and dates as numbers: digits without `+` count only
when they are grouped as their region groups them, are plainly a mobile number, or a word before them says so.
"""

import re
from collections.abc import Iterator, Sequence
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
from governance.privacy.pii.matching import has_long_number
from governance.privacy.pii.spans import Span
from governance.vocabulary import PiiKind

# Digits and what groups them; never two digits' worth of separators in a row.
BLOB = re.compile(
    r"[+(0-9](?<![A-Za-z0-9_#$¥￥€£].)(?<![0-9][.,].)(?:(?<=\()\+)?"
    r"(?:[0-9]|[ .\-/()]{1,2}(?=[0-9(]))*(?<=[0-9])(?![A-Za-z0-9_%元万亿])",
    re.DOTALL,
)
GROUP = re.compile("[0-9]+")
MOST_DIGITS, LEAST_DIGITS = 15, 7  # E.164; the shortest national numbers
LEAST_GROUPED = 9
MOST_GROUPS = 7
ABROAD = "00"  # what most of the world dials before a country code
HARD = frozenset(" /")  # where another number may end, and the next begin


def phones(text: str, regions: Sequence[str]) -> Iterator[Span]:
    """Phone numbers with a country code, and those that `regions` (ISO 3166) know without one."""
    if not has_long_number(text):
        return
    for blob in BLOB.finditer(text):
        yield from _in_blob(text, blob, regions)


def _in_blob(text: str, blob: re.Match[str], regions: Sequence[str]) -> Iterator[Span]:
    groups = [found.span() for found in GROUP.finditer(text, blob.start(), blob.end())]
    first = 0
    while first < len(groups):
        last = _number_from(text, groups, first, regions) if _begins(text, groups, first) else None
        if last is None:
            first += 1
            continue
        start = _with_sign(text, groups[first][0], blob.start())
        yield Span(PiiKind.PHONE, start, groups[last][1], "phone")
        first = last + 1


def _number_from(text: str, groups: Sequence[tuple[int, int]], first: int, regions: Sequence[str]) -> int | None:
    """The last group of the longest number that begins with `first`."""
    for last in reversed(_ends(text, groups, first)):
        start, end = groups[first][0], groups[last][1]
        sizes = [stop - begin for begin, stop in groups[first : last + 1]]
        if _is_phone(text, start, end, sizes, regions):
            return last
    return None


def _ends(text: str, groups: Sequence[tuple[int, int]], first: int) -> list[int]:
    """Groups that may be the last of a number that begins with `first`."""
    found, digits = [], 0
    for last in range(first, len(groups)):
        digits += groups[last][1] - groups[last][0]
        if digits > MOST_DIGITS + len(ABROAD) or last - first >= MOST_GROUPS:
            break
        if digits >= LEAST_DIGITS and (last + 1 == len(groups) or text[groups[last][1]] in HARD):
            found.append(last)
    return found


def _begins(text: str, groups: Sequence[tuple[int, int]], first: int) -> bool:
    return first == 0 or text[groups[first][0] - 1] in HARD | frozenset("(+")


def _with_sign(text: str, start: int, earliest: int) -> int:
    while start > earliest and text[start - 1] in "+(":
        start -= 1
    return start


def _is_phone(text: str, start: int, end: int, sizes: Sequence[int], regions: Sequence[str]) -> bool:
    digits = "".join(GROUP.findall(text[start:end]))
    if text[max(0, start - 1) : start] == "+":
        return _valid("+" + digits, None) is not None
    abroad = digits.startswith(ABROAD)
    known_to = [region for region in regions if _in_plan(digits, region)]
    topic = topic_before(text, start) if abroad or known_to else None
    if topic is Topic.OTHER:
        return False
    if abroad and _valid("+" + digits[len(ABROAD) :], None) is not None:
        return True
    for region in known_to:
        number = _valid(digits, region)
        if number is not None and (topic is Topic.PHONE or _is_plain(number, text[start:end], sizes)):
            return True
    return False


def _valid(digits: str, region: str | None) -> PhoneNumber | None:
    try:
        number = parse(digits, region)
    except NumberParseException:
        return None
    return number if is_valid_number(number) else None


def _in_plan(digits: str, region: str) -> bool:
    """Whether the region has numbers of this look: costs a twentieth of asking the library, which then decides."""
    return bool(_plan(region).fullmatch(digits))


@cache
def _plan(region: str) -> re.Pattern[str]:
    """The numbers of a region and of those that share its country code, with or without what is dialled before them.

    Raises ValueError for a region that the library does not know.
    """
    code = COUNTRY_CODE_TO_REGION_CODE.get(country_code_for_region(region), ())
    plans = [plan for plan in map(PhoneMetadata.metadata_for_region, code) if plan is not None]
    if not plans:
        raise ValueError(f"no region {region!r}")
    looks = {look for plan in plans for look in _looks(plan)}
    return re.compile(f"(?:{plans[0].country_code}|{plans[0].national_prefix or ''})?(?:{'|'.join(sorted(looks))})")


def _looks(plan: PhoneMetadata) -> Iterator[str]:
    kinds = (
        *(plan.fixed_line, plan.mobile, plan.pager, plan.toll_free, plan.premium_rate),
        *(plan.shared_cost, plan.personal_number, plan.voip, plan.uan, plan.voicemail),
    )
    yield from (kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)


def _is_plain(number: PhoneNumber, written: str, sizes: Sequence[int]) -> bool:
    """Digits that no word introduces: a mobile number in one piece, or one grouped as its region groups them."""
    count = sum(sizes)
    if len(sizes) == 1:
        return count >= 11 and number_type(number) == PhoneNumberType.MOBILE
    if len(sizes) == 2 and "." in written:
        return False  # 1.8230858028
    return count >= LEAST_GROUPED and _cuts(sizes) <= _cuts_of(number) | {count - 1}


def _cuts(sizes: Sequence[int]) -> set[int]:
    """Where a number is cut, counted in digits from its end."""
    cuts, total = set(), 0
    for size in reversed(sizes[1:]):
        total += size
        cuts.add(total)
    return cuts


def _cuts_of(number: PhoneNumber) -> set[int]:
    groups = GROUP.findall(format_number(number, PhoneNumberFormat.INTERNATIONAL))
    return _cuts([len(group) for group in groups])
