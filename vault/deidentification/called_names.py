"""Chinese names after a word for a relative or a role (女儿妞妞, 保姆翠花), and what a dictionary takes for a name.

Pure, but for the dictionary, which is loaded at first use. Linear in the text.
"""

import re
from collections.abc import Iterator

import rjieba

from vault.deidentification.name_words import (
    HAN_GIVEN,
    HAN_KIN,
    HAN_ROLES,
    HAN_SMALL,
    MORE_DOUBLE_SURNAMES,
    MORE_HAN_KIN,
    NO_CALLED_NAMES,
    NO_HAN_NAMES,
)
from vault.lexicon.names import AROUND_NAMES, DOUBLE_SURNAMES, GIVEN, PLACES, SURNAMES

LONGEST = 5  # characters that are read for a name
_HAN = "\u4e00-\u9fff"
_KIN = "|".join(
    sorted({word for word in f"{HAN_KIN}|{MORE_HAN_KIN}".split("|") if len(word) > 1}, key=len, reverse=True)
)
CALLED = re.compile(rf"(?:(?P<kin>{_KIN})|(?P<role>{HAN_ROLES}))(?:名叫|叫做|叫|名为|是|：)?(?=[{_HAN}]{{2}})")
AFTER_PLACEHOLDER = re.compile(rf"\[;+\](?=[{_HAN}]{{2}})")
_NO_NAME = re.compile(f"(?:{NO_CALLED_NAMES}|{NO_HAN_NAMES}|{PLACES}|{_KIN}|{HAN_ROLES})")
_BESIDE = re.compile(f"(?:{AROUND_NAMES})")
_DOUBLE = f"(?:{DOUBLE_SURNAMES}|{MORE_DOUBLE_SURNAMES})"
_DOUBLE_NAME = re.compile(
    rf"{_DOUBLE}(?:[{_HAN}]{{1,2}}?(?={AROUND_NAMES}|[^{_HAN}]|$)|[{_HAN}]{{2}})|[{SURNAMES}][{GIVEN}]{{2}}"
)
_PLAIN_NAME = re.compile(
    rf"{_DOUBLE_NAME.pattern}"
    rf"|[小阿][{_HAN}]|[大二三]宝|(?P<twice>[{_HAN}])(?P=twice)"
    rf"|[{GIVEN}]{{2}}|[{HAN_GIVEN}]{{2}}(?=(?:{AROUND_NAMES}|[^{_HAN}]|$))"
)
_GIVEN_NAME = re.compile(f"[{HAN_GIVEN}]{{2}}")
_SINGLE = re.compile(f"[^{HAN_SMALL}]")
_RUN = re.compile(f"[{_HAN}]+")


def find_called_names(text: str) -> Iterator[tuple[int, int, int, bool]]:
    """Yield where a word for a relative or a role starts, where the name after it starts and ends, and if it is of a
    relative."""
    if text.isascii():
        return
    for found in CALLED.finditer(text):
        if end := read_han_name(text, found.end()):
            yield found.start(), found.end(), end, found["kin"] is not None


def read_han_name(text: str, start: int) -> int:
    """Return where a Chinese name that begins here ends; 0 if none does."""
    if _NO_NAME.match(text, start):
        return 0
    plain = _PLAIN_NAME.match(text, start)
    if plain and not _BESIDE.match(text, start):
        return plain.end()
    run = _RUN.match(text, start, start + LONGEST + 3)
    if run is None:
        return 0
    word, kind = rjieba.tag(run[0])[0]
    return start + len(word) if _is_name(word, kind) else 0


def find_unsure_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of what may be a Chinese name: after surnames of two characters, words that the dictionary takes
    for names, and words that it does not have after a word for a relative or a role."""
    if text.isascii():
        return
    yield from (found.span() for found in _DOUBLE_NAME.finditer(text))
    for pattern in (CALLED, AFTER_PLACEHOLDER):
        for found in pattern.finditer(text):
            end = read_han_name(text, found.end()) or _read_unknown(text, found.end())
            if end:
                yield found.end(), end
    for run in _RUN.finditer(text):
        at = run.start()
        for word, kind in rjieba.tag(run[0]):
            if _is_name(word, kind) and not _NO_NAME.match(word):
                yield at, at + len(word)
            at += len(word)


def _is_name(word: str, kind: str) -> bool:
    return kind in {"nr", "nrt", "nrfg"} and len(word) in {2, 3}


def _read_unknown(text: str, start: int) -> int:
    """Return where a word that no dictionary has ends, 0 if the word here is known."""
    run = _RUN.match(text, start, start + LONGEST)
    if run is None or _NO_NAME.match(text, start):
        return 0
    if _GIVEN_NAME.match(run[0]):
        return start + 2
    if _BESIDE.match(run[0]):
        return 0
    words = rjieba.cut(run[0])
    if len(words) > 1 and all(len(word) == 1 and _SINGLE.match(word) for word in words[:2]):
        return start + 2
    is_unknown = 1 < len(words[0]) < 4 and not rjieba.has_word(words[0])
    return start + len(words[0]) if is_unknown else 0
