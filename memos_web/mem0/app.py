"""Serves `/mem0/` beside Django: each route is a few calls of the REST API, with the caller's own key.

docs/mem0.md says what is answered, and how mem0's words map to ours.
"""

import ast
import json
from typing import Any

from memos_web.inside import Query
from memos_web.mem0.translation import (
    ENTITIES,
    FEEDBACK,
    filters_of,
    history,
    make_addition,
    make_changes,
    make_visible_filters,
    memory,
    refuse_blanks,
    refuse_unknown_options,
)
from memos_web.protocols import (
    Answer,
    Call,
    Json,
    NotTranslated,
    Protocol,
    memories_add,
    memories_delete,
    own_personas,
    read_whole_number,
)

PAGE, LONGEST_PAGE, LAST_PAGE = 100, 200, 50
MOST_IN_A_BATCH = 1_000


async def ping(call: Call) -> Json:
    me = await call.rest.call("GET", "me/")
    tenant = me["tenant"]["id"]
    return {"status": "ok", "org_id": tenant, "project_id": tenant, "user_email": me["principal"].get("email")}


async def add(call: Call) -> Json:
    asked = make_addition(call.body)
    reply = await memories_add(call.rest, asked)
    results = [result for result in reply["results"] if not (asked["infer"] and result["semantic_type"] == "dialogue")]
    rows = [{**memory(result), "event": "NONE" if result.get("duplicate") else "ADD"} for result in results]
    return {"results": rows} | ({"skipped": reply["skipped"]} if reply["skipped"] else {})


async def search(call: Call) -> Json:
    refuse_unknown_options(
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
        "filters": make_visible_filters(call.body),
    }
    fields = call.body.get("fields") or []
    if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
        raise NotTranslated("`fields` is no list of names.")
    reply = await call.rest.call("POST", "memories/search/", body={k: v for k, v in asked.items() if v is not None})
    found = [memory(result) for result in reply["results"]]
    return {"results": [{name: row.get(name) for name in fields} for row in found] if fields else found}


async def get_all(call: Call) -> Json:
    refuse_unknown_options(
        call.body, "filters", "categories", "start_date", "end_date", "show_expired", "page", "page_size", *ENTITIES
    )
    asked = {**call.body, **call.query}
    number, size = (
        read_whole_number(asked, "page", 1, LAST_PAGE),
        read_whole_number(asked, "page_size", PAGE, LONGEST_PAGE),
    )
    address: str | None = "memories/"
    query: Query = {"page_size": size, "filters": json.dumps(make_visible_filters(call.body))}
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
        "results": [memory(result) for result in found["results"]],
    }


async def get(call: Call) -> Json:
    return memory(await call.rest.call("GET", call.memory_path()))


async def update(call: Call) -> Json:
    return await _change_memory(call, call.path["memory_id"], call.body)


async def delete(call: Call) -> Json:
    if call.query.get("delete_linked"):
        raise NotTranslated("`delete_linked` has no equal here: versions of a memory are deleted with it.")
    await call.rest.call("DELETE", call.memory_path())
    return {"message": "Memory deleted successfully!"}


async def delete_all(call: Call) -> Json:
    asked: Json = {**call.query}
    if "filters" in asked:  # a query parameter, which the client writes as Python does
        asked["filters"] = _read_object(asked["filters"])
    refuse_blanks(asked)
    filters = filters_of(asked)
    refuse_unknown_options(asked, "filters", *ENTITIES)
    if filters is None:
        raise NotTranslated("Name whose memories to delete: user_id, agent_id, app_id or run_id.")
    return _deletion(await memories_delete(call.rest, filters=filters), "Memories deleted successfully!")


def _deletion(count: int, done: str, *, is_done: bool = False) -> Json:
    """The reply to a deletion, with the number of memories that it deleted: success is said of none without any."""
    return {"message": done if count or is_done else "No memory matched: nothing was deleted.", "count": count}


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
    rows = [
        {"id": persona["id"], "name": persona["name"], "type": "user", "created_at": persona["created_at"]}
        for persona in found
    ]
    return {"count": len(rows), "next": None, "previous": None, "results": rows}


async def delete_entity(call: Call) -> Json:
    kind, name = call.path["kind"], call.path["name"]
    if f"{kind}_id" not in ENTITIES:
        raise NotTranslated(f"`{kind}` is none of user, agent, app and run.")
    count = await memories_delete(call.rest, filters=filters_of({f"{kind}_id": name}))
    persona = (await own_personas(call.rest)).get(name) if kind == "user" else None
    if persona is not None:
        await call.rest.call("DELETE", f"personas/{persona}/")
    return _deletion(count, "Entity deleted successfully!", is_done=persona is not None)


async def batch_update(call: Call) -> Json:
    rows = _read_batch(call.body)
    for row in rows:
        await _change_memory(call, row["memory_id"], row)
    return {"message": f"Successfully updated {len(rows)} memories"}


async def batch_delete(call: Call) -> Json:
    rows = _read_batch(call.body)
    count = await memories_delete(call.rest, ids=[row["memory_id"] for row in rows])
    return _deletion(count, f"Successfully deleted {count} memories")


async def feedback(call: Call) -> Json:
    refuse_unknown_options(call.body, "memory_id", "feedback", "feedback_reason")
    said = call.body.get("feedback")
    kind = FEEDBACK.get(said) if isinstance(said, str) else None
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


def _fault(_status: int, code: str, detail: str, problem: Json) -> Json:
    return {**problem, "detail": detail, "code": code}


MEM0 = Protocol("mem0", "/mem0", ROUTES, _fault)


async def _change_memory(call: Call, memory_id: Any, body: Json) -> Json:
    """Change the version that is there now."""
    path = call.memory_path(memory_id)
    present = await call.rest.call("GET", path)
    version = {"if-match": f'"{present["version"]}"'}
    changes = make_changes(body, present["metadata"])
    return memory(await call.rest.call("PATCH", path, body=changes, headers=version))


def _read_batch(body: Json) -> list[Json]:
    rows = body.get("memories")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("memory_id") for row in rows):
        raise NotTranslated("`memories` is no list of objects with a memory_id.")
    if not 1 <= len(rows) <= MOST_IN_A_BATCH:
        raise NotTranslated(f"A batch has 1 to {MOST_IN_A_BATCH} memories.")
    return rows


def _read_object(text: str) -> Json:
    """An object as JSON or as Python writes it."""
    try:
        found = ast.literal_eval(text) if text.startswith("{'") else json.loads(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise NotTranslated("`filters` is no object.") from error
    if not isinstance(found, dict):
        raise NotTranslated("`filters` is no object.")
    return found
