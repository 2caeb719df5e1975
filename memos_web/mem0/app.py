"""Serves `/mem0/` beside Django: each route is a few calls of the REST API, with the caller's own key.

docs/mem0.md says what is answered, and how mem0's words map to ours.
"""

import ast
import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from memos_web.inside import KeyGate, Query, Refused, Rest
from memos_web.mem0.translation import (
    ENTITIES,
    FEEDBACK,
    Json,
    NotTranslated,
    added,
    changed,
    filters_of,
    history,
    memory,
    only,
    shown_of,
)

PREFIX = "/mem0"
LONGEST_BODY = 4 * 1024 * 1024  # bytes: 1,000 messages of a conversation
PAGE, LONGEST_PAGE, LAST_PAGE = 100, 200, 50
MOST_IN_A_BATCH = 1_000
JOB_SECONDS, JOB_STEP = 60.0, 0.05
UNFINISHED = frozenset({"pending", "running", "cancelling"})

Answer = Callable[["Call"], Awaitable[Any]]


class WithMem0:
    """An ASGI application: what begins with `/mem0/` is answered here, everything else by `others`."""

    def __init__(self, others: ASGIApp, api: ASGIApp) -> None:
        self._others = others
        self._gate = KeyGate(api)
        self._routes = Starlette(
            routes=[Route(path, _endpoint(api, answer), methods=[method]) for method, path, answer in ROUTES]
            + [Route("/{path:path}", _not_here, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or not path.startswith(f"{PREFIX}/"):
            await self._others(scope, receive, send)
        elif refusal := await self._gate.refusal(Request(scope)):
            refusal.headers["content-type"] = "application/json"  # where its client looks for `detail`
            await refusal(scope, receive, send)
        else:
            await self._routes({**scope, "path": path.removeprefix(PREFIX), "root_path": ""}, receive, send)


class Call:
    """One request: its body, its parameters, and the REST API with its key."""

    def __init__(self, rest: Rest, request: Request, body: Json) -> None:
        self.rest = rest
        self.body = body
        self.path: Mapping[str, Any] = request.path_params
        self.query = dict(request.query_params)

    def memory_path(self, memory_id: Any = None) -> str:
        return f"memories/{quote(str(memory_id or self.path['memory_id']), safe='')}/"


async def ping(call: Call) -> Json:
    me = await call.rest.call("GET", "me/")
    tenant = me["tenant"]["id"]
    return {"status": "ok", "org_id": tenant, "project_id": tenant, "user_email": me["principal"].get("email")}


async def add(call: Call) -> Json:
    asked = added(call.body)
    if "persona" in asked:
        await _ensure_persona(call.rest, asked["persona"])
    reply = await call.rest.call("POST", "memories/", body=asked)
    results = [one for one in reply["results"] if not (asked["infer"] and one["semantic_type"] == "dialogue")]
    return {"results": [{**memory(one), "event": "NONE" if one.get("duplicate") else "ADD"} for one in results]}


async def search(call: Call) -> Json:
    only(
        call.body,
        "query",
        "top_k",
        "threshold",
        "filters",
        "metadata",
        "categories",
        "show_expired",
        "fields",
        *ENTITIES,
    )
    asked = {
        "query": call.body.get("query"),
        "top_k": call.body.get("top_k"),
        "min_score": call.body.get("threshold"),
        "filters": shown_of(call.body),
    }
    reply = await call.rest.call("POST", "memories/search/", body={k: v for k, v in asked.items() if v is not None})
    found = [memory(one) for one in reply["results"]]
    fields = call.body.get("fields")
    return {"results": [{name: one.get(name) for name in fields} for one in found] if fields else found}


async def get_all(call: Call) -> Json:
    only(call.body, "filters", "categories", "start_date", "end_date", "show_expired", "page", "page_size", *ENTITIES)
    asked = {**call.body, **call.query}
    number, size = _whole(asked, "page", 1, LAST_PAGE), _whole(asked, "page_size", PAGE, LONGEST_PAGE)
    address: str | None = "memories/"
    query: Query = {"page_size": size, "filters": json.dumps(shown_of(call.body))}
    found: Json = {"count": 0, "results": [], "next": None}
    for _ in range(number):
        if address is None:
            return {"count": found["count"], "next": None, "previous": f"?page={number - 1}", "results": []}
        found = await call.rest.call("GET", address, query=query)
        address, query = found["next"], {}
    return {
        "count": found["count"],
        "next": f"?page={number + 1}&page_size={size}" if found["next"] else None,
        "previous": f"?page={number - 1}&page_size={size}" if number > 1 else None,
        "results": [memory(one) for one in found["results"]],
    }


async def get(call: Call) -> Json:
    return memory(await call.rest.call("GET", call.memory_path()))


async def update(call: Call) -> Json:
    return await _changed(call, call.path["memory_id"], call.body)


async def delete(call: Call) -> Json:
    if call.query.get("delete_linked"):
        raise NotTranslated("`delete_linked` has no equal here: versions of a memory are deleted with it.")
    await call.rest.call("DELETE", call.memory_path())
    return {"message": "Memory deleted successfully!"}


async def delete_all(call: Call) -> Json:
    asked: Json = {**call.query}
    if "filters" in asked:  # a query parameter, which the client writes as Python does
        asked["filters"] = _object(asked["filters"])
    filters = filters_of(asked)
    only(asked, "filters", *ENTITIES)
    if filters is None:
        raise NotTranslated("Name whose memories to delete: user_id, agent_id, app_id or run_id.")
    return await _deleted(call.rest, filters=filters)


async def versions(call: Call) -> list[Json]:
    memory_id = call.path["memory_id"]
    found: list[Json] = []
    address: str | None = f"{call.memory_path()}versions/"
    while address:
        page = await call.rest.call("GET", address)
        found += page["results"]
        address = page["next"]
    return history(memory_id, found)


async def users(call: Call) -> Json:
    found: list[Json] = []
    address: str | None = "personas/"
    while address:
        page = await call.rest.call("GET", address)
        found += page["results"]
        address = page["next"]
    rows = [{"id": one["id"], "name": one["name"], "type": "user", "created_at": one["created_at"]} for one in found]
    return {"count": len(rows), "next": None, "previous": None, "results": rows}


async def delete_entity(call: Call) -> Json:
    kind, name = call.path["kind"], call.path["name"]
    if f"{kind}_id" not in ENTITIES:
        raise NotTranslated(f"`{kind}` is none of user, agent, app and run.")
    await _deleted(call.rest, filters=filters_of({f"{kind}_id": name}))
    if kind == "user":
        for one in (await users(call))["results"]:
            if one["name"] == name:
                await call.rest.call("DELETE", f"personas/{one['id']}/")
    return {"message": "Entity deleted successfully!"}


async def batch_update(call: Call) -> Json:
    rows = _batch(call.body)
    for row in rows:
        await _changed(call, row["memory_id"], row)
    return {"message": f"Successfully updated {len(rows)} memories"}


async def batch_delete(call: Call) -> Json:
    rows = _batch(call.body)
    await _deleted(call.rest, ids=[row["memory_id"] for row in rows])
    return {"message": f"Successfully deleted {len(rows)} memories"}


async def feedback(call: Call) -> Json:
    only(call.body, "memory_id", "feedback", "feedback_reason")
    kind = FEEDBACK.get(call.body.get("feedback") or "")
    if kind is None:
        raise NotTranslated("Feedback is POSITIVE, NEGATIVE or VERY_NEGATIVE; it cannot be taken back.")
    note = {"note": call.body["feedback_reason"]} if call.body.get("feedback_reason") and kind != "useful" else {}
    path = f"{call.memory_path(call.body.get('memory_id'))}feedback/"
    await call.rest.call("POST", path, body={"kind": kind, **note})
    return {"message": "Feedback received", "feedback": call.body["feedback"]}


ROUTES: list[tuple[str, str, Answer]] = [
    ("GET", "/v1/ping/", ping),
    ("POST", "/v3/memories/add/", add),
    ("POST", "/v3/memories/search/", search),
    ("POST", "/v3/memories/", get_all),
    ("GET", "/v1/memories/{memory_id}/", get),
    ("PUT", "/v1/memories/{memory_id}/", update),
    ("DELETE", "/v1/memories/{memory_id}/", delete),
    ("DELETE", "/v1/memories/", delete_all),
    ("GET", "/v1/memories/{memory_id}/history/", versions),
    ("GET", "/v1/entities/", users),
    ("DELETE", "/v2/entities/{kind}/{name}/", delete_entity),
    ("PUT", "/v1/batch/", batch_update),
    ("DELETE", "/v1/batch/", batch_delete),
    ("POST", "/v1/feedback/", feedback),
]


def _endpoint(api: ASGIApp, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(await answer(Call(Rest(api, request), request, await _body(request))))
        except NotTranslated as fault:
            return _fault(HTTPStatus.BAD_REQUEST, str(fault), "not_translated")
        except Refused as refused:
            problem = refused.problem
            lines = [problem.get("detail") or problem["title"]]
            lines += [f"{one['field']}: {one['message']}" for one in problem.get("errors", [])]
            headers = {k: v for k, v in refused.response.headers.items() if k == "retry-after"}
            return JSONResponse({**problem, "detail": "\n".join(lines)}, refused.response.status_code, headers)

    return endpoint


async def _not_here(request: Request) -> Response:
    detail = f"{request.method} {request.url.path} of mem0 has no equal here."
    return _fault(HTTPStatus.NOT_IMPLEMENTED, detail, "not_supported")


def _fault(status: HTTPStatus, detail: str, code: str) -> Response:
    return JSONResponse({"detail": detail, "code": code}, status)


async def _body(request: Request) -> Json:
    """The JSON object of a request, {} without one. Raises NotTranslated."""
    received = bytearray()
    async for part in request.stream():
        received += part
        if len(received) > LONGEST_BODY:
            raise NotTranslated(f"A request may be {LONGEST_BODY} bytes long.")
    try:
        found = json.loads(bytes(received) or b"{}")
    except ValueError as error:
        raise NotTranslated("The body is no JSON.") from error
    if not isinstance(found, dict):
        raise NotTranslated("The body is no JSON object.")
    return found


async def _changed(call: Call, memory_id: Any, body: Json) -> Json:
    """Change the version that is there now."""
    path = call.memory_path(memory_id)
    present = await call.rest.call("GET", path)
    version = {"if-match": f'"{present["version"]}"'}
    changes = changed(body, present["metadata"])
    return memory(await call.rest.call("PATCH", path, body=changes, headers=version))


async def _deleted(rest: Rest, **chosen: Any) -> Json:
    """Delete the `ids`, or what matches the `filters`, by a job, and wait for it."""
    reply = await rest.call("POST", "memories/actions/", body={"action": "delete", **chosen})
    job = reply["job"]
    waited = 0.0
    while job["status"] in UNFINISHED and waited < JOB_SECONDS:
        await asyncio.sleep(JOB_STEP)
        waited += JOB_STEP
        job = await rest.call("GET", f"jobs/{job['id']}/")
    if job["status"] != "succeeded":
        raise NotTranslated(f"The deletion is not done: its job {job['id']} is {job['status']}. {job['error'] or ''}")
    return {"message": "Memories deleted successfully!"}


async def _ensure_persona(rest: Rest, name: str) -> None:
    """A persona of the caller with this name. One that is there already is used."""
    reply = await rest.send("POST", "personas/", body={"name": name})
    if not reply.is_success and reply.status_code != HTTPStatus.CONFLICT:
        raise Refused(reply)


def _batch(body: Json) -> list[Json]:
    rows = body.get("memories")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("memory_id") for row in rows):
        raise NotTranslated("`memories` is no list of objects with a memory_id.")
    if not 1 <= len(rows) <= MOST_IN_A_BATCH:
        raise NotTranslated(f"A batch has 1 to {MOST_IN_A_BATCH} memories.")
    return rows


def _whole(asked: Mapping[str, Any], name: str, default: int, most: int) -> int:
    try:
        number = int(asked.get(name) or default)
    except (TypeError, ValueError) as error:
        raise NotTranslated(f"`{name}` is no whole number.") from error
    if not 1 <= number <= most:
        raise NotTranslated(f"`{name}` is between 1 and {most}.")
    return number


def _object(text: str) -> Json:
    """An object as JSON or as Python writes it."""
    try:
        found = ast.literal_eval(text) if text.startswith("{'") else json.loads(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise NotTranslated("`filters` is no object.") from error
    if not isinstance(found, dict):
        raise NotTranslated("`filters` is no object.")
    return found
