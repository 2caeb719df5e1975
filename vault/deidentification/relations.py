"""Relations of a person in texts, in English and Chinese: `her brother Tom`, 她的哥哥, with their names."""

import re
from collections.abc import Iterator

from governance.privacy.pii.identifiers import Identifier
from governance.vocabulary import PersonalKind
from vault.deidentification.called_names import find_called_names, read_han_name
from vault.deidentification.name_words import FRIENDS, HAN_KIN, KIN, NO_HAN_NAMES
from vault.deidentification.names import ALL_SURNAMES
from vault.lexicon.names import AROUND_NAMES, DOUBLE_SURNAMES, FOREIGN_NAMES, ORDINARY, SURNAMES, TRANSLITERATED
from vault.lexicon.words import DULL_WORDS, QUESTION_WORDS, STOP_WORDS

_CAP = "[A-Z\u00c0-\u00de\u0100-\u017f][\\w\u00c0-\u024f]{0,24}(?:[-'’][A-Z]\\w{1,24})?"
_NAME = f"{_CAP}(?:\\s{_CAP}){{0,2}}"
_WHOSE = r"(?:my|our|your|his|her|their|whose|[A-Z][\w-]{0,24}(?:['’]s?|s['’])|\[person\](?:['’]s)?)"
_KIND_OF = (
    "(?:(?:older|younger|elder|little|big|late|twin|baby|dear|only|eldest|youngest|oldest|middle|first|second"
    "|third|ex|former|own|two"
    "|three|four|adopted|adoptive|estranged|beloved|future|new|lovely|sweet|wonderful|whole|entire|biological"
    "|paternal|maternal)[ -]){0,2}"
)
_SAID = r"(?:,? (?:is |was |who is |whose name is |who was )?(?:called|named)?\s?|,\s?|\s\(|:\s)"
_NOT_AFTER = "(?<![A-Za-z\u00c0-\u024f])"
_RELATION = re.compile(
    rf"{_NOT_AFTER}{_WHOSE}\s{_KIND_OF}(?:{KIN})(?![A-Za-z])(?P<has_name>(?:{_SAID}|['’]s name (?:is|was) )"
    rf"(?P<name>(?-i:{_NAME})))?",
    re.IGNORECASE,
)
_FRIEND = re.compile(
    rf"{_NOT_AFTER}(?:my|our|his|her|their)\s{_KIND_OF}(?:{FRIENDS})(?![A-Za-z]){_SAID}(?P<name>(?-i:{_NAME}))",
    re.IGNORECASE,
)
_REVERSED = re.compile(
    rf"{_NOT_AFTER}(?P<name>(?-i:{_NAME}))(?:,\s?|\s(?:is|was)\s|, who is\s)(?:my|our|his|her"
    rf"|their)\s{_KIND_OF}(?:{KIN}|{FRIENDS})(?![A-Za-z])",
    re.IGNORECASE,
)
_KIN_NAME = re.compile(
    rf"(?<![A-Za-z])(?:Uncle|Aunt|Auntie|Aunty|Grandma|Grandpa|Granny|Nana|Cousin|Grandmother|Grandfather"
    rf"|Brother|Sister)\s(?P<name>{_CAP})"
)
_HAN = "\u4e00-\u9fff"
_HAN_NAME = (
    f"(?:(?:{DOUBLE_SURNAMES}|[{ALL_SURNAMES}])[{_HAN}]{{1,2}}?(?=(?:{AROUND_NAMES}|[^{_HAN}]|$))|[小阿][{_HAN}]"
    f"(?=(?:{AROUND_NAMES}|[^{_HAN}]|$))"
    f"|{FOREIGN_NAMES}|[{TRANSLITERATED}]{{2,5}}(?:·[{_HAN}]{{1,6}})?)"
)
# After a relation a surname is one, whatever follows the name.
_HAN_NAME_AFTER = f"(?:{_HAN_NAME}|(?!{NO_HAN_NAMES})(?:{DOUBLE_SURNAMES}|[{SURNAMES}])[{_HAN}]{{1,2}})"
_HAN_RELATION = re.compile(
    r"(?:(?:[我你您他她咱其](?:们|們)?|本人|\[person\]|[A-Z][a-z]{1,24})(?:的|家|那|家的)?|(?<=的))"
    rf"(?:大|小|二|三|亲|親|双胞胎|已故的|唯一的)?(?:{HAN_KIN})(?P<has_name>(?:名叫|叫做|叫|名为|名字是|名字叫|是|，|：|\s)?"
    rf"(?P<name>{_HAN_NAME_AFTER}|(?<=叫){_NAME}|(?<=叫)[{_HAN}]{{2,3}}(?=[^{_HAN}]|$)))?"
)
_HAN_REVERSED = re.compile(
    rf"(?<![{_HAN}])(?P<name>(?:{_HAN_NAME}|{_NAME}))(?:是|，)[我他她你](?:的)?(?:{HAN_KIN}|朋友|同事|室友)"
)
_NO_NAMES = STOP_WORDS | DULL_WORDS | QUESTION_WORDS | ORDINARY | {"i"}


def find_relations(text: str) -> Iterator[tuple[Identifier, str]]:
    """Yield the ranges of relations with the name in each, which is empty where there is none."""
    ends = set[int]()
    for pattern in (
        _RELATION,
        _FRIEND,
        _REVERSED,
        _KIN_NAME,
        *(() if text.isascii() else (_HAN_RELATION, _HAN_REVERSED)),
    ):
        for found in pattern.finditer(text):
            name, start, end = found["name"] or "", found.start(), found.end()
            if name and not _is_name(name):
                name, end = "", found.start("has_name") if "has_name" in pattern.groupindex else start
            if pattern is _HAN_RELATION and not name and (called := read_han_name(text, end)):
                name, end = text[end:called], called
            if end > start:
                ends.add(end)
                yield Identifier(PersonalKind.RELATIVE, start, end, "relation"), name
    for start, named, end, is_kin in find_called_names(text):
        if end not in ends:
            kind = PersonalKind.RELATIVE if is_kin else PersonalKind.PERSON
            yield Identifier(kind, start if is_kin else named, end, "relation"), text[named:end]


def _is_name(name: str) -> bool:
    return name.split(maxsplit=1)[0].casefold() not in _NO_NAMES
