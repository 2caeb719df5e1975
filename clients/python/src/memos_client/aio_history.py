"""The history of a conversation, by the client to await. `history.py` is made from it by `python make_blocking.py`."""

from collections.abc import AsyncIterator, Sequence

from memos_client.aio import AsyncMemos
from memos_client.history_rules import Entry, filters_of, is_of_history, is_same_message, message_of, raw_of
from memos_client.item_rules import parts_of
from memos_client.models import Json, Memory

MOST_MESSAGES = 1_000  # of one request
PAGE = 200


class AsyncHistory:
    """The messages of the session `session_id`, in the order of their adding, exactly as they were added.

    format_name: of the framework's messages. infer: what users state becomes memories beside the messages.
    """

    def __init__(
        self,
        memos: AsyncMemos,
        session_id: str,
        format_name: str,
        *,
        namespace: str | None = None,
        persona: str | None = None,
        infer: bool = True,
    ) -> None:
        self._memos = memos
        self._session_id = session_id
        self._format_name = format_name
        self._namespace = namespace
        self._persona = persona
        self._infer = infer

    async def add(self, entries: Sequence[Entry]) -> None:
        """Add messages at the end."""
        for part in parts_of(entries, MOST_MESSAGES):
            await self._memos.add_messages(
                [message_of(entry, self._format_name) for entry in part],
                session_id=self._session_id,
                infer=self._infer,
                namespace=self._namespace,
                persona=self._persona,
            )

    async def read(self, limit: int | None = None) -> list[Json]:
        """All messages, or the newest `limit`, oldest first."""
        found: list[Json] = []
        if limit is None or limit > 0:
            async for parts in self._newest_first():
                found.append(raw_of(parts[0]))
                if len(found) == limit:
                    break
        return found[::-1]

    async def pop(self) -> Json | None:
        """Delete the newest message and return it; None where there is none."""
        async for parts in self._newest_first():
            for memory in parts:
                await self._memos.delete(memory.id)
            raw: Json = raw_of(parts[0])
            return raw
        return None

    async def clear(self) -> None:
        """Delete all messages. What was read from them stays."""
        for memory in [memory async for parts in self._newest_first() for memory in parts]:
            await self._memos.delete(memory.id)

    async def _newest_first(self) -> AsyncIterator[list[Memory]]:
        """The memories of each message: the server stores its words and each of its tool calls by themselves."""
        where = filters_of(self._format_name)
        parts: list[Memory] = []
        async for memory in self._memos.memories(filters=where, session_id=self._session_id, page_size=PAGE):
            if not is_of_history(memory, self._session_id):
                continue
            if parts and not is_same_message(memory, parts[0]):
                yield parts
                parts = []
            parts.append(memory)
        if parts:
            yield parts
