"""An agent of a test: the SDK's client, with the key of a person."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from memos_web.handler import MOST_AT_WORK, ThreadedHandler
from memos_web.mcp.app import WithMcp

T = TypeVar("T")


class ToolRefused(Exception):
    """The tool answered with an error; its text."""


class Agent:
    """Calls tools by name."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Return the tool's answer. Raises ToolRefused."""
        result = await self.client.call_tool(name, arguments)
        if result.is_error:
            (text,) = result.content
            assert isinstance(text, TextContent)
            raise ToolRefused(text.text)
        assert result.structured_content is not None
        return dict(result.structured_content)

    async def find_refusal(self, name: str, /, **arguments: Any) -> str:
        """The sentence that a tool refuses with."""
        try:
            answer = await self.tool(name, **arguments)
        except ToolRefused as refused:
            return str(refused)
        raise AssertionError(f"{name} was not refused: {answer}")


def as_agent(key: str, act: Callable[[Agent], Awaitable[T]], *, mode: str = "auto", **headers: str) -> T:
    """Run `act` with an agent of this process's own server that sends `key` and the `headers`."""

    async def run() -> T:
        app = WithMcp(ThreadedHandler())
        async with running(app), connect_agent(key, "http://testserver/mcp/", app=app, mode=mode, **headers) as agent:
            return await act(agent)

    return asyncio.run(run())


@asynccontextmanager
async def connect_agent(
    key: str, url: str, *, app: WithMcp | None = None, mode: str = "auto", **headers: str
) -> AsyncIterator[Agent]:
    """An agent of the server at `url`, or of `app` in this process."""
    sent = {"Authorization": f"Bearer {key}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx2.ASGITransport(app=app) if app else None
    async with (
        httpx2.AsyncClient(transport=transport, headers=sent, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield Agent(client)


@asynccontextmanager
async def running(app: WithMcp) -> AsyncIterator[None]:
    """Start and stop the application as uvicorn does."""
    to_app: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    served = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        await served
        await _finish_requests(app)


async def _finish_requests(app: WithMcp) -> None:
    """Wait for requests whose client has left: their threads must not outlive the database of the test."""
    handler = app._django
    assert isinstance(handler, ThreadedHandler)
    while handler._at_work._free < MOST_AT_WORK:
        await asyncio.sleep(0.005)
