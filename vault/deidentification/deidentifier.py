"""De-identification of the texts of a memory about a person. Pure, but for the detector that it is given."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from governance.privacy.pii.addresses import find_addresses, find_unsure_addresses
from governance.privacy.pii.dates import Date, find_birth_dates, find_dates
from governance.privacy.pii.detector import Detector
from governance.privacy.pii.identifiers import Identifier, merge_identifiers, replace_identifiers
from governance.privacy.pii.spelling import fold
from governance.vocabulary import PersonalKind, PiiKind
from vault.deidentification.called_names import find_unsure_names
from vault.deidentification.name_words import FRIENDS, KIN, NO_HAN_NAMES
from vault.deidentification.names import NameFinder, find_titled_names, fold_letters, make_name_forms, unite_name_forms
from vault.deidentification.relations import find_relations
from vault.deidentification.scripts import find_other_scripts
from vault.lexicon.entities import find_entities
from vault.lexicon.names import AROUND_NAMES, DOUBLE_SURNAMES, SURNAMES

VERSION = "people/2"
FURTHEST_ZONE = timedelta(hours=14)  # of a local midnight from that of UTC
LONGEST_PART = 400  # characters in which names are looked for at once
_OF_A_STATE = (
    "ni|nino|national insurance|nhs|pesel|nif|nie|dni|bsn|cpf|nir|egn|cnp|oib|sin|tfn|pps|idnr|steuer-?id|personnummer"
    "|codice fiscale|hetu|fødselsnummer|curp|rut|aadhaar|pan|nric|hkid|amka|cpr"
)
NUMBER_WORD = re.compile(
    r"\b(?:account|member(?:ship)?|patient|customer|client|employee|student|policy|case|chart|record|mrn|insurance"
    r"|licen[cs]e|plate|passport|ids?|identity|registration|certificate|visa|badge|card|reference|vin|imei"
    rf"|social security|ssn|tax|medicare|dea|npi|{_OF_A_STATE})(?:['’]s)?"
    r"(?:\s(?:number|no|num|nr|id|code|card|plate|is|was))*\.?\s?[:#=(]?\s?(?:is\s|was\s)?#?"
    r"(?P<number>(?-i:[A-Z0-9](?:[A-Z0-9./-]| (?=[0-9]|[A-Z](?![A-Za-z]))){3,24}[A-Z0-9](?![A-Za-z0-9])))"
    r"|(?:病历|病历号|病案|住院|门诊|医保|社保|学|工|会员|客户|驾照|护照|證件|证件|身份证|身分證|准考证|车牌|車牌|档案|保单)"
    r"(?:号|號|号码|號碼|证号|编号)?(?:是|为|：|:)?\s?(?P<number2>[A-Z0-9\u4e00-\u9fff]?[A-Z0-9·-]{4,24})(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_HAN = "\u4e00-\u9fff"
# The last digits of a number, and the name of an account.
_HAN_DIGITS = "0-9〇○零一二三四五六七八九"
LAST_DIGITS = re.compile(
    rf"(?:尾号|尾號|尾数|尾數|[后後末最]{{1,2}}[三四五六34567]位(?:数字|數字|数|號码|号码)?)(?:都|就)?(?:是|为|為|：|:)?\s?(?P<han>[{_HAN_DIGITS}]{{3,8}})"
    r"|\b(?:last|final|first) (?:three|four|five|six|[3-6])(?: (?:digits?|numbers?|characters?))?"
    r"(?: (?:of|on|in) (?:\w+ ){0,3}\w+)?(?:,| (?:are|is|was|were)|:)? #?(?P<last>[0-9]{3,8})(?![0-9])"
    r"|\b(?:card|account|phone|number|id|passport|licen[cs]e|ssn|policy|iban|mobile|cell)\b(?: no\.)?[^.!?\n0-9]{0,24}?"
    r"\b(?:end(?:s|ed|ing)?|finish(?:es|ing))(?: (?:in|with|on))? #?(?P<ending>[0-9]{2,8})(?![0-9])"
    r"|(?:(?<=[*•…][*•…])|(?<=xxx))[ -]?(?P<hidden>[0-9]{3,6})(?![0-9])",
    re.IGNORECASE,
)
ACCOUNT = re.compile(
    r"(?:微信号?|微信號|账号|帳號|用户名|用戶名|[qQ]{2}号?|抖音号?|小红书号?)(?:是|为|：|:|叫)?\s?(?P<account>[A-Za-z0-9][A-Za-z0-9_.-]{3,40})"
    r"|\b(?i:user ?name|login(?: name)?|screen ?name|handle|user id|wechat(?: id)?|skype(?: id)?)"
    r"(?: is|:| =)? ?(?P<account2>@[A-Za-z0-9_.-]{2,40}|(?<=[s:=] )[A-Za-z0-9_.-]*[0-9_][A-Za-z0-9_.-]{2,40})"
)
# Words that may hide a name: with digits or low lines, letter by letter, and in a Chinese text three syllables of it.
HANDLE = re.compile(
    r"(?<![A-Za-z0-9_@])(?:[A-Za-z]{3,30}[0-9]{2,12}|[A-Za-z][A-Za-z0-9]{0,30}(?:_[A-Za-z0-9]{1,30}){1,9})(?![A-Za-z0-9_])"
)
LETTER_DIGIT = re.compile(
    r"(?<![\w@$.])(?=[A-Za-z013457@$]{4,40}(?![\w@$]))[A-Za-z]{1,20}[013457@$][A-Za-z]{1,20}(?![\w@$])"
)
LOW_NAMED = re.compile(
    rf"(?:(?<![a-z])(?i:my|our|his|her|their) (?:{KIN}|{FRIENDS}|carer|nurse|cleaner|driver|lawyer)|\[;{{8}}\]),? "
    r"(?!(?:and|who|that|which|also|just|never|still|often|now|then|with|for|from|will|has|had|was|were|are|did|does|can"
    r"|would|could|should|but|who|whose|left|went|came|got|said|told|made|took|gave|found|felt|ran|saw|sat|the|one|too"
    r"|both|here|there|really|always|all|loved|not|are|is|in|on|at|to)(?![a-z]))"
    r"(?P<low>[a-z]{3,14})(?<!ed|es|ly)(?<!ing)(?=,| (?:is|was|has|had|and|who|will)(?![a-z]))"
    r"|(?<![a-z])(?:named|called|nicknamed) (?!the|it|him|her|them|me|us|you|for|off|back|and|about|after)"
    r"(?P<low2>[a-z]{3,14})(?![a-z])"
)
INITIALS = re.compile(
    r"(?<![A-Za-z.])(?!U\.[SK]\.|D\.C\.|P\.S\.|R\.I\.P\.|A\.[IMD]\.|P\.M\.)[A-Z]\.(?:[A-Z]\.){1,3}(?![A-Za-z])"
)
SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?P<by>[ .*·_-])[^\W\d_](?:(?P=by)[^\W\d_]){2,40}(?![^\W_])")
_SYLLABLE = (
    "(?:(?:[zcs]h|[bpmfdtnlgkhjqxrzcsyw])(?:iang|iong|uang|ang|eng|ing|ong|ian|iao|uai|uan|ai|ei|ao|ou|an|en|in|un|ia|ie"
    "|iu|ua|uo|ui|ue|ve|a|o|e|i|u|v)|ang|ai|ao|an|ou|en|er|a|e|o)"
)
HAN_LETTER = re.compile(f"[{_HAN}]")
PINYIN = re.compile(rf"(?<![A-Za-z])(?=[a-z]{{8,18}}(?![A-Za-z])){_SYLLABLE}{{3}}(?![A-Za-z])")
# A number right after what was replaced, as the door after an address.
BESIDE_PLACEHOLDER = re.compile(
    rf"(?<=\])[ ,，]{{0,2}}(?P<beside>[{_HAN_DIGITS}]{{2,6}})(?![{_HAN_DIGITS}年月日号點点%.:])"
)
_HAN_ONLY = _HAN_DIGITS.removeprefix("0-9")
LONG_NUMBER = re.compile(
    r"[0-9](?<![A-Za-z0-9].)(?:[ ./-]?[0-9]){5,24}(?![A-Za-z0-9])"
    rf"|[{_HAN_ONLY}](?<![{_HAN_ONLY}].)[{_HAN_ONLY}]{{6,24}}",
    re.DOTALL,
)
PART = re.compile(r"[^\n.!?。！？]{1,400}[\n.!?。！？]*|[\n.!?。！？]+")
_LAST_AROUND = "".join(dict.fromkeys(word[-1] for word in AROUND_NAMES.split("|")))
LEFT_HAN_NAME = re.compile(
    rf"(?:(?<![{_HAN}])|(?<=[{_LAST_AROUND}了着过們们位个個名]))(?!{NO_HAN_NAMES})(?:{DOUBLE_SURNAMES}|[{SURNAMES}])"
    rf"(?:[{_HAN}]{{1,2}}?(?={AROUND_NAMES}|[^{_HAN}]|$)|[{_HAN}]{{2}})"
)
PLACEHOLDER = re.compile(rf"\[({'|'.join([*PersonalKind, *PiiKind])})\]")


@dataclass(frozen=True)
class Undecided:
    """Text that may tell who a person is, and stays: a name (all words of a script without rules), a number or a date.

    start, end: of the resulting text.
    """

    kind: str
    text: str = field(repr=False)
    start: int
    end: int


@dataclass(frozen=True)
class Mark:
    """The range of a placeholder in a resulting text. kind: what it stands for."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class PersonFacts:
    """The known facts of a data subject.

    names: its own; speakers: of its memories, who may be others; relatives: those beside it; births: readings of its
    day of birth as (year, month, day).
    """

    names: tuple[str, ...] = field(default=(), repr=False)
    speakers: tuple[str, ...] = field(default=(), repr=False)
    relatives: tuple[str, ...] = field(default=(), repr=False)
    births: frozenset[tuple[int, int, int]] = field(default=frozenset(), repr=False)


