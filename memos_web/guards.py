"""Guards of the protocols that are served beside Django: a valid key, and a body that is bounded, whole and JSON.

They hold before a route of a protocol sees a request, as the REST API's own do for its routes.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from http import HTTPStatus
from io import BytesIO
from typing import Any, NoReturn, Protocol

from django.core.exceptions import RequestAborted
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from governance.errors import DomainError, Invalid, TooLarge
from governance.transport import is_storable
from memos_web.bodies import add_length, read_body
from memos_web.inside import KeyGate, normalise_key
from memos_web.slots import Busy, send_busy

LONGEST_BODY = 4 * 1024 * 1024  # bytes: 1,000 messages of a conversation
DEEPEST = 64  # levels of a body
MOST_CONTAINERS = 200_000  # lists and objects of a body
PARSED_AT_ONCE = 64 * 1024  # bytes; what is longer is parsed in a thread, so that others are served meanwhile
BODY = "memos.body"  # the parsed body, in the scope

Fault = Callable[[HTTPStatus, str, str], Response]  # status, code, detail


class Api(Protocol):
    """The application that answers the REST API, and counts bodies."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...
    def count_body(self, scope: Any) -> AbstractContextManager[Callable[[int], None]]: ...


class Guarded:
    """An ASGI application: `app` gets the requests that pass, with the parsed body in their scope."""

    def __init__(
        self, app: ASGIApp, api: Api, fault: Fault, *, key_refusal_type: str = "", remembers_keys: bool = True
    ) -> None:
        """key_refusal_type: the content type of the answer to a key that is not valid; the REST API's own if empty.

        remembers_keys: for an `app` whose every route asks the REST API, which authenticates anyway.
        """
        self._key_refusal_type = key_refusal_type
        self._app = app
        self._api = api
        self._fault = fault
        self._gate = KeyGate(api, remembers=remembers_keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refusal := await self._gate.find_refusal(Request(scope)):
            if self._key_refusal_type:
                refusal.headers["content-type"] = self._key_refusal_type
            await refusal(scope, receive, send)
            return
        try:
            with self._api.count_body(normalise_key(scope)) as hold:
                await self._serve(scope, receive, send, hold)
        except Busy:
            await send_busy(scope, send)
        except RequestAborted:
            return

    async def _serve(self, scope: Scope, receive: Any, send: Send, hold: Callable[[int], None]) -> None:
        """Raises Busy; RequestAborted."""
        try:
            body = await read_body(scope, receive, _find_limit, hold)
            parsed = await _parse_body(body.getvalue())
        except DomainError as refusal:
            answer = self._fault(HTTPStatus(refusal.status), refusal.code, refusal.detail)
            await answer(scope, receive, send)
            return
        await self._app({**add_length(scope, body), BODY: parsed}, _replay(body, receive), send)


async def _find_limit() -> int:
    return LONGEST_BODY


async def _parse_body(content: bytes) -> dict[str, Any]:
    """The JSON object of a request, {} without one. Raises Invalid; TooLarge."""
    if len(content) <= PARSED_AT_ONCE:
        return parse_object(content)
    return await asyncio.to_thread(parse_object, content)


def parse_object(content: bytes) -> dict[str, Any]:
    """A JSON object whose depth, size and characters are bounded; {} for no content. Raises Invalid; TooLarge."""
    if not content:
        return {}
    if content.count(b"[") + content.count(b"{") > MOST_CONTAINERS:
        raise TooLarge(f"A request holds at most {MOST_CONTAINERS:,} lists and objects.")
    try:
        found = json.loads(content.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Invalid("The body is no JSON in UTF-8.") from error
    if not isinstance(found, dict):
        raise Invalid("The body is no JSON object.")
    _check_values(found)
    return found


def _check_values(found: dict[str, Any]) -> None:
    """Raises Invalid for a body that is too deep, or has a character that cannot be stored."""
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        level = [child for value in level for child in _children_of(value)]
        if not all(is_storable(value) for value in level if isinstance(value, str)):
            raise Invalid("The body has a NUL or half of a surrogate pair.")
    if level:
        raise Invalid(f"The body has more than {DEEPEST} levels.")


def _children_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (*value.keys(), *value.values())
    return value if isinstance(value, list) else ()


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _replay(body: BytesIO, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, then what the client does."""
    waiting: list[Message] = [{"type": "http.request", "body": body.getvalue(), "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
