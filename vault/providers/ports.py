"""Ports for outside services: vectors of texts, relevance of texts, and a language model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from governance.errors import Unavailable

Matrix = NDArray[np.float32]


class ProviderUnavailable(Unavailable):
    """A model or its server gave no usable answer. The detail never holds a key, a prompt or a server's own words."""

    code, title = "provider_unavailable", "The model provider gave no usable answer"


class ChatRole(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole reply, never empty. Token counts are None when the server does not tell them."""

    text: str
    model: str
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of a reply; never empty."""

    text: str


class Embedder(Protocol):
    """Turns texts into vectors that can be compared by their inner product."""

    @property
    def name(self) -> str:
        """Unique name of the model, stored beside its vectors: only vectors of one name may be compared."""

    @property
    def dimension(self) -> int:
        """Length of each vector. May ask the provider once; raises ProviderUnavailable."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """float32 of shape (len(texts), dimension), rows of length 1, in the order of `texts`.

        Raises: ProviderUnavailable.
        """


class Reranker(Protocol):
    """Reads a question and a text together, which no vector can. Slow: never inside a database transaction."""

    @property
    def name(self) -> str:
        """Unique name of the model."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers the question, 0..1, in the order of `texts`. Raises ProviderUnavailable."""


class Llm(Protocol):
    """A chat model. Calls take seconds: never inside a database transaction."""

    @property
    def name(self) -> str:
        """The model's name as configured."""

    def complete(self, messages: Sequence[ChatMessage]) -> Completion:
        """The whole reply. Raises ProviderUnavailable, also for an empty one."""

    def stream(self, messages: Sequence[ChatMessage]) -> Iterator[TextDelta | Completion]:
        """The reply in pieces as they arrive, then one Completion that holds all of it.

        Raises ProviderUnavailable at any step; pieces already given are then no reply. Closing the iterator early
        closes the connection.
        """