class NamedPeople:
    """Finds what is known of all data subjects of a pack: names, and full dates of birth."""

    def __init__(self, people: Iterable[PersonFacts] = ()) -> None:
        everybody = list(people)
        self.births = frozenset[tuple[int, int, int]]().union(*(person.births for person in everybody))
        own = (make_name_forms([*person.names, *person.speakers]) for person in everybody)
        self._names = NameFinder(unite_name_forms(own))
        relatives = unite_name_forms(make_name_forms(person.relatives) for person in everybody)
        self._relatives = NameFinder(relatives, PersonalKind.RELATIVE, "name:relative")

    def find(self, text: str) -> Iterator[Identifier]:
        """Yield the ranges of a folded text."""
        yield from self._names.find(text)
        yield from self._relatives.find(text)
        if self.births:
            for date in find_dates(text):
                if has_full_date(date, self.births):
                    yield Identifier(PersonalKind.BIRTH_DATE, date.start, date.end, "birth:known")

    def are_in(self, text: str) -> bool:
        """Return whether a text has something known of them."""
        return any(True for _ in self.find(fold(text).text))


class Deidentifier:
    """Clears texts of names, relations, addresses, birth dates and numbers.

    person: whom the texts are about; without facts they are about nobody. everybody: the other people of the pack, and
    the person.
    """

    def __init__(self, person: PersonFacts, detector: Detector, everybody: NamedPeople | None = None) -> None:
        self.person, self._detector = person, detector
        self._own = NameFinder(make_name_forms(person.names))
        self._everybody = everybody or NamedPeople([person])

    def clear(self, text: str) -> str:
        """Return the text as it leaves. Raises DetectorFailed."""
        return replace_identifiers(text, merge_identifiers(self.find(text)))

    def find(self, text: str) -> list[Identifier]:
        """Return the ranges that tell who the person is; they may overlap. Raises DetectorFailed."""
        if not text.strip():
            return []
        folded = fold(text)
        found = [*self._find(folded.text)]
        moved = [Identifier(each.kind, *folded.original_range(each.start, each.end), each.rule) for each in found]
        spans = self._detector.find(text)
        return moved + [Identifier(span.kind, span.start, span.end, span.rule) for span in spans]

    def is_named(self, text: str) -> bool:
        """Return whether a text has a name of the person itself."""
        return bool(self._own.find(fold(text).text))

    def is_birth(self, at: datetime | None) -> bool:
        """Return whether a time is the day of birth of somebody known, at a place of any time zone."""
        return at is not None and any(day in self._everybody.births for day in _local_days(at))

    def _find(self, text: str) -> Iterator[Identifier]:
        yield from (found for found, _ in find_relations(text))
        text = hide_placeholders(text)
        yield from self._everybody.find(text)
        yield from find_titled_names(text)
        yield from find_numbers(text)
        births = [*self._find_births(text)]
        yield from births
        days = {birth.start: birth.end for birth in births}
        yield from (found for found in find_addresses(text) if found.end > days.get(found.start, 0))

    def _find_births(self, text: str) -> Iterator[Identifier]:
        yield from (found for found, _ in find_birth_dates(text))
        known = self.person.births | self._everybody.births
        if known:
            for date in find_dates(text):
                if is_birth_date(date, self.person.births) or has_full_date(date, self._everybody.births):
                    yield Identifier(PersonalKind.BIRTH_DATE, date.start, date.end, "birth:known")


