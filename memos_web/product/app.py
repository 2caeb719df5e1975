"""Serves `/product/` beside Django: the routes of MemOS's server, and those that MemOS's client calls.

docs/memos.md says what is answered, and how MemOS's words map to ours.
"""

import json

from memos_web.inside import Query
from memos_web.product.client_routes import ROUTES as CLIENT_ROUTES
from memos_web.product.translation import (
    conditions_of,
    cubes_of,
    detail,
    filters_of,
    group_by_cube,
    group_by_kind,
    limit_by_kind,
    limits_of,
    make_addition,
    make_changes,
    make_search,
    memory,
    namespace_of,
    refuse_unknown_options,
    rename_fields,
)
from memos_web.protocols import (
    Answer,
    Call,
    Json,
    NotTranslated,
    Protocol,
    join_filters,
    memories_add,
    memories_delete,
    read_whole_number,
    refuse_blank_conditions,
)

LONGEST_PAGE, LAST_PAGE = 200, 50
OF_LISTS = ("mem_cube_id", "user_id", "agent_id", "filter", "page", "page_size")
CONDITIONS = (
    *("memory_ids", "user_id", "agent_id", "session_id", "conversation_id", "filter", "writable_cube_ids"),
    *("allow_knowledgebase_ids", "mem_cube_id"),
)
OF_KINDS = ("include_preference", "include_tool_memory", "search_tool_memory")


async def add(call: Call) -> Json:
    stored, skipped = await _add_memories(call, call.body)
    rows = [
        {
            "memory": result["content"],
            "memory_id": result["id"],
            "memory_type": memory(result)["metadata"]["memory_type"],
        }
        | {"cube_id": cube}
        for cube, result in stored
    ]
    return _reply("Memory added successfully", rows) | ({"skipped": skipped} if skipped else {})


async def add_message(call: Call) -> Json:
    stored, skipped = await _add_memories(call, rename_fields(call.body))
    first = stored[0][1]["id"] if stored else ""
    told = {"success": True, "task_id": first, "status": "completed"}
    return _reply("ok", told | ({"skipped": skipped} if skipped else {}))


async def search(call: Call) -> Json:
    found = await _search_memories(call, call.body)
    return _reply("Search completed successfully", group_by_cube(found, cubes_of(call.body, "readable_cube_ids")))


async def search_memory(call: Call) -> Json:
    return _reply("ok", group_by_kind(await _search_memories(call, rename_fields(call.body))))


async def get_memories(call: Call) -> Json:
    found, _, _ = await _list_memories(call, call.body)
    return _reply("Memories retrieved successfully", group_by_cube(found, cubes_of(call.body, "mem_cube_ids")))


