"""Differences between two versions: texts word by word, clear fields as a whole. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum

# Words with the space behind them; of Chinese each character.
TOKENS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’][^\W\u3400-\u9fff]+)*|\s+|[^\w\s]")
SENTENCES = re.compile(r"[^.!?。！？\n]*[.!?。！？\n]*\s*")
LINES = re.compile(r"[^\n]*\n?")
MOST_TOKENS = 1_200  # that differ: beyond, coarser parts are compared, since time grows with the square
WORD = re.compile(r"\w")


class Edit(StrEnum):
    EQUAL = "equal"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True)
class TextChange:
    """A piece of text that both have, or one of them."""

    edit: Edit
    text: str = field(repr=False)


@dataclass(frozen=True)
class TextDifference:
    """changes: in order, those of both texts together. inserted, deleted: words."""

    changes: tuple[TextChange, ...]
    inserted: int
    deleted: int

    @property
    def before(self) -> list[TextChange]:
        return [one for one in self.changes if one.edit is not Edit.INSERT]

    @property
    def after(self) -> list[TextChange]:
        return [one for one in self.changes if one.edit is not Edit.DELETE]


def text_difference(before: str, after: str) -> TextDifference:
    """The edits that turn `before` into `after`. Their pieces in order are the two texts."""
    old, new = _tokens(before, after)
    start, end = _common(old, new)
    changes: list[TextChange] = []
    _add(changes, Edit.EQUAL, old[:start])
    for edit, tokens in _edits(old[start : len(old) - end], new[start : len(new) - end]):
        _add(changes, edit, tokens)
    _add(changes, Edit.EQUAL, old[len(old) - end :])
    return TextDifference(tuple(changes), _words(changes, Edit.INSERT), _words(changes, Edit.DELETE))


def _tokens(before: str, after: str) -> tuple[list[str], list[str]]:
    """Both texts in the finest parts of which not too many differ."""
    for pattern in (TOKENS, SENTENCES, LINES):
        old, new = pattern.findall(before), pattern.findall(after)
        start, end = _common(old, new)
        if max(len(old), len(new)) - start - end <= MOST_TOKENS:
            return old, new
    return [before], [after]


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many tokens both texts share at the beginning, and at the end."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next((at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start)
    return start, end


def _edits(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[Edit, Sequence[str]]]:
    # Tokens that are everywhere anchor no match: with them the time grows with the cube.
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        if tag == "equal":
            yield Edit.EQUAL, old[i:j]
        else:
            yield Edit.DELETE, old[i:j]
            yield Edit.INSERT, new[k:m]


def _add(changes: list[TextChange], edit: Edit, tokens: Sequence[str]) -> None:
    if text := "".join(tokens):
        changes.append(TextChange(edit, text))


def _words(changes: Sequence[TextChange], edit: Edit) -> int:
    found = (TOKENS.findall(one.text) for one in changes if one.edit is edit)
    return sum(bool(WORD.match(token)) for tokens in found for token in tokens)