def find_numbers(text: str) -> Iterator[Identifier]:
    """Yield the numbers that a word before them gives to a person, as of a record or a policy, in any form."""
    for found in NUMBER_WORD.finditer(text):
        name = "number" if found["number"] else "number2"
        if sum(map(str.isdigit, found[name])) >= 3:
            yield Identifier(PersonalKind.NUMBER, *found.span(name), "number:word")
    for pattern in (LAST_DIGITS, ACCOUNT):
        for found in pattern.finditer(text):
            if found.lastgroup:
                yield Identifier(PersonalKind.NUMBER, *found.span(found.lastgroup), "number:word")


def _local_days(at: datetime) -> Iterator[tuple[int, int, int]]:
    """Yield the days that a time belongs to in any time zone, as far as the calendar goes."""
    for shift in (-FURTHEST_ZONE, timedelta(), FURTHEST_ZONE):
        with suppress(OverflowError):
            day = (at + shift).date()
            yield day.year, day.month, day.day


def is_birth_date(date: Date, births: Iterable[tuple[int, int, int]]) -> bool:
    """Return whether a written date, with its year or without, is one of the days of birth."""
    days = {(month, day) for _, month, day in births if month and day}
    return any(
        month and day and ((year, month, day) in births or (not year and (month, day) in days))
        for year, month, day in date.readings
    )


