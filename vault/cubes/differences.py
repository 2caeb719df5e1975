"""Differences between two texts, word by word. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum

# Words with the space behind them; of Chinese each character.
TOKENS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’][^\W\u3400-\u9fff]+)*|\s+|[^\w\s]")
SENTENCES = re.compile(r"[^.!?。！？\n]*[.!?。！？\n]*\s*")
LINES = re.compile(r"[^\n]*\n?")
MOST_TOKENS = 1_200  # that differ; more are compared in coarser parts, since time grows with the square
WORD = re.compile(r"\w")


class Edit(StrEnum):
    EQUAL = "equal"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True)
class TextChange:
    """A piece of text that is in both texts, or in one of them."""

    edit: Edit
    text: str = field(repr=False)


@dataclass(frozen=True)
class TextDifference:
    """The edits between two texts. changes: in order of the texts. inserted, deleted: numbers of words."""

    changes: tuple[TextChange, ...]
    inserted: int
    deleted: int

    @property
    def before(self) -> list[TextChange]:
        return [change for change in self.changes if change.edit is not Edit.INSERT]

    @property
    def after(self) -> list[TextChange]:
        return [change for change in self.changes if change.edit is not Edit.DELETE]


def text_difference(before: str, after: str) -> TextDifference:
    """Return the edits that turn `before` into `after`."""
    old, new = _split_texts(before, after)
    start, end = _count_common(old, new)
    changes: list[TextChange] = []
    _append_change(changes, Edit.EQUAL, old[:start])
    for edit, tokens in _find_edits(old[start : len(old) - end], new[start : len(new) - end]):
        _append_change(changes, edit, tokens)
    _append_change(changes, Edit.EQUAL, old[len(old) - end :])
    return TextDifference(tuple(changes), _count_words(changes, Edit.INSERT), _count_words(changes, Edit.DELETE))


def _split_texts(before: str, after: str) -> tuple[list[str], list[str]]:
    """Split both texts into the finest tokens of which at most MOST_TOKENS differ."""
    for pattern in (TOKENS, SENTENCES, LINES):
        old, new = pattern.findall(before), pattern.findall(after)
        start, end = _count_common(old, new)
        if max(len(old), len(new)) - start - end <= MOST_TOKENS:
            return old, new
    return [before], [after]


def _count_common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Count the tokens that both texts share at the beginning and at the end."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next((at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start)
    return start, end


def _find_edits(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[Edit, Sequence[str]]]:
    # Tokens that are everywhere anchor no match: with them the time grows with the cube.
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        if tag == "equal":
            yield Edit.EQUAL, old[i:j]
        else:
            yield Edit.DELETE, old[i:j]
            yield Edit.INSERT, new[k:m]


def _append_change(changes: list[TextChange], edit: Edit, tokens: Sequence[str]) -> None:
    if text := "".join(tokens):
        changes.append(TextChange(edit, text))


def _count_words(changes: Sequence[TextChange], edit: Edit) -> int:
    found = (TOKENS.findall(change.text) for change in changes if change.edit is edit)
    return sum(bool(WORD.match(token)) for tokens in found for token in tokens)
