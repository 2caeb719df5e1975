"""A retriever and a chat history of LangChain: `MemosRetriever`, `MemosChatMessageHistory`. The extra `langchain`."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from memos_client.adapters import Clients
from memos_client.aio import AsyncMemos
from memos_client.aio_history import AsyncHistory
from memos_client.blocking import Memos
from memos_client.history import History
from memos_client.history_rules import Entry, Role
from memos_client.models import Json, Memory

FORMAT = "langchain"


class MemosRetriever(BaseRetriever):
    """Finds memories for a question, best first, at most `k`.

    memos, async_memos: the clients; without them, MEMOS_URL and MEMOS_API_KEY say where to. search: other arguments of
    `Memos.search`, such as `{"namespaces": ["/team"], "filters": {…}}`. Memories that do not match at all are left out.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    memos: Memos | None = None
    async_memos: AsyncMemos | None = None
    k: int = Field(default=10, ge=1, le=100)
    search: dict[str, Any] = Field(default_factory=dict)

    @cached_property
    def _clients(self) -> Clients:
        return Clients(self.memos, self.async_memos)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _documents(self._clients.memos.search(query, limit=k or self.k, **self.search))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _documents(await self._clients.async_memos.search(query, limit=k or self.k, **self.search))


class MemosChatMessageHistory(BaseChatMessageHistory):
    """The messages of the session `session_id`, exactly as they were added, and memories of what users state in them.

    infer: false stores the messages alone. namespace, persona: where the messages belong; by default, to the key's own.
    """

    def __init__(
        self,
        session_id: str,
        memos: Memos | None = None,
        async_memos: AsyncMemos | None = None,
        *,
        namespace: str | None = None,
        persona: str | None = None,
        infer: bool = True,
    ) -> None:
        self._clients = Clients(memos, async_memos)
        self._session_id = session_id
        self._namespace = namespace
        self._persona = persona
        self._infer = infer

    @cached_property
    def _history(self) -> History:
        return History(
            self._clients.memos,
            self._session_id,
            FORMAT,
            namespace=self._namespace,
            persona=self._persona,
            infer=self._infer,
        )

    @cached_property
    def _async_history(self) -> AsyncHistory:
        return AsyncHistory(
            self._clients.async_memos,
            self._session_id,
            FORMAT,
            namespace=self._namespace,
            persona=self._persona,
            infer=self._infer,
        )

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages, oldest first."""
        return messages_from_dict(self._history.read())

    async def aget_messages(self) -> list[BaseMessage]:
        return messages_from_dict(await self._async_history.read())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._history.add([_entry(message) for message in messages])

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._async_history.add([_entry(message) for message in messages])

    def clear(self) -> None:
        self._history.clear()

    async def aclear(self) -> None:
        await self._async_history.clear()


def _documents(memories: Sequence[Memory]) -> list[Document]:
    return [
        Document(
            page_content=memory.content,
            id=memory.id,
            metadata={
                **memory.metadata,
                "score": memory.score,
                "namespace": memory.namespace,
                "persona": memory.persona,
                "tags": list(memory.tags),
                "event_time": memory.event_time,
                "created_at": memory.created_at,
            },
        )
        for memory in memories
        if memory.score
    ]


def _entry(message: BaseMessage) -> Entry:
    calls: tuple[Json, ...] = ()
    if isinstance(message, AIMessage):
        calls = tuple(dict(call) for call in message.tool_calls)
    return Entry(
        role=_role(message),
        text=message.text,
        raw=message_to_dict(message),
        name=message.name or "",
        tool_calls=calls,
        tool_call_id=message.tool_call_id if isinstance(message, ToolMessage) else "",
    )


def _role(message: BaseMessage) -> Role:
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, SystemMessage):
        return "system"
    if isinstance(message, ToolMessage | FunctionMessage):
        return "tool"
    is_person = isinstance(message, ChatMessage) and message.role in {"user", "human"}
    return "user" if is_person else "assistant"
