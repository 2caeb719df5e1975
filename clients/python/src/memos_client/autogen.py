"""A memory of AutoGen: `MemosMemory`. Install the extra `autogen`."""

import json
from typing import Any, Self

from autogen_core import CancellationToken, Component, Image
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel, Field

from memos_client import models
from memos_client.aio import AsyncMemos
from memos_client.history_rules import LONGEST_CONTENT

MIME_TYPE = "mime_type"  # names in the metadata of a memory
JSON_CONTENT = "json_content"


class MemosMemoryConfig(BaseModel):
    """Settings of a memory without its key, which is read from MEMOS_API_KEY."""

    namespace: str = "/autogen"
    limit: int = Field(default=5, ge=1, le=100)
    url: str | None = None


class MemosMemory(Memory, Component[MemosMemoryConfig]):
    """Adds the best memories for the last question of the user to a model's context.

    async_memos: the client; without it, MEMOS_URL and MEMOS_API_KEY say where to. namespace: of all its memories;
    `clear` deletes what is in it. limit: the number of memories of a query.
    """

    component_type = "memory"
    component_config_schema = MemosMemoryConfig
    component_provider_override = "memos_client.autogen.MemosMemory"

    def __init__(
        self,
        async_memos: AsyncMemos | None = None,
        *,
        namespace: str = "/autogen",
        limit: int = 5,
        url: str | None = None,
    ) -> None:
        self._memos = async_memos or AsyncMemos(url)
        self._config = MemosMemoryConfig(namespace=namespace, limit=limit, url=url)

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store a text or JSON. Raises ValueError for images and bytes; MemosError."""
        metadata = {**(content.metadata or {}), MIME_TYPE: _mime_type(content)}
        if isinstance(content.content, dict):
            metadata[JSON_CONTENT] = content.content
        await self._memos.add(_text(content), namespace=self._config.namespace, metadata=metadata)

    async def query(
        self, query: str | MemoryContent, cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """Find the best memories; with `limit` another number of them. Raises ValueError; MemosError."""
        text = query if isinstance(query, str) else _text(query)
        if not text.strip():
            return MemoryQueryResult(results=[])
        hits = await self._memos.search(
            text[:LONGEST_CONTENT],
            limit=kwargs.get("limit", self._config.limit),
            filters={"namespace": self._config.namespace},
        )
        return MemoryQueryResult(results=[_content(hit) for hit in hits if hit.score])

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add a system message with the best memories for the last message of the user. Raises MemosError."""
        asked = [message for message in await model_context.get_messages() if isinstance(message, UserMessage)]
        found = await self.query(_question(asked[-1])) if asked else MemoryQueryResult(results=[])
        if found.results:
            lines = [f"{number}. {_text(content)}" for number, content in enumerate(found.results, 1)]
            text = "\n".join(["Relevant memory content:", *lines])
            await model_context.add_message(SystemMessage(content=text))
        return UpdateContextResult(memories=found)

    async def clear(self) -> None:
        """Delete all memories of the namespace. Raises MemosError."""
        where = {"namespace": self._config.namespace}
        for memory in [memory async for memory in self._memos.memories(filters=where)]:
            await self._memos.delete(memory.id)

    async def close(self) -> None:
        """Close the connections of the client."""
        await self._memos.close()

    def _to_config(self) -> MemosMemoryConfig:
        return self._config

    @classmethod
    def _from_config(cls, config: MemosMemoryConfig) -> Self:
        return cls(namespace=config.namespace, limit=config.limit, url=config.url)


def _text(content: MemoryContent) -> str:
    if isinstance(content.content, bytes | Image):
        raise ValueError("MemosMemory stores texts and JSON, no images and no bytes.")
    return content.content if isinstance(content.content, str) else json.dumps(content.content, ensure_ascii=False)


def _question(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part for part in message.content if isinstance(part, str))


def _mime_type(content: MemoryContent) -> str:
    return content.mime_type.value if isinstance(content.mime_type, MemoryMimeType) else content.mime_type


def _content(hit: models.Memory) -> MemoryContent:
    metadata = dict(hit.metadata)
    mime_type = metadata.pop(MIME_TYPE, MemoryMimeType.TEXT.value)
    found = metadata.pop(JSON_CONTENT, hit.content)
    metadata |= {"id": hit.id, "score": hit.score}
    return MemoryContent(content=found, mime_type=_known_mime_type(mime_type), metadata=metadata)


def _known_mime_type(text: str) -> MemoryMimeType | str:
    return MemoryMimeType(text) if text in {kind.value for kind in MemoryMimeType} else text
