"""Embeddings from any server that speaks OpenAI's protocol."""

from collections.abc import Sequence

import numpy as np
from openai.types import CreateEmbeddingResponse

from vault.providers.openai_endpoint import Endpoint
from vault.providers.ports import Matrix
from vault.providers.vectors import unit_rows

TEXTS_PER_CALL = 128
LARGEST_DIMENSION = 8192


class OpenAiEmbedder:
    """The dimension is learned from the first answer; from then on any other is refused."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = f"openai/{endpoint.model}"
        self._endpoint = endpoint
        self._client = endpoint.client()
        self._dimension: int | None = None

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            return int(self.embed(["dimension"]).shape[1])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        batches = [texts[at : at + TEXTS_PER_CALL] for at in range(0, len(texts), TEXTS_PER_CALL)]
        return np.concatenate([self._embed_batch(batch) for batch in batches])

    def _embed_batch(self, texts: Sequence[str]) -> Matrix:
        with self._endpoint.translate_failures():
            answer = self._client.embeddings.create(
                model=self._endpoint.model, input=list(texts), encoding_format="float"
            )
        matrix = self._read_vectors(answer, len(texts))
        self._check_dimension(matrix.shape[1])
        return unit_rows(matrix)

    def _read_vectors(self, answer: CreateEmbeddingResponse, expected: int) -> Matrix:
        """The answer's vectors by their index. The client does not check the server's JSON, so all of it is doubted."""
        try:
            ordered = sorted(answer.data, key=lambda item: item.index)
            complete = [item.index for item in ordered] == list(range(expected))
            matrix = np.array([item.embedding for item in ordered], dtype=np.float32)
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise self._endpoint.unreadable() from None
        if not complete or matrix.ndim != 2:
            raise self._endpoint.unavailable("did not send one embedding per text")
        return matrix

    def _check_dimension(self, dimension: int) -> None:
        if not 1 <= dimension <= LARGEST_DIMENSION:
            raise self._endpoint.unavailable(f"sent embeddings of {dimension} numbers")
        if self._dimension is None:
            self._dimension = dimension
        if dimension != self._dimension:
            raise self._endpoint.unavailable(f"sent embeddings of {dimension} numbers, {self._dimension} before")
