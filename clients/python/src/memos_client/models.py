"""Replies of the server, as frozen dataclasses. `raw` holds the whole JSON, also fields that are not listed here."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Memory:
    """One memory. `score`, from 0 to 1, is set in results of a search. `speaker` and `session_id` may be absent."""

    id: str
    version: int
    content: str
    title: str
    namespace: str
    persona: str | None
    state: str
    layer: str
    semantic_type: str
    tags: tuple[str, ...]
    metadata: Json
    speaker: str | None
    session_id: str | None
    event_time: datetime | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    score: float | None
    raw: Json = field(repr=False)

    @classmethod
    def of(cls, raw: Json) -> "Memory":
        return cls(
            id=raw["id"],
            version=raw["version"],
            content=raw["content"],
            title=raw["title"],
            namespace=raw["namespace"]["path"],
            persona=raw["persona"]["name"] if raw.get("persona") else None,
            state=raw["state"],
            layer=raw["layer"],
            semantic_type=raw["semantic_type"],
            tags=tuple(raw["tags"]),
            metadata=raw["metadata"],
            speaker=raw["speaker"],
            session_id=raw["session_id"],
            event_time=_time(raw["event_time"]),
            created_at=datetime.fromisoformat(raw["created_at"]),
            updated_at=datetime.fromisoformat(raw["updated_at"]),
            expires_at=_time(raw["expires_at"]),
            score=raw.get("score"),
            raw=raw,
        )


@dataclass(frozen=True)
class Namespace:
    """A folder of memories. `count`: memories in it, without those below, at most two minutes old."""

    id: str
    path: str
    kind: str
    count: int
    raw: Json = field(repr=False)

    @classmethod
    def of(cls, raw: Json) -> "Namespace":
        return cls(raw["id"], raw["path"], raw["kind"], raw["count"], raw)


@dataclass(frozen=True)
class Version:
    """One version of a memory."""

    version: int
    content: str | None
    reason: str
    created_at: datetime
    raw: Json = field(repr=False)

    @classmethod
    def of(cls, raw: Json) -> "Version":
        return cls(
            raw["version"], raw.get("content"), raw.get("reason", ""), datetime.fromisoformat(raw["created_at"]), raw
        )


@dataclass(frozen=True)
class Context:
    """A text for a model's prompt; `memory_ids` are those that it is made of."""

    text: str
    tokens: int
    memory_ids: tuple[str, ...]

    @classmethod
    def of(cls, raw: Json) -> "Context":
        return cls(raw["text"], raw["tokens"], tuple(item["id"] for item in raw["items"]))


@dataclass(frozen=True)
class Conversation:
    id: str
    title: str
    raw: Json = field(repr=False)

    @classmethod
    def of(cls, raw: Json) -> "Conversation":
        return cls(raw["id"], raw["title"], raw)


@dataclass(frozen=True)
class Citation:
    """`marker` is the number that stands in the text of the answer."""

    marker: int
    memory_id: str | None

    @classmethod
    def of(cls, raw: Json) -> "Citation":
        return cls(raw["marker"], raw.get("memory_id"))


@dataclass(frozen=True)
class Answer:
    """A reply of the chat. `content` is None where a cited memory was withdrawn since."""

    id: str
    content: str | None
    citations: tuple[Citation, ...]
    model: str
    raw: Json = field(repr=False)

    @classmethod
    def of(cls, raw: Json) -> "Answer":
        return cls(raw["id"], raw["content"], tuple(map(Citation.of, raw["citations"])), raw["model"], raw)


@dataclass(frozen=True)
class StreamEvent:
    """One event of a streamed answer: `token` with `text`, `citation`, `done` or `error`, with `data`."""

    name: str
    data: Json

    @property
    def text(self) -> str:
        """The piece of the answer that a `token` brings; empty for the others."""
        return str(self.data.get("text", "")) if self.name == "token" else ""


def memories_of(raw: Iterable[Json]) -> list[Memory]:
    return [Memory.of(one) for one in raw]


def _time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None
