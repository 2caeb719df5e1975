"""The labels that a text names. Pure."""

import re
from collections.abc import Iterable

from vault.lexicon.normal import normal_form
from vault.lexicon.tokens import SPACED

MOST_PLACES = 64  # of a label in a text that are looked at, each of which may lie within a word
LONGEST_LABEL = 100  # characters
_ASCII_RUN = re.compile("[\\x00-\\x7f]+")
_EDGE = re.compile("(?<![a-z0-9])|(?![a-z0-9])")
_SPACED = re.compile(SPACED)


def fold_label(text: str) -> str:
    """Return the same form for all spellings of a label: NFKC, case-folded, single blanks, none at either end."""
    normal = normal_form("NFKC", normal_form("NFKC", text).casefold())
    return " ".join(normal.split())


def find_labels(text: str, labels: Iterable[str]) -> dict[str, str]:
    """Return the `labels` that the folded `text` names: each spelling → its folded form.

    In scripts with blanks between words a label must match whole words; in others it matches anywhere.
    """
    said: dict[str, bool] = {}
    named = {}
    for label in labels:
        name = fold_label(label)
        if name not in said:
            said[name] = find_word(text, name) >= 0
        if said[name]:
            named[label] = name
    return named


def ascii_pieces(text: str) -> set[str]:
    """Return all substrings of the folded `text` that may be an ASCII label: from a word's start to a word's end."""
    pieces = set()
    for run in _ASCII_RUN.findall(text):
        edges = [edge.start() for edge in _EDGE.finditer(run)]
        for number, begin in enumerate(edges):
            for end in edges[number + 1 :]:
                if end - begin > LONGEST_LABEL:
                    break
                pieces.add(run[begin:end].strip(" "))
    return pieces - {""}


def find_word(text: str, name: str) -> int:
    """Return the place of a name or word in a text that is folded like it, or -1. "Al" is not in "also"; in scripts
    without blanks between words it may be anywhere.
    """
    at = text.find(name) if name else -1
    for _ in range(MOST_PLACES):
        if at < 0:
            return -1
        end = at + len(name)
        if not _is_one_word(text[at - 1 : at], name[0]) and not _is_one_word(name[-1], text[end : end + 1]):
            return at
        at = text.find(name, at + 1)
    return -1


def _is_one_word(left: str, right: str) -> bool:
    """Return whether two neighbouring characters, one of which may be missing, belong to the same word."""
    return bool(_SPACED.fullmatch(left) and _SPACED.fullmatch(right))