def has_full_date(date: Date, births: frozenset[tuple[int, int, int]]) -> bool:
    """Return whether a written date, with its year, is one of the days of birth."""
    return any(all(reading) and reading in births for reading in date.readings)


def hide_placeholders(text: str) -> str:
    """Return a text of the same length in which no rule reads the words of placeholders."""
    return PLACEHOLDER.sub(lambda found: f"[{';' * (len(found[0]) - 2)}]", text)


def find_marks(text: str) -> tuple[Mark, ...]:
    """Return the placeholders of a cleared text, in order."""
    return tuple(Mark(found[1], found.start(), found.end()) for found in PLACEHOLDER.finditer(text))


def find_undecided(text: str) -> Iterator[Undecided]:
    """Yield what a cleared text still has: names, dates, numbers, parts of addresses.

    All words of scripts without rules are names. Of texts inside each other the longest, kind after kind.
    """
    for kind, ranges in _find_left(hide_placeholders(text)):
        end = 0
        for start, stop in sorted(set(ranges), key=lambda each: (each[0], -each[1])):
            if stop > end:
                yield Undecided(kind, text[start:stop], start, stop)
                end = stop


def _find_left(blank: str) -> Iterator[tuple[str, Iterable[tuple[int, int]]]]:
    """Yield kinds with the ranges of what is left."""
    hidden = [HANDLE, LETTER_DIGIT, SPACED, INITIALS, *((PINYIN,) if HAN_LETTER.search(blank) else ())]
    yield (
        "name",
        chain(
            _find_left_names(blank),
            find_other_scripts(blank),
            (found.span() for pattern in hidden for found in pattern.finditer(blank)),
            (found.span(found.lastgroup) for found in LOW_NAMED.finditer(blank) if found.lastgroup),
        ),
    )
    yield "date", ((date.start, date.end) for date in find_dates(blank) if any(month for _, month, _ in date.readings))
    yield (
        "number",
        chain(
            (found.span() for found in LONG_NUMBER.finditer(blank)),
            (found.span("beside") for found in BESIDE_PLACEHOLDER.finditer(blank)),
        ),
    )
    yield "address", find_unsure_addresses(blank)


def _find_han_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a surname and what follows it, after words beside which names stand."""
    if not text.isascii():
        yield from (found.span() for found in LEFT_HAN_NAME.finditer(text))


def _find_left_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of what may be a name; a whole part of the text if its spelling hides where the name is."""
    folded = fold_letters(text).replace("’", "'")
    for part in PART.finditer(text):
        for name in find_entities(part[0]):
            spelt = fold_letters(name).replace("’", "'")
            start = folded.find(spelt, part.start(), part.end())
            yield (start, start + len(spelt)) if start >= 0 else part.span()
    yield from _find_han_names(text)
    yield from find_unsure_names(text)
