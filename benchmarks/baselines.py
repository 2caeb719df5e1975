"""Search baselines: plain BM25 and exact cosine over the same turns, in memory."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.locomo import Turn
from vault.lexicon.tokens import query_terms, terms
from vault.providers.registry import embedder

K1, B = 1.2, 0.75  # the usual constants (Robertson and Zaragoza, 2009)


class Bm25:
    """Okapi BM25 over `speaker: text`, stemmed, without stop words and question words."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._ids = [turn.id for turn in turns]
        documents = [terms(f"{turn.speaker}: {turn.text}") for turn in turns]
        self._lengths = [len(document) for document in documents]
        self._mean = sum(self._lengths) / len(documents)
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for index, document in enumerate(documents):
            for term, count in Counter(document).items():
                self._postings[term].append((index, count))

    def search(self, question: str, limit: int) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(query_terms(question)):
            found = self._postings.get(term, [])
            rarity = math.log(1 + (len(self._ids) - len(found) + 0.5) / (len(found) + 0.5))
            for index, count in found:
                length = 1 - B + B * self._lengths[index] / self._mean
                scores[index] += rarity * count * (K1 + 1) / (count + K1 * length)
        best = sorted(scores, key=lambda index: -scores[index])[:limit]
        return [self._ids[index] for index in best]


class ExactCosine:
    """Exact cosine search over all vectors, by the product's configured embedder."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._ids = [turn.id for turn in turns]
        self._vectors: NDArray[np.float32] = embedder().embed([f"{turn.speaker}: {turn.text}" for turn in turns])

    def search(self, question: str, limit: int) -> list[str]:
        similar = self._vectors @ embedder().embed([question])[0]
        return [self._ids[index] for index in np.argsort(-similar, kind="stable")[:limit]]
