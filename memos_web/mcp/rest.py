"""Calls the REST API inside this process, as the client whose MCP request is answered."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from governance.api.authentication import CHANNEL_OF_SCOPE
from governance.vocabulary import Channel

# What the REST API reads of a request beside its body: who calls, from where, and the context of the call.
PASSED_ON = frozenset(
    {
        "authorization",
        "host",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-memory-purpose",
        "x-memory-session",
        "x-memory-task",
    }
)
MOST_FIELDS = 5  # of a refusal, in the message to the model


class Rest:
    """The REST API as one MCP request may use it: the same key, address and context, through the channel `mcp`."""

    def __init__(self, api: ASGIApp, request: Request) -> None:
        self._api = api
        self._request = request

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        **query: str | int | None,
    ) -> Any:
        """The parsed reply of `path`, which is below `/api/v1/`; None where there is no content.

        A query parameter that is None is left out. Raises ToolError with a sentence that tells a model what to change.
        """
        response = await self.send(method, path, body=body, headers=headers, **query)
        if response.is_success:
            return response.json() if response.content else None
        raise ToolError(_refusal(response))

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        **query: str | int | None,
    ) -> httpx2.Response:
        """The reply, whatever its status."""
        passed = {name: value for name, value in self._request.headers.items() if name in PASSED_ON}
        passed["content-type"] = "application/json"
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=self._through_mcp),
            base_url=f"{self._request.url.scheme}://{passed.get('host', 'localhost')}/api/v1/",
            headers=passed,
            trust_env=False,
        ) as http:
            asked = {name: value for name, value in query.items() if value is not None}
            content = None if body is None else json.dumps(body)
            return await http.request(method, path, params=asked, content=content, headers=headers)

    async def _through_mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = {"client": self._request.scope.get("client"), CHANNEL_OF_SCOPE: Channel.MCP}
        await self._api({**scope, **context}, receive, send)


def _refusal(response: httpx2.Response) -> str:
    """The problem of the REST API as one text: what is wrong, its code, the fields at fault, and when to try again."""
    try:
        problem = response.json()
    except ValueError:
        return f"The memory answered with status {response.status_code}."
    lines = [f"{problem.get('detail') or problem['title']} ({problem['code']})"]
    lines += [f"{one['field']}: {one['message']}" for one in problem.get("errors", [])[:MOST_FIELDS]]
    if "retry-after" in response.headers:
        lines.append(f"Try again in {response.headers['retry-after']} seconds.")
    return "\n".join(lines)
