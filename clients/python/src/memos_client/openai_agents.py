"""A session of the OpenAI Agents SDK: `MemosSession`. Install the extra `openai-agents`."""

import json
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings, resolve_session_limit

from memos_client.aio import AsyncMemos
from memos_client.aio_history import AsyncHistory
from memos_client.history_rules import Entry, Role, text_of_parts
from memos_client.models import Json

FORMAT = "openai-agents"
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


class MemosSession(SessionABC):
    """The items of a session, exactly as the SDK added them, and memories of what users state in them.

    async_memos: the client; without it, MEMOS_URL and MEMOS_API_KEY say where to. infer: false stores the items alone.
    namespace, persona: where the items belong; by default, to the key's own.
    """

    def __init__(
        self,
        session_id: str,
        async_memos: AsyncMemos | None = None,
        *,
        namespace: str | None = None,
        persona: str | None = None,
        infer: bool = True,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._history = AsyncHistory(
            async_memos or AsyncMemos(), session_id, FORMAT, namespace=namespace, persona=persona, infer=infer
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """All items, or the newest `limit`, oldest first. Raises MemosError."""
        items = await self._history.read(resolve_session_limit(limit, self.session_settings))
        return cast(list[TResponseInputItem], items)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end. Raises MemosError."""
        await self._history.add([_entry(cast(Json, item)) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Delete the newest item and return it; None where there is none. Raises MemosError."""
        return cast(TResponseInputItem | None, await self._history.pop())

    async def clear_session(self) -> None:
        """Delete all items. Memories of what was stated in them stay. Raises MemosError."""
        await self._history.clear()


def _entry(item: Json) -> Entry:
    """An item as the server reads it: a message, the call of a tool, what a tool answered, or something else."""
    kind = item.get("type", "message")
    if kind == "message":
        return Entry(ROLES.get(item.get("role", ""), "assistant"), text_of_parts(item.get("content")), item)
    if kind == "function_call":
        return Entry("assistant", "", item, tool_calls=(item,))
    if kind == "function_call_output":
        return Entry("tool", _output_text(item.get("output")), item, tool_call_id=str(item.get("call_id", "")))
    return Entry("tool", json.dumps(item, ensure_ascii=False), item)


def _output_text(output: Any) -> str:
    return text_of_parts(output) or json.dumps(output, ensure_ascii=False)
