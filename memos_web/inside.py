"""Calls the REST API inside this process, for the servers of other protocols that stand in front of it."""

import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import httpx2
from cachetools import TTLCache
from django.conf import settings
from starlette.requests import Request
from starlette.responses import Response
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
        "x-memory-timezone",
    }
)
# A key that was valid is let through for so long. Each call that follows is authenticated by the REST API anyway.
REMEMBERED_SECONDS, MOST_REMEMBERED = 30, 20_000


Query = Mapping[str, str | int | None]


class Refused(Exception):
    """The REST API answered with a problem."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"status {response.status_code}")
        self.response = response

    @property
    def problem(self) -> dict[str, Any]:
        """The members of the problem; without JSON, a title alone."""
        try:
            found: dict[str, Any] = self.response.json()
        except ValueError:
            return {"title": f"The memory answered with status {self.response.status_code}.", "code": "unknown"}
        return found


class Rest:
    """The REST API as one request may use it: with its key, address and context, through `channel`."""

    def __init__(self, api: ASGIApp, request: Request, *, channel: Channel = Channel.API) -> None:
        self._api = api
        self._scope = {"client": request.scope.get("client"), CHANNEL_OF_SCOPE: channel}
        self._headers = {name: value for name, value in request.headers.items() if name in PASSED_ON}
        scheme, _, key = self._headers.get("authorization", "").partition(" ")
        if scheme == "Token":  # as mem0's client sends it
            self._headers["authorization"] = f"Bearer {key}"
        self._prefix = settings.FORCE_SCRIPT_NAME or ""
        self._base = f"{request.url.scheme}://{self._headers.get('host', 'localhost')}{self._prefix}/api/v1/"

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
    ) -> Any:
        """The parsed reply of `path`, which is below `/api/v1/`; None where there is no content.

        What is None in the query is left out. Raises Refused.
        """
        response = await self.send(method, path, body=body, headers=headers, query=query)
        if response.is_success:
            return response.json() if response.content else None
        raise Refused(response)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
    ) -> httpx2.Response:
        """The reply, whatever its status."""
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=self._call_api, root_path=self._prefix),
            base_url=self._base,
            headers={**self._headers, "content-type": "application/json"},
            trust_env=False,
        ) as http:
            asked = {name: value for name, value in (query or {}).items() if value is not None}
            content = None if body is None else json.dumps(body)
            return await http.request(method, path, params=asked or None, content=content, headers=headers)

    async def _call_api(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._api({**scope, **self._scope}, receive, send)


def normalise_key(scope: Scope) -> Scope:
    """The scope with its key as the REST API takes it: mem0's client writes `Token` before it."""
    headers = [
        (name, b"Bearer " + value[6:] if name == b"authorization" and value.startswith(b"Token ") else value)
        for name, value in scope["headers"]
    ]
    return {**scope, "headers": headers}


class KeyGate:
    """Lets a request in whose API key is valid, before its body is read."""

    def __init__(self, api: ASGIApp, *, remembers: bool) -> None:
        self._api = api
        self._remembers = remembers
        self._valid: TTLCache[bytes, bool] = TTLCache(MOST_REMEMBERED, REMEMBERED_SECONDS)

    async def find_refusal(self, request: Request) -> Response | None:
        """The answer of the REST API to this key where that is no success: 401, 400 for a wrong Host, 429, 503."""
        digest = hashlib.sha256(request.headers.get("authorization", "").encode()).digest()
        if digest in self._valid:
            return None
        answer = await Rest(self._api, request).send("GET", "me/")
        if answer.status_code == HTTPStatus.OK:
            if self._remembers:
                self._valid[digest] = True
            return None
        names = ("content-type", "www-authenticate", "retry-after")
        headers = {name: answer.headers[name] for name in names if name in answer.headers}
        return Response(answer.content, answer.status_code, headers)
