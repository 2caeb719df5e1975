"""Numbers by which states know people: national ids of many countries, passports and driving licences.

A number in a distinctive form needs a valid check digit alone; a plain run of digits needs a word such as "PESEL"
before it too. python-stdnum verifies the check digits of the numbers that it knows.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from governance.privacy.pii.context import Topic, topic_before
from governance.privacy.pii.patterns import find_accepted
from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind

REACH = 60  # characters before a number in which its word stands, in the same sentence
LEAST_DIGITS = 5  # of a passport or licence
_BEFORE, _AFTER = r"(?<![A-Za-z0-9])(?<![0-9][.,/-])", r"(?![A-Za-z0-9])(?![.,/-][0-9])"
# Distinctive forms: the country and its number → pattern.
_FORMS: Mapping[str, str] = {
    "ar.cuit": r"[0-9]{2}-[0-9]{8}-[0-9]",
    "be.nn": r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}[.-][0-9]{2}",
    "br.cpf": r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}",
    "ch.ssn": r"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}",
    "cl.rut": r"(?:[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}|[0-9]{7,8})-[0-9Kk]",
    "cz.rc": r"[0-9]{6}/[0-9]{3,4}",
    "dk.cpr": r"[0-9]{6}-[0-9]{4}",
    "es.dni": r"[0-9]{8}-?[A-HJ-NP-TV-Z]",
    "es.nie": r"[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]",
    "fi.hetu": r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]",
    "fr.nir": r"[1278] ?[0-9]{2} ?[0-9]{2} ?(?:[0-9]{2}|2[AB]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
    "gb.driving_licence": r"[A-Z][A-Z9]{4}[0-9][0156][0-9]{4}[A-Z9]{2}[0-9A-Z][A-Z]{2}(?: ?[0-9]{2})?",
    "hk.hkid": r"[A-Z]{1,2}[0-9]{6}\([0-9A]\)",
    "ie.pps": r"[0-9]{7}[A-W][A-IW]?",
    "in_.aadhaar": r"[2-9][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}",
    "in_.pan": r"[A-Z]{3}P[A-Z][0-9]{4}[A-Z]",
    "it.codicefiscale": r"[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]",
    "kr.rrn": r"[0-9]{6}-[0-9]{7}",
    "lv.pvn": r"[0-9]{6}-[0-9]{5}",
    "mx.curp": r"[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[0-9A-Z][0-9]",
    "my.nric": r"[0-9]{6}-[0-9]{2}-[0-9]{4}",
    "se.personnummer": r"(?:[0-9]{2})?[0-9]{6}[-+][0-9]{4}",
    "sg.nric": r"[STFGM][0-9]{7}[A-Z]",
    "th.pin": r"[0-9]-[0-9]{4}-[0-9]{5}-[0-9]{2}-[0-9]",
    "tw.id": r"[A-Z][1289][0-9]{8}",
}
# Plain runs, which need a word before them: number of characters → modules of python-stdnum.
_PLAIN: Mapping[int, tuple[str, ...]] = {
    8: ("ie.pps", "au.tfn", "il.idnr"),
    9: ("nl.bsn", "ca.sin", "us.itin", "pt.nif", "au.tfn", "il.idnr", "cz.rc", "sk.rc", "ie.pps"),
    10: ("gb.nhs", "bg.egn", "cz.rc", "sk.rc", "se.personnummer", "dk.cpr", "ua.rntrc", "za.tin"),
    11: (
        *("pl.pesel", "de.idnr", "no.fodselsnummer", "be.nn", "br.cpf", "hr.oib", "tr.tckimlik", "gr.amka"),
        *("ar.cuit", "ee.ik", "lt.asmens", "lv.pvn"),
    ),
    12: ("in_.aadhaar", "jp.in_", "se.personnummer", "my.nric"),
    13: ("ro.cnp", "za.idnr", "kr.rrn", "th.pin", "ch.ssn", "fr.nif"),
    15: ("fr.nir",),
}
_ID_WORDS = (
    r"\b(?:ids?|identity|identification|national|personal (?:number|code)|social (?:security|insurance)|tax(?:payer)?"
    r"|insurance|citizen|resident|fiscal|health (?:card|number)|ssn|sin|nino|nhs|tfn|bsn|pesel|egn|cnp|oib|cpf|curp|rut"
    r"|nir|nif|nie|dni|amka|itin|idnr|pps|cpr|jmbg|aadhaar|my ?number|personnummer|fødselsnummer|steuer"
    r"|kimlik)(?![a-z])"
    "|身份|身分|证件|證件|社保|税号|稅號|個人番号|マイナンバー|주민"
)
_PASSPORT_WORDS = (
    r"\b(?:passports?|passeport|passaporto|pasaporte|paszport|reisepass)(?![a-z])|护照|護照|旅券|通行证|通行證"
)
_LICENCE_WORDS = (
    r"\b(?:driv(?:er|ing|ers|er['’]s|ers['’])[ -](?:licen[cs]e|permit)|permis de conduire|führerschein"
    r"|patente|prawo jazdy|permiso de conducir)(?![a-z])|驾照|駕照|驾驶证|駕駛證|驾驶执照|駕駛執照"
)
PIECE = re.compile(r"[0-9]{2}[A-Z0-9 ./+-]{1,2}[0-9]{2}|[A-Z]{5}[0-9]{4}[A-Z]")  # each of these numbers has one
FORM = re.compile(f"{_BEFORE}(?:{'|'.join(_FORMS.values())}){_AFTER}")
FORM_START = re.compile(r"[A-Z0-9](?<![A-Za-z0-9].)(?<![0-9][.,/-].)", re.DOTALL)  # each form begins with one of these
RUN = re.compile(rf"[0-9](?<![A-Za-z0-9].)(?<![0-9][.,/-].)(?:[ .-]?[0-9]){{6,14}}[A-W]{{0,2}}{_AFTER}", re.DOTALL)
PAPER = re.compile(
    r"[A-Z0-9](?<![A-Za-z0-9].)(?:[A-Z0-9]{0,3}[ -]?[0-9]{5,12}[A-Z]{0,2}|[A-Z0-9]{5,17}|[A-Z]?[0-9]{2,4}"
    r"(?:[ -][0-9]{1,6}){2,5})"
    r"(?![A-Za-z0-9])",
    re.DOTALL,
)
WORDS = re.compile(
    f"(?P<national_id>{_ID_WORDS})|(?P<passport>{_PASSPORT_WORDS})|(?P<licence>{_LICENCE_WORDS})", re.IGNORECASE
)
DAY = re.compile(r"(?:19|20)[0-9]{2}[-./ ]?[01]?[0-9][-./ ]?[0-3]?[0-9]")
SEPARATORS = re.compile("[ .-]")
_ENDS = "\n。！？；"


def state_numbers(text: str) -> Iterator[Span]:
    if not PIECE.search(text):
        return
    end = 0
    for start in FORM_START.finditer(text):
        found = FORM.match(text, start.start()) if start.start() >= end else None
        if found and _is_valid_form(found):
            yield Span(PiiKind.NATIONAL_ID, found.start(), found.end(), "form:check")
            end = found.end()
    if not (RUN.search(text) or PAPER.search(text)) or not WORDS.search(text):  # the words take the longest
        return
    for found in find_accepted(RUN, text, _is_introduced_run):
        yield Span(PiiKind.NATIONAL_ID, found.start(), found.end(), "plain:check")
    for found in find_accepted(PAPER, text, _is_paper):
        yield Span(PiiKind.NATIONAL_ID, found.start(), found.end(), "paper:word")


def word_before(text: str, start: int) -> str | None:
    """Return the kind of the last word for a number in the REACH characters before it, in the same sentence."""
    earliest = max(0, start - REACH)
    sentence = max(*(text.rfind(end, earliest, start) for end in _ENDS), _full_stop_before(text, earliest, start))
    found = [match.lastgroup for match in WORDS.finditer(text, max(earliest, sentence), start)]
    return found[-1] if found else None


def _full_stop_before(text: str, earliest: int, start: int) -> int:
    """Return the place of the last full stop that ends a sentence, -1 if there is none: `no. 7` has none."""
    found = text.rfind(". ", earliest, start)
    return -1 if text[max(0, found - 3) : found].lower().strip().endswith(("no", "nr", "num")) else found


def is_valid(rule: str, number: str) -> bool:
    """Return whether a number without separators has valid check digits. rule: of _FORMS, or a module of stdnum."""
    own = _OWN_CHECKS.get(rule)
    return own(number) if own else bool(_check_of(rule)(number))


def _is_valid_form(found: re.Match[str]) -> bool:
    """Return whether a number is valid in any country that has this form."""
    number = found[0]
    is_known = any(is_valid(rule, number) for rule in _FORMS if _form_of(rule).fullmatch(number))
    return is_known and topic_before(found.string, found.start()) is not Topic.OTHER


@cache
def _form_of(rule: str) -> re.Pattern[str]:
    return re.compile(_FORMS[rule])


def _is_introduced_run(found: re.Match[str]) -> bool:
    compact = SEPARATORS.sub("", found[0])
    if not any(is_valid(rule, compact) for rule in _PLAIN.get(len(compact), ())):
        return False
    return word_before(found.string, found.start()) == "national_id"


def _is_paper(found: re.Match[str]) -> bool:
    """Return whether a run is the number of a passport or licence: by the word before it, as few have a check digit."""
    number = found[0]
    if sum(map(str.isdigit, number)) < LEAST_DIGITS or DAY.fullmatch(number):
        return False
    return word_before(found.string, found.start()) in {"passport", "licence"}


@cache
def _check_of(rule: str) -> Callable[[str], bool]:
    checks: Callable[[str], bool] = importlib.import_module(f"stdnum.{rule}").is_valid
    return checks


def _is_hong_kong_id(number: str) -> bool:
    letters, rest = number[: number.index("(") - 6], number[number.index("(") - 6 :]
    values = [36] * (2 - len(letters)) + [ord(letter) - 55 for letter in letters] + [int(digit) for digit in rest[:6]]
    total = sum(value * weight for value, weight in zip(values, range(9, 1, -1), strict=True))
    return "0123456789A"[-total % 11] == rest[7]


def _is_singapore_id(number: str) -> bool:
    total = sum(int(digit) * weight for digit, weight in zip(number[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(number[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "KLJNPQRTUWX"}.get(number[0], "XWUTRQPNMLK")
    return letters[10 - total % 11 if number[0] == "M" else total % 11] == number[8]


def _is_taiwan_id(number: str) -> bool:
    region = 10 + "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0])
    digits = [region // 10, region % 10, *(int(digit) for digit in number[1:])]
    return sum(d * w for d, w in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def _is_british_licence(number: str) -> bool:
    """Return whether the birth date in a licence exists: it has a check character, whose rule is not published."""
    digits = number[5:11]
    month, day = int(digits[1:3]) % 50, int(digits[3:5])
    return digits.isdigit() and 1 <= month <= 12 and 1 <= day <= 31


_OWN_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "gb.driving_licence": _is_british_licence,
    "hk.hkid": _is_hong_kong_id,
    "sg.nric": _is_singapore_id,
    "tw.id": _is_taiwan_id,
}