async def get_memory(call: Call) -> Json:
    body = rename_fields(call.body) | {"page": call.body.get("page", 1), "page_size": call.body.get("size", 10)}
    found, total, size = await _list_memories(call, body)
    pages = {"total": total, "size": size, "current": int(body["page"] or 1), "pages": -(-total // size)}
    return _reply("ok", group_by_kind(found) | pages)


async def get_one(call: Call) -> Json:
    return _reply("Memory retrieved successfully", memory(await call.rest.call("GET", call.memory_path())))


async def get_detail(call: Call) -> Json:
    return _reply("ok", detail(await call.rest.call("GET", call.memory_path())))


async def update(call: Call) -> Json:
    """Change the version that is there now."""
    changes, path = make_changes(call.body), call.memory_path(call.body.get("memory_id"))
    version = (await call.rest.call("GET", path))["version"]
    stored = await call.rest.call("PATCH", path, body=changes, headers={"if-match": f'"{version}"'})
    return _reply("ok", detail(stored))


async def delete(call: Call) -> Json:
    """Delete memories by exactly one condition, as MemOS's client does."""
    body = rename_fields(call.body)
    refuse_unknown_options(
        body, "memory_ids", "user_id", "agent_id", "session_id", "filter", "writable_cube_ids", "mem_cube_id"
    )
    refuse_blank_conditions({name: call.body[name] for name in CONDITIONS if name in call.body})
    limits = [{"namespace": namespace_of(cube)} for cube in cubes_of(body, "writable_cube_ids")]
    if body.get("memory_ids"):
        if limits or any(body.get(name) for name in ("user_id", "agent_id", "session_id", "filter")):
            raise NotTranslated("`memory_ids` name what to delete: leave the other conditions out.")
        count = await memories_delete(call.rest, ids=body["memory_ids"])
    elif not any(body.get(name) for name in ("user_id", "agent_id", "session_id", "filter")):
        raise NotTranslated("Name what to delete: memory_ids, user_id, session_id or filter.")
    else:
        parts = [*conditions_of(body), *([{"OR": limits}] if limits else [])]
        if body.get("session_id"):
            parts.append({"session_id": body["session_id"]})
        count = await memories_delete(call.rest, filters=join_filters("AND", parts))
    told = "Memories deleted successfully" if count else "No memory matched: nothing was deleted."
    return _reply(told, {"success": True, "status": "success", "count": count})


ROUTES: list[tuple[str, str, Answer]] = [
    ("POST", "/add", add),
    ("POST", "/search", search),
    ("POST", "/get_memory", get_memories),
    ("GET", "/get_memory/{memory_id}", get_one),
    ("POST", "/delete_memory", delete),
    ("POST", "/add/message", add_message),
    ("POST", "/search/memory", search_memory),
    ("POST", "/get/memory", get_memory),
    ("GET", "/get/memory/{memory_id}", get_detail),
    ("POST", "/update/memory", update),
    ("POST", "/delete/memory", delete),
    *CLIENT_ROUTES,
]


def _fault(status: int, code: str, detail: str, problem: Json) -> Json:
    return {"code": status, "message": detail, "data": None, "error": code, "request_id": problem.get("request_id")}


PRODUCT = Protocol("MemOS", "/product", ROUTES, _fault)


def _reply(message: str, data: Json | list[Json]) -> Json:
    return {"code": 200, "message": message, "data": data}


async def _add_memories(call: Call, body: Json) -> tuple[list[tuple[str, Json]], list[Json]]:
    """The memories that were stored, each with its cube: without one, the path of its namespace. Then the messages that
    could not be stored."""
    asked = make_addition(body)
    stored, skipped = list[tuple[str, Json]](), list[Json]()
    for cube in cubes_of(body, "writable_cube_ids") or [""]:
        where = {"namespace": namespace_of(cube)} if cube else {}
        reply = await memories_add(call.rest, asked | where)
        kept = [result for result in reply["results"] if not (asked["infer"] and result["semantic_type"] == "dialogue")]
        stored += [(cube or result["namespace"]["path"], result) for result in kept]
        skipped = reply["skipped"]
    return stored, skipped


async def _search_memories(call: Call, body: Json) -> list[Json]:
    reply = await call.rest.call("POST", "memories/search/", body=make_search(body))
    return limit_by_kind(reply["results"], limits_of(body))


async def _list_memories(call: Call, body: Json) -> tuple[list[Json], int, int]:
    """The memories of a page, how many there are on all pages, and the size of a page."""
    refuse_unknown_options(body, *OF_LISTS, *OF_KINDS)
    number = read_whole_number(body, "page", 1, LAST_PAGE)
    size = read_whole_number(body, "page_size", LONGEST_PAGE, LONGEST_PAGE)
    parts = [filters_of(body)] + [{"namespace": namespace_of(cube)} for cube in cubes_of(body, "mem_cube_ids")]
    if not body.get("include_preference", True):
        parts.append({"NOT": {"semantic_type": "preference"}})
    if not body.get("include_tool_memory", body.get("search_tool_memory", True)):
        parts.append({"NOT": {"modality": "tool_call"}})
    filters = {"AND": parts} if len(parts) > 1 else parts[0]
    address: str | None = "memories/"
    query: Query = {"page_size": size, "filters": json.dumps(filters)}
    found: Json = {"count": 0, "results": []}
    for _ in range(number):
        if address is None:
            return [], found["count"], size
        found = await call.rest.call("GET", address, query=query)
        address, query = found["next"], {}
    return found["results"], found["count"], size
