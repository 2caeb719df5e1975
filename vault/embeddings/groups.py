"""Groups of similar vectors, so that a few vectors stand for the many of a set of memories. Pure."""

import numpy as np

from vault.providers.ports import Matrix
from vault.providers.vectors import unit_rows

ROUNDS = 8


def group_vectors(vectors: Matrix, count: int) -> Matrix:
    """Return at most `count` vectors of length 1, the means of groups of similar rows: spherical k-means.

    It starts with the row nearest to the mean of all, and then adds the row least similar to those chosen before; the
    same rows give the same groups. vectors: rows of length 1; none give none.
    """
    if len(vectors) <= count:
        return vectors
    chosen = [int(np.argmax(vectors @ vectors.mean(axis=0)))]
    nearest = vectors @ vectors[chosen[0]]
    while len(chosen) < count:
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, vectors @ vectors[chosen[-1]])
    centres = vectors[chosen]
    for _ in range(ROUNDS):
        members = np.argmax(vectors @ centres.T, axis=1)
        means = [vectors[members == place].mean(axis=0) for place in range(count) if (members == place).any()]
        centres = unit_rows(np.stack(means))
        count = len(centres)
    return centres
