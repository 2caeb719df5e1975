"""Names that the texts about a person state: introductions, fields of metadata, and the rest of a known name."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vault.deidentification.names import NameFinder, make_name_forms
from vault.lexicon.entities import entities
from vault.lexicon.names import AROUND_NAMES, ORDINARY
from vault.lexicon.words import DULL_WORDS, QUESTION_WORDS, STOP_WORDS
from vault.vocabulary import MessageRole

MOST_TEXT = 20_000  # characters of one text that are read for names
LONGEST = 60
_FIELDS = """
name names full_name fullname first_name firstname last_name lastname given_name family_name surname
middle_name maiden_name nickname nicknames alias aliases also_known_as display_name username user_name preferred_name
patient client customer 姓名 名字 昵称 別名 别名 小名 曾用名
"""
NAME_FIELDS = frozenset(_FIELDS.split())
_CAP = "[A-Z\u00c0-\u00de\u0100-\u017f][\\w'’-]{0,24}"
_NAME = f"(?P<name>{_CAP}(?:\\s(?:{_CAP}|[A-Z]\\.|van|von|de|der|la)){{0,3}})"
_WHICH = r"(?:(?:full|real|first|last|given|family|maiden|middle|legal|birth|pen)\s)?(?:nick)?"
STATED = re.compile(
    r"(?<![A-Za-z])(?:(?i:(?:(?:my|his|her|their|the (?:patient|client)['’]s)\s"
    + _WHICH
    + r"name(?:['’]s|\sis|\swas|:))"
    r"|name:|(?:calls?|called|calling)\s(?:me|him|her|them)|(?:known|goes|go|went)\s(?:as|by)|nick-?named|n[ée]e"
    r"|a\.?k\.?a\.?|alias|signed,?)|I(?:['’]m|\sam))\s" + _NAME
)
_HAN = "\u4e00-\u9fff"
HAN_STATED = re.compile(
    r"(?:(?:我|她|他)(?:的)?(?:全名|本名|真名|名字|小名|昵称|绰号|外号|英文名)?(?:是叫|叫做|叫|名叫|名字是|是)|(?:姓名|本名|真名|小名|昵称|绰号|外号|又名|原名|曾用名"
    r"|英文名|人称)(?:是|叫|为|：|:)?\s?"
    r"|(?:大家|朋友|家人|同事|妈妈)(?:们)?(?:都)?(?:叫|喊|称)(?:我|她|他))"
    rf"(?P<name>[{_HAN}]{{2,4}}?(?=(?:{AROUND_NAMES}|[^{_HAN}]|$))|[{_HAN}]{{1,6}}·[{_HAN}]{{1,6}}|{_CAP})"
)
_HAN_UNSURE = re.compile("(?:我|她|他)是$")
_NO_NAMES = STOP_WORDS | DULL_WORDS | QUESTION_WORDS | ORDINARY
ROLES = frozenset(str(role) for role in MessageRole) | {"human", "ai", "bot"}


def stated_names(text: str) -> Iterator[str]:
    """Yield the names with which a text introduces someone. Pure."""
    for found in STATED.finditer(text[:MOST_TEXT]):
        words = found["name"].split()
        if words[0].casefold() not in _NO_NAMES:
            yield found["name"]
    if not text.isascii():
        for found in HAN_STATED.finditer(text[:MOST_TEXT]):
            lead = text[found.start() : found.start("name")]
            if not _HAN_UNSURE.match(lead):
                yield found["name"]


def metadata_names(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names in fields such as `name` and `aliases`, at any depth."""
    for name, value in metadata.items():
        if isinstance(value, Mapping):
            yield from metadata_names(value)
        elif name.casefold() in NAME_FIELDS:
            values = value if isinstance(value, (list, tuple)) else [value]
            yield from (each[:LONGEST] for each in values if isinstance(each, str))


def speaker_name(speaker: str) -> str:
    """Return the speaker's name; empty if it is a role such as `user`."""
    return "" if speaker.casefold() in ROLES else speaker


def complete_names(names: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return the names, and names of the texts that have a known part: with `Hannah`, also `Hannah Weiss`."""
    known = list(dict.fromkeys(names))
    finder = NameFinder(make_name_forms(known))
    if finder.forms.is_empty:
        return known
    found = dict.fromkeys(known)
    for text in texts:
        if finder.find(text[:MOST_TEXT]):
            found.update(dict.fromkeys(each for each in entities(text[:MOST_TEXT]) if _completes(finder, each)))
    return list(found)


def _completes(finder: NameFinder, entity: str) -> bool:
    """Return whether an entity is two to four words with a known part among them."""
    words = entity.split()
    return (
        2 <= len(words) <= 4
        and any(word in finder.forms.latin for word in words)
        and not any(word in _NO_NAMES or not word.isalpha() for word in words)
    )
