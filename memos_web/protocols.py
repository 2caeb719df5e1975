"""Protocols of other products, served beside Django: each route calls the REST API with the caller's key."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from governance.api.fields import is_blank
from memos_web.guards import BODY, Api, Guarded
from memos_web.inside import Query, Refused, Rest
from vault.reader.message_shapes import DUMPED, FIELDS, OF_ITEMS

JOB_SECONDS, JOB_STEP = 60.0, 0.05
# A name that is none, a key that makes no persona, and a call beside this one that makes the same.
ANSWERED_BY_MEMORIES = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT})
UNKNOWN_TO_KEY = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
PERSONAS_PAGE = 200
UNFINISHED = frozenset({"pending", "running", "cancelling"})

Json = dict[str, Any]


class NotTranslated(Exception):
    """A request that has no equal here; one sentence for its sender."""


class Call:
    """One request: its body, its parameters, and the REST API with its key."""

    def __init__(self, rest: Rest, request: Request, body: Json) -> None:
        self.rest = rest
        self.body = body
        self.path: Mapping[str, Any] = request.path_params
        self.query = dict(request.query_params)

    def memory_path(self, memory_id: Any = None) -> str:
        """The address of the memory of the body, else of the path. Raises NotTranslated where neither names one."""
        named = memory_id or self.path.get("memory_id")
        if not named:
            raise NotTranslated("`memory_id` is missing.")
        return f"memories/{quote(str(named), safe='')}/"


Answer = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True)
class Protocol:
    """The protocol of another product.

    prefix: of its addresses; routes: method, path and answer; fault: builds the body of an error from status, code,
    text and the problem of the REST API, if there is one.
    """

    name: str
    prefix: str
    routes: Sequence[tuple[str, str, Answer]]
    fault: Callable[[int, str, str, Json], Json]


class WithProtocol:
    """An ASGI application: what begins with the protocol's prefix is answered here, everything else by `others`."""

    def __init__(self, protocol: Protocol, others: ASGIApp, api: Api) -> None:
        self._prefix = protocol.prefix
        self._others = others
        routes = Starlette(
            routes=[
                Route(path, _endpoint(protocol, api, answer), methods=[method])
                for method, path, answer in protocol.routes
            ]
            + [Route("/{path:path}", _make_refusal(protocol), methods=["GET", "POST", "PUT", "PATCH", "DELETE"])]
        )
        self._guarded = Guarded(routes, api, partial(_fault, protocol), key_refusal_type="application/json")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or not path.startswith(f"{self._prefix}/"):
            await self._others(scope, receive, send)
        else:
            await self._guarded({**scope, "path": path.removeprefix(self._prefix), "root_path": ""}, receive, send)


async def memories_add(rest: Rest, asked: Json) -> Any:
    """The reply of `POST memories/`. A client's user is a persona of the key's member, which is made when it is needed.

    A persona that somebody else gave the same name is another user, except to a key that makes none. A user whose name
    has the form of an id is no persona with this id, unless there is one. Raises Refused.
    """
    name = asked.get("persona")
    if isinstance(name, str) and name.strip():
        asked = {**asked, "persona": await persona_ensure(rest, name)}
    return await rest.call("POST", "memories/", body=asked)


async def persona_ensure(rest: Rest, name: str) -> str:
    """The id of the persona of the key's member with this name, which is made when it is needed; the name itself where
    the REST API decides about it. Raises Refused."""
    if await _is_persona(rest, name):
        return name
    own = await rest.send("POST", "personas/", query={"ensure": "true"}, body={"name": name})
    if own.is_success:
        return str(own.json()["id"])
    if own.status_code not in ANSWERED_BY_MEMORIES:
        raise Refused(own)
    return name


async def _is_persona(rest: Rest, name: str) -> bool:
    try:
        persona_id = UUID(name)
    except ValueError:
        return False
    found = await rest.send("GET", f"personas/{persona_id}/")
    if not found.is_success and found.status_code not in UNKNOWN_TO_KEY:  # whether there is one is not known
        raise Refused(found)
    return found.is_success


async def memories_delete(rest: Rest, **chosen: Any) -> int:
    """Delete the `ids`, or what matches the `filters`, by a job, and wait for it. Returns the number of memories
    deleted. A user in the filters is the persona of the key's member alone. Raises NotTranslated."""
    if "filters" in chosen:
        chosen = {**chosen, "filters": await _narrow_to_own(rest, chosen["filters"])}
    reply = await rest.call("POST", "memories/actions/", body={"action": "delete", **chosen})
    job = reply["job"]
    waited = 0.0
    while job["status"] in UNFINISHED and waited < JOB_SECONDS:
        await asyncio.sleep(JOB_STEP)
        waited += JOB_STEP
        job = await rest.call("GET", f"jobs/{job['id']}/")
    if job["status"] != "succeeded":
        raise NotTranslated(f"The deletion is not done: its job {job['id']} is {job['status']}. {job['error'] or ''}")
    return int((job["result"] or {}).get("changed", 0))


