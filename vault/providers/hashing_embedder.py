"""A deterministic embedder without a model: hashed words. For tests, where texts that share words must be near."""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np

from vault.providers.ports import Matrix
from vault.providers.vectors import unit_rows

DIMENSION = 256
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_RUNS = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_CJK_RUN = re.compile(rf"[{_CJK}]")


class HashingEmbedder:
    """Feature hashing (Weinberger et al., arXiv 0902.2206): each word or CJK bigram adds ±1 to one of 256 places."""

    name = "hashing/256"
    dimension = DIMENSION

    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            for place, sign in map(_hash_feature, _split_features(text)):
                vectors[row, place] += sign
            if not vectors[row].any():  # no word at all, or signs that cancelled out
                vectors[row, _hash_feature(text)[0]] = 1
        return unit_rows(vectors)


def _split_features(text: str) -> Iterator[str]:
    for run in _RUNS.findall(text.casefold()):
        if _CJK_RUN.match(run) and len(run) > 1:
            yield from (run[at : at + 2] for at in range(len(run) - 1))
        else:
            yield run


def _hash_feature(feature: str) -> tuple[int, int]:
    digest = blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return digest[0], 1 if digest[1] & 1 else -1
