"""Passages of long texts: each has a vector of its own, so that every part of a text is found by its meaning. Pure."""

import re
from collections.abc import Sequence

import numpy as np

from vault.lexicon.tokens import language_of
from vault.providers.ports import Matrix
from vault.providers.vectors import unit_rows

LENGTH = 500  # characters of a passage: a sentence among more others hardly changes a vector
LENGTH_ZH = 250  # Chinese says as much in half the characters
TIMES_LONG = 4  # longer than so many passages, a text has passages
_ENDS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?\u2026]\s|[。！？]|\n"), re.compile(r"\s|[，；、,;]"))


def split_passages(text: str) -> list[str]:
    """Return the passages of a long text, none of a short one: cut after a paragraph, a sentence or a word, if there is
    an end of one in the second half of a passage.
    """
    length = LENGTH_ZH if language_of(text) == "zh" else LENGTH
    if len(text) <= TIMES_LONG * length:
        return []
    passages, start = [], 0
    while len(text) - start > length:
        end = start + _find_cut(text[start : start + length])
        passages.append(text[start:end])
        start = end
    return [*passages, text[start:]]


def count_vectors(text: str) -> int:
    """Return the number of vectors of a text: one, and of a long one those of its passages."""
    return 1 + len(split_passages(text))


def mean_vectors(vectors: Matrix, counts: Sequence[int]) -> Matrix:
    """Return the vector of each whole text, the mean of the vectors of its `counts` passages scaled to length 1."""
    starts = np.cumsum([0, *counts[:-1]])
    return unit_rows(np.add.reduceat(vectors, starts, axis=0))


def _find_cut(passage: str) -> int:
    for end in _ENDS:
        found = [match.end() for match in end.finditer(passage, len(passage) // 2)]
        if found:
            return found[-1]
    return len(passage)
