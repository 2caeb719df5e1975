"""Ports for outside services: vectors of texts, relevance of texts, a language model, and blobs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from governance.errors import Unavailable

Matrix = NDArray[np.float32]


class ProviderUnavailable(Unavailable):
    """A model or its server gave no usable answer. The detail never holds a key, a prompt or a server's own words."""

    code, title = "provider_unavailable", "The model provider gave no usable answer"


class ReaderDisconnected(ProviderUnavailable):
    """The reader of a model's answer has closed the connection, so the model's call was ended."""


class BlobStoreUnavailable(Unavailable):
    """The blob store gave no usable answer, or lacks what should be in it."""

    code, title = "blob_store_unavailable", "Archived content cannot be reached"


class VectorIndexUnavailable(Unavailable):
    """The vector index gave no usable answer. Searches do without it; what changes vectors is tried again."""

    code, title = "vector_index_unavailable", "The vector index cannot be reached"


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
    """A whole reply, never empty. Token counts are None when the server does not tell them.

    cached_tokens: those of the prompt that the server took from its cache.
    """

    text: str
    model: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of a reply; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class EngineUse:
    """The caches and the adapter that an engine may use for one request. salt: requests with the same one share the
    engine's prefix cache. moved: the caches that may stand behind another one, each with the number of its first tokens
    that are read again."""

    caches: tuple[str, ...] = ()
    moved: tuple[tuple[str, int], ...] = ()
    adapter: str = ""
    salt: str = ""


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


class CompletingLlm(Protocol):
    """A chat model that gives whole replies. Calls take seconds: never inside a database transaction."""

    @property
    def name(self) -> str:
        """The model's name as configured."""

    def complete(self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """The whole reply, as JSON of `schema` where one is given and the server knows schemas.

        Raises ProviderUnavailable, also for an empty reply.
        """


class Llm(CompletingLlm, Protocol):
    """A chat model. Calls take seconds: never inside a database transaction. place: address and model."""

    @property
    def place(self) -> tuple[str, str]: ...
    def stream(self, messages: Sequence[ChatMessage], use: EngineUse | None = None) -> Iterator[TextDelta | Completion]:
        """The reply in pieces as they arrive, then one Completion that holds all of it. use: for the engine of the
        installation only.

        Raises ProviderUnavailable at any step; pieces already given are then no reply. Closing the iterator early
        closes the connection.
        """


@dataclass(frozen=True, slots=True)
class BlobEntry:
    """A blob in the store. written_at: with a time zone."""

    name: str
    written_at: datetime


class BlobStore(Protocol):
    """Sealed bytes by name. A name has parts of letters, digits, `.` and `-`, separated by `/`.

    Every method raises BlobStoreUnavailable.
    """

    @property
    def name(self) -> str:
        """For an operator: which store it is, without secrets."""

    @property
    def is_remote(self) -> bool:
        """True if a call goes over the network: then never inside a database transaction."""

    def write(self, name: str, content: bytes) -> None:
        """Store a blob durably before returning. Replaces a blob of the same name."""

    def read(self, name: str) -> bytes | None:
        """The blob; None where there is none."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete blobs; names that are not there are passed over."""

    def entries(self, prefix: str = "") -> Iterator[BlobEntry]:
        """The blobs whose names begin with `prefix`, in no order."""


@dataclass(frozen=True, slots=True)
class IndexedVector:
    """A vector of a memory as an index stores it. part: 0 of the whole text, or of a passage. vector: of length 1."""

    cube_id: UUID
    part: int
    model: str
    namespace_id: UUID
    vector: NDArray[np.float32]


class VectorIndex(Protocol):
    """Finds the nearest vectors of one tenant. It has copies of vectors, and decides nothing: what it answers is looked
    up in PostgreSQL, which knows who may see it.

    Calls go over the network: never inside a database transaction. Every method raises VectorIndexUnavailable.
    """

    @property
    def name(self) -> str:
        """The index by kind and address, without secrets. A tenant whose vectors it has keeps this name."""

    def check(self) -> None:
        """Return if the index answers."""

    def replace(self, tenant_id: UUID, cube_ids: Sequence[UUID], vectors: Sequence[IndexedVector]) -> None:
        """Make `vectors` all that the index has of these memories, by any model. Idempotent."""

    def nearest(
        self, tenant_id: UUID, model: str, vector: Sequence[float], namespaces: Sequence[UUID], limit: int
    ) -> list[UUID]:
        """Return memories by the nearest of their vectors, nearest first, from `limit` vectors."""

    def list_cubes(self, tenant_id: UUID, after: UUID, until: UUID) -> set[UUID]:
        """Return the memories after `after` up to `until` of which the index has a vector."""

    def delete_tenant(self, tenant_id: UUID) -> None:
        """Delete all vectors of a tenant."""
