"""The client to await. `blocking.py` is made from this file by `python make_blocking.py`."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self
from uuid import uuid4

import httpx

from memos_client.errors import ApiError, ConnectionFailed, error_of, retry_after_of
from memos_client.models import (
    Answer,
    Context,
    Conversation,
    Json,
    Memory,
    Namespace,
    StreamEvent,
    Version,
    memories_of,
)
from memos_client.wire import (
    FIRST_WAIT,
    LONGEST_WAIT,
    REPEATABLE,
    changed_fields,
    client_options,
    fields,
    is_worth_a_retry,
    list_query,
    path_of,
    read_event,
)

Feedback = Literal["useful", "wrong", "outdated", "sensitive"]


class AsyncMemos:
    """The memory of one API key.

    `url` and `api_key` default to the environment's MEMOS_URL and MEMOS_API_KEY. `retries`: how often a call is sent
    again after a broken connection, a 429 or a 503; a POST carries an Idempotency-Key, so that nothing is done twice.
    `purpose`, `session` and `task` are the context of every call, as policies see it. Use it as a context manager, or
    call `close()`.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        purpose: str = "",
        session: str = "",
        task: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        context = {"X-Memory-Purpose": purpose, "X-Memory-Session": session, "X-Memory-Task": task}
        self._http = httpx.AsyncClient(transport=transport, **client_options(url, api_key, timeout, context))
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def me(self) -> Json:
        """The principal of the key: its tenant, roles, scopes and limits."""
        return dict(await self._call("GET", "me/"))

    async def add(
        self,
        content: str,
        *,
        tags: Sequence[str] | None = None,
        namespace: str | None = None,
        persona: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        event_time: datetime | None = None,
        ttl_seconds: int | None = None,
        **more: Any,
    ) -> Memory:
        """Store one memory, word for word. `more`: any other field of `POST memories/`."""
        body = fields(
            content=content,
            tags=tags,
            namespace=namespace,
            persona=persona,
            session_id=session_id,
            title=title,
            metadata=metadata,
            event_time=event_time,
            ttl_seconds=ttl_seconds,
            **more,
        )
        reply = await self._call("POST", "memories/", body)
        return Memory.of(reply["results"][0])

    async def add_messages(
        self, messages: Sequence[Mapping[str, Any]], *, session_id: str | None = None, infer: bool = True, **more: Any
    ) -> list[Memory]:
        """Store a conversation: messages as `{"role": "user", "name": "Anna", "content": "…"}`.

        With `infer`, what the messages state becomes memories; without, each message is one memory, word for word.
        """
        body = fields(messages=list(messages), session_id=session_id, infer=infer, **more)
        reply = await self._call("POST", "memories/", body)
        return memories_of(reply["results"])

    async def add_all(self, items: Sequence[Mapping[str, Any]]) -> list[Memory]:
        """Store up to 1,000 memories, all or none; each item has the fields of `POST memories/`."""
        bodies = [fields(**item) for item in items]
        reply = await self._call("POST", "memories/bulk/", {"items": bodies})
        return [Memory.of(result["memory"]) for result in reply["results"]]

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | None = None,
        namespaces: Sequence[str] | None = None,
        personas: Sequence[str] | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> list[Memory]:
        """The best memories for a question, best first. `filters` as in the API: `{"tags": {"contains": "birds"}}`."""
        body = fields(
            query=query,
            top_k=limit,
            mode=mode,
            namespaces=namespaces,
            personas=personas,
            session_id=session_id,
            filters=filters,
            **more,
        )
        reply = await self._call("POST", "memories/search/", body)
        return memories_of(reply["results"])

    async def context(
        self,
        query: str,
        *,
        token_budget: int = 2000,
        persona: str | None = None,
        session_id: str | None = None,
        **more: Any,
    ) -> Context:
        """Collect the memories that a model should know before it answers, within a budget of tokens.

        `more`: any other field of `POST memories/context/`.
        """
        body = fields(query=query, token_budget=token_budget, persona=persona, session_id=session_id, **more)
        return Context.of(await self._call("POST", "memories/context/", body))

    async def get(self, memory_id: str) -> Memory:
        """Read one memory."""
        return Memory.of(await self._call("GET", path_of("memories", memory_id)))

    async def memories(
        self, *, page_size: int = 100, filters: Mapping[str, Any] | None = None, **named: Any
    ) -> AsyncIterator[Memory]:
        """Each memory that matches, newest first; pages are read as they are needed.

        `filters` as of a search; `named`: namespace, tags and the other parameters of `GET memories/`.
        """
        address: str | None = "memories/"
        query: Mapping[str, Any] | None = list_query(filters, page_size=page_size, **named)
        while address:
            page = await self._call("GET", address, query=query)
            for raw in page["results"]:
                yield Memory.of(raw)
            address, query = page["next"], None

    async def count(self, *, filters: Mapping[str, Any] | None = None, **named: Any) -> int:
        """The number of memories that match, as of `memories`."""
        return int((await self._call("GET", "memories/", query=list_query(filters, page_size=1, **named)))["count"])

    async def namespaces(self, path: str | None = None, *, page_size: int = 200) -> AsyncIterator[Namespace]:
        """Each namespace that the key may read, by path: `path` and what lies below it, or all."""
        address: str | None = "namespaces/"
        query: Mapping[str, Any] | None = fields(page_size=page_size, path=path)
        while address:
            page = await self._call("GET", address, query=query)
            for raw in page["results"]:
                yield Namespace.of(raw)
            address, query = page["next"], None

    async def update(self, memory: Memory, *, overwrite: bool = False, **changes: Any) -> Memory:
        """Make a new version of `memory`, as you read it; None clears a field.

        Raises VersionConflict where it was changed since, unless you `overwrite` what anybody else wrote.
        """
        headers = {"If-Match": "*" if overwrite else f'"{memory.version}"'}
        body = changed_fields(changes)
        return Memory.of(await self._call("PATCH", path_of("memories", memory.id), body, headers=headers))

    async def delete(self, memory_id: str) -> None:
        """Delete a memory. `restore` takes it back within the grace period."""
        await self._call("DELETE", path_of("memories", memory_id))

    async def restore(self, memory_id: str) -> Memory:
        """Take back a memory that was deleted or has expired."""
        return Memory.of(await self._call("POST", path_of("memories", memory_id, "restore"), {}))

    async def history(self, memory_id: str) -> list[Version]:
        """All versions of a memory, newest first."""
        address: str | None = path_of("memories", memory_id, "versions")
        versions: list[Version] = []
        while address:
            page = await self._call("GET", address)
            versions += map(Version.of, page["results"])
            address = page["next"]
        return versions

    async def fuse(self, memory_ids: Sequence[str], *, content: str | None = None, reason: str | None = None) -> Memory:
        """Make one memory of several; without `content` the server proposes the text. The parents stay readable."""
        return Memory.of(
            await self._call("POST", "memories/fuse/", fields(ids=memory_ids, content=content, reason=reason))
        )

    async def promote(self, memory_id: str, layer: str) -> Memory:
        """Move a memory to another layer: `short_term`, `mid_term` or `long_term`."""
        return Memory.of(await self._call("POST", path_of("memories", memory_id, "promote"), {"layer": layer}))

    async def feedback(self, memory_id: str, kind: Feedback, *, note: str | None = None) -> Json:
        """Say that a memory is useful, wrong, outdated or sensitive."""
        return dict(await self._call("POST", path_of("memories", memory_id, "feedback"), fields(kind=kind, note=note)))

    async def conversation(self, *, title: str | None = None, persona: str | None = None) -> Conversation:
        """Begin a conversation."""
        return Conversation.of(await self._call("POST", "conversations/", fields(title=title, persona=persona)))

    async def ask(self, conversation: Conversation, question: str) -> Answer:
        """Ask in a conversation; the whole answer with its citations."""
        path = path_of("conversations", conversation.id, "turns")
        return Answer.of(await self._call("POST", path, {"content": question}))

    async def ask_stream(self, conversation: Conversation, question: str) -> AsyncIterator[StreamEvent]:
        """Ask in a conversation; the answer as it is written. It is not sent again after a failure."""
        path = path_of("conversations", conversation.id, "turns")
        async with self._streamed(path, {"content": question}) as response:
            name = ""
            async for line in response.aiter_lines():
                name, event = read_event(name, line)
                if event:
                    yield event

    @asynccontextmanager
    async def _streamed(self, path: str, body: Json) -> AsyncIterator[httpx.Response]:
        try:
            async with self._http.stream("POST", path, json=body, headers={"Accept": "text/event-stream"}) as response:
                if response.is_error:
                    await response.aread()
                    raise error_of(response)
                yield response
        except httpx.TransportError as error:
            raise ConnectionFailed(str(error)) from error

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON of the reply. Raises ApiError; ConnectionFailed."""
        sent = dict(headers or {})
        if method == "POST":
            sent["Idempotency-Key"] = str(uuid4())
        content = None if body is None else json.dumps(body)
        wait = FIRST_WAIT
        for left in range(self._retries, -1, -1):
            refusal: ApiError | ConnectionFailed
            try:
                response = await self._http.request(method, path, content=content, params=query, headers=sent)
            except httpx.TransportError as error:
                refusal, asked = ConnectionFailed(str(error)), None
                repeatable = method in REPEATABLE
            else:
                if response.is_success:
                    return response.json() if response.content else None
                refusal, asked = error_of(response), retry_after_of(response)
                repeatable = is_worth_a_retry(refusal)
            if not (left and repeatable):
                raise refusal
            await asyncio.sleep(min(LONGEST_WAIT, asked if asked is not None else wait))
            wait *= 2
        raise AssertionError("the last try returns or raises")
