"""Segmentation of Chinese text into words. The dictionary is loaded at first use: 33 MB, a tenth of a second."""

from collections.abc import Iterator
from itertools import groupby

import rjieba


def pieces(run: str) -> list[str]:
    """Return `run` cut into pieces at word boundaries.

    Adjacent single characters stay together: they are mostly a name or a word that the dictionary lacks.
    """
    return list(_join_single(rjieba.cut(run, hmm=False)))


def _join_single(words: list[str]) -> Iterator[str]:
    for single, together in groupby(words, key=lambda word: len(word) == 1):
        if single:
            yield "".join(together)
        else:
            yield from together
