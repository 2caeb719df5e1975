"""Names of people in texts: every form of names that are known, and names after titles. Pure; English and Chinese.

A known name gives its parts: given and family names, their short forms, initials, and with Chinese names what people
call someone (王先生, 小王, 阿明). Linear in the length of a text: one pattern of whole words, and steps to their sides.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from governance.privacy.pii.identifiers import Identifier, merge_identifiers
from governance.vocabulary import PersonalKind
from vault.deidentification.name_words import (
    ALSO_WORDS,
    HAN_TITLES,
    LATIN_TITLES,
    MORE_SURNAMES,
    PARTICLES,
    ROLES,
    SHORT_FORMS,
    SURE_HAN_TITLES,
    SURE_TITLES,
)
from vault.deidentification.scripts import find_other_scripts
from vault.lexicon.names import DOUBLE_SURNAMES, ORDINARY, SURNAMES
from vault.lexicon.words import DULL_WORDS, STOP_WORDS

_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
MOST_NAMES = 200  # known names of one person
LONGEST_NAME = 100
_HAN = "\u3400-\u9fff"
ALL_SURNAMES = "".join(dict.fromkeys(SURNAMES + MORE_SURNAMES))
_SEPARATORS = re.compile(r"[\s·•・‧,，、/|()（）\[\]\"“”<>@._-]+")
_HAN_NAME = re.compile(f"[{_HAN}]+")
_LATIN_PART = re.compile("[a-z\u00df-\u024f][a-z\u00df-\u024f'’]*")
_DOUBLE = re.compile(DOUBLE_SURNAMES)
_IS_REFERENCE = re.compile("[0-9]")
_ALSO_WORDS = ALSO_WORDS | STOP_WORDS | ORDINARY | DULL_WORDS
_NO_PARTS = ROLES | frozenset(LATIN_TITLES.split("|"))
_SURE = re.compile(
    rf"(?<![A-Za-z])(?:{SURE_TITLES}|{SURE_TITLES.upper()})\.?\s+(?=[A-Z\u00c0-\u00de\u0100-\u017f])"
    rf"(?P<name>[A-Z\u00c0-\u00de\u0100-\u017f][\w'’-]{{0,24}}\.?(?:\s(?:(?:van|von|de|der|la|del|di"
    rf"|da) ){{0,2}}[A-Z\u00c0-\u00de\u0100-\u017f][\w'’-]{{1,24}}){{0,2}})"
)
_SURE_HAN = re.compile(
    f"(?:{DOUBLE_SURNAMES}|[{ALL_SURNAMES}])(?:[{_HAN}]{{1,2}}?(?=先生|女士|小姐|太太|夫人|同学|同學))?(?:{SURE_HAN_TITLES})(?!姐|们|們)"
)
_LEFT_TITLE = re.compile(rf"(?<![a-z0-9])(?:{LATIN_TITLES})\.?\s{{1,2}}\Z", re.IGNORECASE)
_LEFT_INITIAL = re.compile(r"(?<![A-Za-z0-9])(?:(?:[A-Z]\.[\s-]?){1,3}(?:[A-Z]\s)?|[A-Z]\.?\s?)\Z")
_RIGHT_INITIAL = re.compile(r"(?:\s[A-Z](?:\.|(?![\w'’]))|,\s[A-Z]\.)(?:[\s-]?[A-Z]\.){0,2}(?!\s[a-z]{2}(?![a-z]))")
# Words that hide a name: a handle, a word with digits or low lines, and letters with something between each two.
_IN_HANDLE = "A-Za-z0-9_\u00c0-\u024f"
_HANDLE = re.compile(
    rf"(?<![{_IN_HANDLE}@#])(?:[@#](?=[{_IN_HANDLE}])|(?=[{_IN_HANDLE}.-]{{0,40}}[_0-9]))[{_IN_HANDLE}.-]*[{_IN_HANDLE}]"
)
_PIECE = re.compile("[A-Z]?[a-z\u00df-\u024f]+|[A-Z]+")
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?P<by>[ .*·_-])[^\W\d_](?:(?P=by)[^\W\d_]){1,40}(?![^\W_])")
_SPACED_HAN = re.compile(f"[{_HAN}](?:[ \u3000·.*_-][{_HAN}])+")
_PARTICLE = (
    "(?:[Vv]an|[Vv]on|[Dd]e|[Dd]er|[Dd]en|[Dd]el|[Dd]i|[Dd]a|[Dd]os|[Dd]u|[Ll]a|[Zz]u|[Tt]en|[Tt]er|[Bb]in|[Aa]l)"
)
_LEFT_PARTICLE = re.compile(rf"(?<![A-Za-z])(?:{_PARTICLE}\s){{1,3}}\Z")
_RIGHT_PARTICLE = re.compile(r"\s(?:van|von|de)(?=[\s,]*(?:[.,;:!?\n]|\Z))")
_SUFFIX = re.compile(r",? (?:Jr|Sr|II|III|IV|MD|PhD|DDS|DVM)\b\.?")
_BETWEEN = re.compile(
    r"(?:[ ,.\-·•・‧&]{1,3}|\s(?:[A-Z\u00c0-\u00de\u0100-\u017f][\w'’.-]{0,24}|van|von|de|der|la|del|di|da|zu"
    r"|den|ten|bin)\s){1,2}"
)
_HAN_SUFFIX = re.compile(f"(?:{HAN_TITLES})")


@dataclass(frozen=True)
class NameForms:
    """The forms of the known names of people. latin: parts, folded; capitalised: parts that are words too."""

    names: tuple[str, ...] = field(default=(), repr=False)
    latin: frozenset[str] = field(default=frozenset(), repr=False)
    joined: frozenset[str] = field(default=frozenset(), repr=False)
    han: frozenset[str] = field(default=frozenset(), repr=False)
    initials: frozenset[str] = field(default=frozenset(), repr=False)
    references: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def is_empty(self) -> bool:
        return not (self.latin or self.han or self.references)


def make_name_forms(names: Iterable[str]) -> NameForms:
    """Return the forms of these names. A name with digits is a reference, which is found as it is written."""
    latin, joined, han, initials, references = set[str](), set[str](), set[str](), set[str](), set[str]()
    taken = list(dict.fromkeys(name.strip()[:LONGEST_NAME] for name in names if name.strip()))[:MOST_NAMES]
    for name in taken:
        folded = fold_letters(name)
        if len(folded) > 1:
            references.add(folded)
        if _IS_REFERENCE.search(name.partition("@")[0]):
            continue
        for run in _HAN_NAME.findall(name):
            han.update(_han_forms(run))
        split = _SEPARATORS.split(folded.partition("@")[0])
        references.update(part for part in split if len(part) > 1 and next(find_other_scripts(part), None))
        parts = [part for part in split if _LATIN_PART.fullmatch(part)]
        parts = [part.rstrip("'’") for part in parts if part not in _NO_PARTS or len(parts) == 1]
        words = [part for part in parts if len(part) > 1 and part not in PARTICLES]
        latin.update(words or parts)
        latin.update(part for part in parts[-1:] if len(part) > 1)
        for part in words[:-1] or words:
            latin.update(SHORT_FORMS.get(part, ()))
        if len(words) > 1:
            first = "".join(word[0] for word in words[:-1])
            joined.update({words[0] + words[-1], words[-1] + words[0], words[0][0] + words[-1]})
            joined.update({first + words[-1], words[-1] + first})
            initials.add(f"{words[0][0]} {words[-1][0]}".upper())
        latin.update(_respell(name))
    return NameForms(tuple(taken), *map(frozenset, (latin, joined, han, initials, references)))


def _respell(name: str) -> Iterator[str]:
    """Yield the longer parts of a name as they are written without German letters: `mueller`, `weiss`, `weis`."""
    written = unicodedata.normalize("NFC", name).lower()
    for spelt in (written.translate(_GERMAN), written.replace("ss", "s")):
        if spelt != written:
            parts = _SEPARATORS.split(fold_letters(spelt))
            yield from (part for part in parts if len(part) > 3 and _LATIN_PART.fullmatch(part))


def unite_name_forms(each: Iterable[NameForms]) -> NameForms:
    """Return the forms of the names of several people."""
    every = list(each)
    return NameForms(
        tuple(name for forms in every for name in forms.names),
        *(
            frozenset[str]().union(*(getattr(forms, name) for forms in every))
            for name in ("latin", "joined", "han", "initials", "references")
        ),
    )


class NameFinder:
    """Finds known names in texts. Build it once for all texts of a pack."""

    def __init__(self, forms: NameForms, kind: PersonalKind = PersonalKind.PERSON, rule: str = "name:known") -> None:
        self.forms, self._kind, self._rule = forms, kind, rule
        self._words = _compile(
            sorted(forms.latin, key=len, reverse=True), r"(?<![a-z0-9])(?:{})(?=(?:s|'s|’s)?(?![a-z0-9]))"
        )
        self._joined = _compile(
            sorted(forms.joined, key=len, reverse=True), r"(?<![a-z0-9])(?:{})[0-9]{{0,4}}(?![a-z0-9])"
        )
        self._handles = forms.latin | forms.joined
        long = (part for part in forms.latin if len(part) > 3 and part not in _ALSO_WORDS)
        self._inside = _compile(sorted(long, key=len, reverse=True), "{}")
        self._references = _compile(sorted(forms.references, key=len, reverse=True), r"{}")
        words, single = (sorted(h for h in forms.han if (len(h) == 1) is is_one) for is_one in (False, True))
        self._han = _compile(sorted(words, key=len, reverse=True), "(?:{})")
        self._single = _compile(single, f"(?<![{_HAN}])(?:{{}})(?![{_HAN}])")
        pairs = sorted(forms.initials)
        made = "|".join(
            rf"{first}\.[\s-]?(?:[A-Z]\.[\s-]?){{0,2}}{last}\.?" for first, last in (pair.split() for pair in pairs)
        )
        self._initials = re.compile(rf"(?<![A-Za-z0-9.])(?:{made})(?![A-Za-z0-9])") if pairs else None

    def find(self, text: str) -> list[Identifier]:
        """Return the ranges of known names, in order, with titles and initials beside them."""
        if self.forms.is_empty:
            return []
        found = [Identifier(self._kind, start, end, self._rule) for start, end in self._ranges(text)]
        return self._join(text, merge_identifiers(found))

    def _ranges(self, text: str) -> Iterator[tuple[int, int]]:
        folded = fold_letters(text)
        if self._words:
            for found in self._words.finditer(folded):
                if self._may_be_name(text, found[0], found.start(), found.end()):
                    yield self._widen(text, found.start(), found.end())
        if self._joined:
            yield from (found.span() for found in self._joined.finditer(folded))
        if self._references:
            for found in self._references.finditer(folded):
                if _is_whole_word(folded, found.start(), found.end()):
                    yield found.span()
        yield from self._find_handles(text)
        yield from self._find_spaced(text)
        if self._initials:
            yield from (found.span() for found in self._initials.finditer(text))
        if self._single:
            yield from (found.span() for found in self._single.finditer(text))
        if self._han:
            for found in self._han.finditer(text):
                title = _HAN_SUFFIX.match(text, found.end())
                yield found.start(), title.end() if title and len(title[0]) > 1 else found.end()

    def _find_handles(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the handles with a part of a name: `@hannah_weiss61`, `weissh1961`."""
        for found in _HANDLE.finditer(text):
            pieces = [fold_letters(piece) for piece in _PIECE.findall(found[0])]
            whole = "".join(pieces)
            parts = {piece for piece in pieces if len(piece) > 2 and piece not in _ALSO_WORDS}
            if parts & self._handles or (self._inside and self._inside.search(whole)):
                yield found.span()

    def _find_spaced(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the ranges of names that are written letter by letter: `W e i s s`, 王 小 明."""
        for found in _SPACED.finditer(text):
            if fold_letters(found[0])[::2] in self._handles:
                yield found.span()
        if self._han and not text.isascii():
            for found in _SPACED_HAN.finditer(text):
                for name in self._han.finditer(found[0][::2]):
                    yield found.start() + 2 * name.start(), found.start() + 2 * name.end() - 1

    def _may_be_name(self, text: str, part: str, start: int, end: int) -> bool:
        if text[start].isupper():
            return True
        is_long = len(part) > (4 if text[end : end + 1] == "s" else 2)
        return is_long and part not in _ALSO_WORDS

    def _widen(self, text: str, start: int, end: int) -> tuple[int, int]:
        for pattern in (_LEFT_INITIAL, _LEFT_TITLE):
            found = pattern.search(text, max(0, start - 14), start)
            if found and not (pattern is _LEFT_INITIAL and found[0].strip() in {"I", "A"}):
                start = found.start()
        if found := _LEFT_PARTICLE.search(text, max(0, start - 14), start):
            start = found.start()
        if found := _RIGHT_PARTICLE.match(text, end):
            end = found.end()
        if found := _RIGHT_INITIAL.match(text, end):
            end = end if found[0].strip() in {"I", "A"} else found.end()
        if found := _SUFFIX.match(text, end):
            end = found.end()
        return start, end

    def _join(self, text: str, found: list[Identifier]) -> list[Identifier]:
        """Join parts of one name: `Weiss, Hannah`, `Hannah Marie Weiss`."""
        joined = found[:1]
        for last, each in pairwise(found):
            between = text[last.end : each.start]
            if len(between) < 40 and _BETWEEN.fullmatch(between) and "&" not in between and ". " not in between:
                joined[-1] = Identifier(self._kind, joined[-1].start, each.end, self._rule)
            else:
                joined.append(each)
        return joined


def find_titled_names(text: str) -> Iterator[Identifier]:
    """Yield names that a title before or after them shows: `Ms Weiss`, 王女士."""
    for found in _SURE.finditer(text):
        yield Identifier(PersonalKind.PERSON, found.start(), found.end(), "name:title")
    if not text.isascii():
        for found in _SURE_HAN.finditer(text):
            yield Identifier(PersonalKind.PERSON, found.start(), found.end(), "name:title")


def fold_letters(text: str) -> str:
    """Return a text of the same length in small letters without accents."""
    if text.isascii():
        return text.lower()
    return "".join(_fold_letter(character) for character in text)


_PLAIN = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "t", "ß": "s", "ı": "i", "æ": "a", "œ": "o"}


def _fold_letter(character: str) -> str:
    if character < "\u0080":
        return character.lower()
    plain = (
        unicodedata.normalize("NFKD", character)[:1].lower()
        if character < "\u3000" or character > "\uff00"
        else character
    )
    return _PLAIN.get(plain, plain) if len(plain) == 1 else character


def _compile(words: list[str], pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern.format(_join_words(words))) if words else None


def _join_words(words: list[str]) -> str:
    """Return a pattern of these words, the longest first, that reads what words begin with once.

    So a thousand names cost a text little more than a few.
    """
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return _spell_branches(tree)


def _spell_branches(node: dict[str, Any]) -> str:
    branches = []
    for first, below in node.items():
        spelt, rest = first, below
        while len(rest) == 1 and "" not in rest:
            ((character, rest),) = rest.items()
            spelt += character
        if first:
            branches.append(re.escape(spelt) + (_spell_branches(rest) if rest.keys() != {""} else ""))
    pattern = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{pattern}?" if "" in node else pattern


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Return whether a range is no part of a longer Latin word or number."""
    before, after = text[start - 1 : start], text[end : end + 1]
    ends_word = text[end - 1].isascii() and text[end - 1].isalnum() and after.isascii() and after.isalnum()
    begins_word = text[start].isascii() and text[start].isalnum() and before.isascii() and before.isalnum()
    return not (begins_word or (ends_word and not text[end : end + 2].startswith("s")))


def _han_forms(name: str) -> Iterator[str]:
    """Yield what a Chinese name is written as, besides itself."""
    yield name
    if len(name) < 2:
        return
    size = 2 if _DOUBLE.match(name) and len(name) > 2 else 1
    surname, given = name[:size], name[size:]
    if len(name) > 4 or (len(name) == 4 and size == 1 and surname not in ALL_SURNAMES):
        return
    yield from (surname, given)
    yield from (f"{surname}{title}" for title in HAN_TITLES.split("|"))
    yield from (f"{before}{surname}" for before in "小老")
    last = given[-1]
    yield from (f"阿{last}", f"小{last}", last * 2, f"{last}哥", f"{last}姐")
