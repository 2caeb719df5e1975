"""A memory block of LlamaIndex: `MemosMemoryBlock`. Install the extra `llama-index`."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock
from pydantic import Field

from memos_client.aio import AsyncMemos
from memos_client.history_rules import LONGEST_CONTENT, Role
from memos_client.item_rules import parts_of
from memos_client.models import Json

SESSION = "session_id"  # name that LlamaIndex gives to its session in a message's additional_kwargs
MOST_MESSAGES = 1_000  # of one request
ROLES: dict[MessageRole, Role] = {
    MessageRole.USER: "user",
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}


class MemosMemoryBlock(BaseMemoryBlock[str]):
    """Stores the messages that leave the short-term memory, and inserts what the server knows for the last question.

    async_memos: the client; without it, MEMOS_URL and MEMOS_API_KEY say where to. token_budget: of the inserted text.
    persona, namespace: where the messages belong; by default, to the key's own.
    """

    name: str = "MemOS"
    description: str | None = "Memories of earlier conversations."
    async_memos: AsyncMemos = Field(default_factory=AsyncMemos, exclude=True)
    token_budget: int = Field(default=2_000, ge=1, le=100_000)
    persona: str | None = None
    namespace: str | None = None

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """The text for the newest message of the user; empty without one. Raises MemosError."""
        asked = next((message for message in reversed(messages or []) if message.role is MessageRole.USER), None)
        question = (asked.content or "").strip() if asked else ""
        if not question:
            return ""
        found = await self.async_memos.context(
            question[:LONGEST_CONTENT],
            token_budget=self.token_budget,
            persona=self.persona,
            namespaces=[self.namespace] if self.namespace else None,
        )
        return found.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages that have a text. Raises MemosError."""
        for session_id, said in _by_session(messages):
            for part in parts_of(said, MOST_MESSAGES):
                await self.async_memos.add_messages(
                    part, session_id=session_id, persona=self.persona, namespace=self.namespace
                )


def _by_session(messages: Sequence[ChatMessage]) -> list[tuple[str | None, list[Json]]]:
    """The messages of each session, in order, as the server takes them."""
    sessions: dict[str | None, list[Json]] = {}
    for message in messages:
        text = (message.content or "").strip()[:LONGEST_CONTENT]
        if text:
            session_id = message.additional_kwargs.get(SESSION)
            role = ROLES.get(message.role, "assistant")
            sessions.setdefault(session_id, []).append({"role": role, "content": text})
    return list(sessions.items())
