"""Segmentation of Chinese text into words. The dictionary is loaded at first use: 33 MB, a tenth of a second."""

from collections.abc import Iterator
from itertools import groupby

import rjieba


def pieces(run: str) -> list[str]:
    """`run` cut into pieces that no word crosses.

    Single characters side by side stay together: they are mostly a name or a word that the dictionary does not have.
    """
    return list(_join_single(rjieba.cut(run, hmm=False)))


def _join_single(words: list[str]) -> Iterator[str]:
    for single, together in groupby(words, key=lambda word: len(word) == 1):
        if single:
            yield "".join(together)
        else:
            yield from together
