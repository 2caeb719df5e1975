"""WordLlama's averaged token vectors, 256-d, loaded from its own package without a network."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from vault.providers.ports import Matrix, ProviderUnavailable
from vault.providers.vectors import unit_rows

DIMENSION = 256
MISSING = "The package wordllama is missing (Python 3.14 has none): use Python 3.11 to 3.13, or set MEMOS_EMBEDDER"
_LOADING = Lock()  # `cache` alone would let two threads load the weights twice


class WordLlamaEmbedder:
    """About 30,000 short texts a second on one core; 50 MB of memory. Safe to share between threads."""

    name = "wordllama/l2-supercat-256"
    dimension = DIMENSION

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector per text: the mean of its tokens' vectors, scaled to length 1.

        Pooled text by text: the library's own batches are padded to the longest text, which costs hundreds of
        megabytes as soon as one of them is long.
        """
        model = _load_model()
        pooled = np.empty((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            ids = model.tokenizer.encode(text or " ", add_special_tokens=False).ids
            pooled[row] = model.embedding[ids].mean(axis=0)
        return unit_rows(pooled)


def _load_model() -> Any:
    with _LOADING:
        return _load_once()


@cache
def _load_once() -> Any:
    try:
        import wordllama  # type: ignore[import-untyped]  # here: only processes that embed pay for its weights
    except ModuleNotFoundError as error:
        raise ProviderUnavailable(MISSING) from error
    # Left alone, the loader misses the tokenizer in its own package (it looks in a folder that does not exist there)
    # and asks the network for it.
    package = Path(wordllama.__file__).parent
    try:
        model = wordllama.WordLlama.load(cache_dir=package, dim=DIMENSION, disable_download=True)
    except FileNotFoundError as error:
        raise ProviderUnavailable("The wordllama package lacks its weights: install it again") from error
    model.tokenizer.no_padding()
    return model