async def own_personas(rest: Rest) -> dict[str, str]:
    """The ids of the personas of the key's member by their names; of a key without a member, those without one."""
    member = (await rest.call("GET", "me/"))["principal"]["member"]
    found: dict[str, str] = {}
    address: str | None = "personas/"
    query: Query | None = {"page_size": PERSONAS_PAGE}
    while address:
        page = await rest.call("GET", address, query=query)
        found |= {row["name"]: row["id"] for row in page["results"] if row["member"] == member}
        address, query = page["next"], None
    return found


async def _narrow_to_own(rest: Rest, filters: Json) -> Json:
    """The filter with ids in the place of names of personas, as additions find them; others' personas of a name do not
    match. What is excluded keeps its names, which exclude more."""
    names: set[str] = set()

    def note(name: str) -> str:
        names.add(name)
        return name

    _rename_personas(filters, note)
    if not names:
        return filters
    own, nobody = await own_personas(rest), str(uuid4())
    ids = {name: name if await _is_persona(rest, name) else own.get(name, nobody) for name in names}
    narrowed: Json = _rename_personas(filters, ids.__getitem__)
    return narrowed


def _rename_personas(node: Any, rename: Callable[[str], str], *, is_excluded: bool = False) -> Any:
    if isinstance(node, list):
        return [_rename_personas(part, rename, is_excluded=is_excluded) for part in node]
    if not isinstance(node, Mapping):
        return node
    renamed: Json = {}
    for name, value in node.items():
        if name == "persona":
            renamed[name] = _rename_operand(value, rename, is_excluded=is_excluded)
        else:
            renamed[name] = _rename_personas(value, rename, is_excluded=is_excluded != (name == "NOT"))
    return renamed


def _rename_operand(value: Any, rename: Callable[[str], str], *, is_excluded: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            operator: _rename_operand(operand, rename, is_excluded=is_excluded != (operator == "ne"))
            for operator, operand in value.items()
        }
    if isinstance(value, list):
        return [_rename_operand(part, rename, is_excluded=is_excluded) for part in value]
    return value if is_excluded or not isinstance(value, str) else rename(value)


def refuse_blank_conditions(node: Any) -> None:
    """Refuse blank values in the conditions of a deletion, which would delete more than was meant.

    Raises NotTranslated.
    """
    for name, value in node.items() if isinstance(node, Mapping) else ():
        if is_blank(value) or value in ([], {}):
            raise NotTranslated(f"`{name}` is blank: leave it out, or name what to delete.")
        for part in value if isinstance(value, list) else [value]:
            if is_blank(part) or part == {}:
                raise NotTranslated(f"`{name}` has a blank part: leave it out, or name what to delete.")
            refuse_blank_conditions(part)


def is_empty(value: Any) -> bool:
    """Return whether an option says no more than a missing one."""
    return not value or is_blank(value) or (isinstance(value, list) and all(map(is_blank, value)))


def select_parts(message: Mapping[str, Any]) -> Json:
    """The parts of a message that have a meaning here; clients add some of their own."""
    return {name: value for name, value in message.items() if name in FIELDS | DUMPED | OF_ITEMS}


def read_whole_number(asked: Mapping[str, Any], name: str, default: int, most: int) -> int:
    """The option as a number from 1 to `most`. Raises NotTranslated."""
    try:
        number = int(asked.get(name) or default)
    except (OverflowError, TypeError, ValueError) as error:
        raise NotTranslated(f"`{name}` is no whole number.") from error
    if not 1 <= number <= most:
        raise NotTranslated(f"`{name}` is between 1 and {most}.")
    return number


def join_filters(name: str, parts: list[Json]) -> Json:
    """The parts as one filter, no deeper than it must be: the REST API takes 8 levels. Raises NotTranslated."""
    if not parts:
        raise NotTranslated("A filter is empty.")
    return parts[0] if len(parts) == 1 else {name: parts}


def _endpoint(protocol: Protocol, api: ASGIApp, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            found = await answer(Call(Rest(api, request), request, request.scope[BODY]))
            return found if isinstance(found, Response) else JSONResponse(found)
        except NotTranslated as fault:
            return _fault(protocol, HTTPStatus.BAD_REQUEST, "not_translated", str(fault))
        except Refused as refused:
            problem = refused.problem
            lines = [problem.get("detail") or problem["title"]]
            lines += [f"{error['field']}: {error['message']}" for error in problem.get("errors", [])]
            status = refused.response.status_code
            headers = {k: v for k, v in refused.response.headers.items() if k == "retry-after"}
            body = protocol.fault(status, problem.get("code", "unknown"), "\n".join(lines), problem)
            return JSONResponse(body, status, headers)

    return endpoint


def _make_refusal(protocol: Protocol) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        detail = f"{request.method} {request.url.path} of {protocol.name} has no equal here."
        return _fault(protocol, HTTPStatus.NOT_IMPLEMENTED, "not_supported", detail)

    return endpoint


def _fault(protocol: Protocol, status: HTTPStatus, code: str, detail: str) -> Response:
    return JSONResponse(protocol.fault(status, code, detail, {}), status)
