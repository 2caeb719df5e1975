"""Numbers with checksums: payment cards, IBANs, and personal numbers that states assign.

python-stdnum verifies the checksums; this module finds the numbers in a text.
"""

import re
from collections.abc import Iterator
from functools import cache

from stdnum import iban, luhn, numdb
from stdnum.cn import ric
from stdnum.exceptions import ValidationError
from stdnum.us import ssn

from governance.privacy.pii.context import Topic, topic_before
from governance.privacy.pii.patterns import compile_delimited, find_accepted, has_long_number
from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind

# 13 to 19 digits in one piece, or grouped as on a card: 4-4-4-4(-3), and 4-6-5 or 4-6-4.
CARD = compile_delimited(
    "[0-9]",
    r"(?<![0-9][.,-].)(?:[0-9]{12,18}|[0-9]{3}([ -])[0-9]{4}(?:\1[0-9]{4}){2}(?:\1[0-9]{1,3})?"
    r"|[0-9]{3}([ -])[0-9]{6}\2[0-9]{4,5})(?![.,-][0-9])",
)
# Issuers (ISO/IEC 7812) with the lengths of their numbers.
ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|62[0-9]{14,17}"  # UnionPay
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}"  # Discover
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"  # JCB
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}"  # Diners Club
)
# Found by the digits after the first letters, as digits are rarer than letters.
IBAN_CHECK = re.compile(r"[0-9]{2}(?<=[A-Za-z]{2}..)(?<![A-Za-z0-9][A-Za-z]{2}..)", re.DOTALL)
IBAN = re.compile(r"[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]{1,30}){1,9}")
BBAN_LENGTH = re.compile("([0-9]+)!")  # in the registry of IBANs, as `4!a6!n`
RESIDENT_ID = compile_delimited("[1-9]", r"[0-9]{16}[0-9Xx]")
# GB/T 2260: the first digit is a region of the country, the second a province in it.
PROVINCE = re.compile("1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]")
SSN = compile_delimited("[0-9]", r"(?<![0-9]-.)[0-9]{2}([- ])[0-9]{2}\1[0-9]{4}(?!-[0-9])")
BARE_SSN = compile_delimited("[0-9]", "[0-9]{8}")
# HMRC NIM39110: letters that are never used, prefixes that are never assigned.
NINO_DIGITS = re.compile(r"[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D](?![A-Za-z0-9])")
NINO_PREFIX = re.compile(r"(?<![A-Za-z0-9])(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\Z")
SEPARATORS = re.compile(r"[ -]")


def cards(text: str) -> Iterator[Span]:
    if not has_long_number(text):
        return

    def is_card(found: re.Match[str]) -> bool:
        digits = SEPARATORS.sub("", found[0])
        return bool(ISSUERS.fullmatch(digits)) and luhn.is_valid(digits) and _may_be_personal_number(text, found)

    for found in find_accepted(CARD, text, is_card):
        yield Span(PiiKind.CARD, found.start(), found.end(), "card:luhn")


def ibans(text: str) -> Iterator[Span]:
    for digits in IBAN_CHECK.finditer(text):
        found = IBAN.match(text, digits.start() - 2)
        end = _iban_end(found) if found else None
        if found and end is not None:
            yield Span(PiiKind.IBAN, found.start(), end, "iban:mod97")


def national_ids(text: str) -> Iterator[Span]:
    for found in NINO_DIGITS.finditer(text):
        prefix = NINO_PREFIX.search(text[max(0, found.start() - 4) : found.start()])
        if prefix:
            start = found.start() - len(prefix[0])
            yield Span(PiiKind.NATIONAL_ID, start, found.end(), "gb:nino")
    if not has_long_number(text):
        return
    for found in find_accepted(RESIDENT_ID, text, lambda match: _is_resident_id(match[0].upper())):
        yield Span(PiiKind.NATIONAL_ID, found.start(), found.end(), "cn:resident_id")
    for found in find_accepted(SSN, text, lambda match: ssn.is_valid(SEPARATORS.sub("", match[0]))):
        if _may_be_personal_number(text, found):
            yield Span(PiiKind.NATIONAL_ID, found.start(), found.end(), "us:ssn")
    for found in BARE_SSN.finditer(text):
        if topic_before(text, found.start()) is Topic.NATIONAL_ID and ssn.is_valid(found[0]):
            yield Span(PiiKind.NATIONAL_ID, found.start(), found.end(), "us:ssn")


def _is_resident_id(number: str) -> bool:
    """Return whether the number is valid by GB 11643. The library would also require a county of the birth year, but
    numbers are assigned later.
    """
    if not PROVINCE.match(number) or ric.calc_check_digit(number) != number[-1]:
        return False
    try:
        ric.get_birth_date(number)
    except ValidationError:
        return False
    return True


def _iban_end(found: re.Match[str]) -> int | None:
    """Return the end of the IBAN that begins here; the next words may look like more of it."""
    places = [found.start() + place for place, character in enumerate(found[0]) if character not in " -"]
    length = _iban_length(found[0][:2].upper())
    if not 0 < length <= len(places):
        return None
    end = places[length - 1] + 1
    touching = found.string[end : end + 1]
    if touching.isascii() and touching.isalnum():
        return None
    return end if iban.is_valid(SEPARATORS.sub("", found.string[found.start() : end])) else None


@cache
def _iban_length(country: str) -> int:
    """Return the number of characters of an IBAN of this country, 0 if it has none."""
    ((_, known),) = numdb.get("iban").info(country)[:1]
    return 4 + sum(map(int, BBAN_LENGTH.findall(known["bban"]))) if "bban" in known else 0


def _may_be_personal_number(text: str, found: re.Match[str]) -> bool:
    """Return False if the words before the number name an order, a version or the like."""
    return topic_before(text, found.start()) is not Topic.OTHER
