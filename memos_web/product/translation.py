"""MemOS's words and ours: requests and memories of one in the shapes of the other. Nothing here calls anything.

A user is a persona, a cube is a namespace. The shapes are those of `memos/api/product_models.py` and
`memos/api/client.py` of the package MemoryOS 2.0.33.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memos_web.protocols import Json, NotTranslated, is_empty, join_filters, select_parts
from vault.namespaces.rules import NOT_IN_A_PART

CUBES = "/cubes/"
IN_A_PATH = re.compile(r"[\w.@+-]+")
DIGEST = 12  # hexadecimal digits
IN_METADATA = ("project_id", "manager_user_id", "app_id", "agent_id", "source")
FIELDS = {"session_id": "session_id", "tags": "tags", "user_id": "persona", "memory_id": "id", "id": "id"}
FIELDS |= {"created_at": "said_at", "create_time": "said_at", "updated_at": "updated_at", "update_time": "updated_at"}
FIELDS |= {"conversation_id": "session_id"} | {name: f"metadata.{name}" for name in IN_METADATA}
OPERATORS = ("eq", "ne", "in", "gt", "gte", "lt", "lte", "contains")
MOST_FOUND = 100
# The names that MemOS's client uses, and those of its server's routes.
NAMES_OF_CLIENT = {
    "conversation_id": "session_id",
    "tags": "custom_tags",
    "memory_limit_number": "top_k",
    "preference_limit_number": "pref_top_k",
    "tool_memory_limit_number": "tool_mem_top_k",
    "skill_limit_number": "skill_mem_top_k",
    "include_tool_memory": "search_tool_memory",
    "include_skill": "include_skill_memory",
    "knowledgebase_ids": "readable_cube_ids",
    "allow_knowledgebase_ids": "writable_cube_ids",
    "size": "page_size",
}
# What a caller may send without effect: a call ends when its memories are stored, there are no skills, and every search
# weighs words and meaning.
WITHOUT_EFFECT = frozenset(
    {"async_mode", "dedup", "rerank", "moscube", "operation", "include_skill_memory", "skill_mem_top_k", "threshold"}
    | {"neighbor_discovery", "context_format", "include_memory_view", "allow_memory_view", "allow_public"}
    | {"auto_cleanup_working", "include_embedding"}
)
EXPLICIT = "explicit_preference"
PREFERENCE_NOTE = "\nThe user stated these preferences. Follow them, unless the question says otherwise."
ROLES = frozenset({"user", "assistant", "system", "tool"})
KINDS = ("text_mem", "pref_mem", "tool_mem")


def rename_fields(body: Json) -> Json:
    """A request of MemOS's client with the names of its server's routes."""
    return {NAMES_OF_CLIENT.get(name, name): value for name, value in body.items()}


def refuse_unknown_options(body: Mapping[str, Any], *known: str) -> None:
    """Refuse a non-empty option that would be ignored. Raises NotTranslated, which names the option."""
    unknown = sorted(
        name for name, value in body.items() if name not in {*known, *WITHOUT_EFFECT} and not is_empty(value)
    )
    if unknown:
        raise NotTranslated(f"`{unknown[0]}` has no equal here. Known are {', '.join(sorted(known))}.")


def make_addition(body: Json) -> Json:
    """The body of `POST memories/` for one of `add`, without its namespace."""
    body = rename_fields(body)
    refuse_unknown_options(
        body,
        *("user_id", "session_id", "task_id", "messages", "memory_content", "custom_tags", "info", "mode"),
        *("writable_cube_ids", "mem_cube_id", *IN_METADATA),
    )
    info = body.get("info") or {}
    if not isinstance(info, Mapping):
        raise NotTranslated("`info` is no object.")
    metadata = {**info, **{name: body[name] for name in IN_METADATA if body.get(name)}}
    asked = {
        "messages": _messages(body),
        "infer": body.get("mode") != "fast",
        "persona": body.get("user_id"),
        "session_id": body.get("session_id"),
        "task_id": body.get("task_id"),
        "tags": body.get("custom_tags"),
        "metadata": metadata or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def make_changes(body: Json) -> Json:
    """The body of a PATCH for one of `update/memory`."""
    refuse_unknown_options(body, "memory_id", "content", "title")
    changes = {name: body[name] for name in ("content", "title") if body.get(name)}
    if not changes:
        raise NotTranslated("Nothing to change: give content or title.")
    return changes


def make_search(body: Json) -> Json:
    """The body of `POST memories/search/` for one of `search`; `top_k` is for all kinds together."""
    body = rename_fields(body)
    refuse_unknown_options(
        body,
        *("query", "user_id", "readable_cube_ids", "mem_cube_id", "session_id", "top_k", "relativity", "filter"),
        *("pref_top_k", "include_preference", "search_tool_memory", "tool_mem_top_k", "mode", "source", "agent_id"),
    )
    if sum(limits_of(body).values()) == 0:
        raise NotTranslated("Nothing is asked for: `top_k` is 0.")
    asked = {
        "query": body.get("query"),
        "top_k": min(sum(limits_of(body).values()), MOST_FOUND),
        "min_score": body.get("relativity"),
        "filters": filters_of(body),
        "namespaces": [namespace_of(cube) for cube in cubes_of(body, "readable_cube_ids")] or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def limits_of(body: Json) -> dict[str, int]:
    """The number of memories of each of KINDS that a search returns."""
    limits = {"text_mem": body.get("top_k", 10), "pref_mem": 0, "tool_mem": 0}
    if body.get("include_preference", True):
        limits["pref_mem"] = body.get("pref_top_k", 6)
    if body.get("search_tool_memory", True):
        limits["tool_mem"] = body.get("tool_mem_top_k", 6)
    for name, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise NotTranslated(f"The limit for {name} is no whole number.")
    return limits


def filters_of(body: Json) -> Json:
    """Our filter for all that limits a call. Pages of dialogue are left out: what they state is stored beside them."""
    pages: Json = {"NOT": {"AND": [{"semantic_type": "dialogue"}, {"layer": {"in": ["short_term", "mid_term"]}}]}}
    return join_filters("AND", [pages, *conditions_of(body)])


def conditions_of(body: Json) -> list[Json]:
    """Our filters for all that limits a call. To delete takes the pages along."""
    parts: list[Json] = [_leaf(name, body[name]) for name in ("user_id", "agent_id") if body.get(name)]
    if body.get("filter"):
        parts.append(_filter(body["filter"]))
    return parts


def cubes_of(body: Json, name: str) -> list[str]:
    """The cubes that a call names, in its list or as the one of older calls."""
    cubes = body.get(name) or ([body["mem_cube_id"]] if body.get("mem_cube_id") else [])
    if not isinstance(cubes, list) or not all(isinstance(cube, str) and cube for cube in cubes):
        raise NotTranslated(f"`{name}` is no list of names.")
    return list(dict.fromkeys(cubes))


def namespace_of(cube: str) -> str:
    """The path of a cube's namespace: the cube's name itself if that is a path. Characters that no path may have are
    replaced, and a digest keeps such names apart."""
    if cube.startswith("/"):
        return cube
    if IN_A_PATH.fullmatch(cube) and cube not in {".", ".."}:
        return f"{CUBES}{cube}"
    digest = hashlib.sha256(cube.encode()).hexdigest()[:DIGEST]
    return f"{CUBES}{NOT_IN_A_PART.sub('-', cube).strip('-')}.{digest}"


def memory(raw: Json) -> Json:
    """A memory as the server's routes answer it."""
    ref = f"[{raw['id'].partition('-')[0]}]"
    return {
        "id": raw["id"],
        "memory": raw["content"],
        "ref_id": ref,
        "metadata": {
            "id": raw["id"],
            "ref_id": ref,
            "memory": raw["content"],
            "memory_type": _type_of(raw),
            "key": raw["title"],
            "tags": raw["tags"],
            "user_id": raw["persona"]["name"] if raw["persona"] else None,
            "session_id": raw["session_id"],
            "status": raw["state"],
            "info": raw["metadata"],
            "created_at": raw["said_at"] or raw["created_at"],
            "updated_at": raw["updated_at"],
            **({"preference_type": EXPLICIT, "preference": raw["content"]} if kind_of(raw) == "pref_mem" else {}),
            "relativity": raw.get("score"),
            "embedding": [],
            "sources": [],
            "usage": raw["occasions"],
        },
    }


def detail(raw: Json) -> Json:
    """A memory as MemOS's client reads it."""
    return {
        "id": raw["id"],
        "memory_key": raw["title"],
        "memory_value": raw["content"],
        "memory_type": _type_of(raw),
        **({"preference_type": EXPLICIT, "preference": raw["content"]} if kind_of(raw) == "pref_mem" else {}),
        "conversation_id": raw["session_id"],
        "tags": raw["tags"],
        "info": raw["metadata"],
        "create_time": raw["said_at"] or raw["created_at"],
        "update_time": raw["updated_at"],
        "relativity": raw.get("score"),
    }


def kind_of(raw: Json) -> str:
    if raw["modality"] == "tool_call":
        return "tool_mem"
    return "pref_mem" if raw["semantic_type"] == "preference" else "text_mem"


def limit_by_kind(found: Sequence[Json], limits: Mapping[str, int]) -> list[Json]:
    """The best of each kind, in the order of the search."""
    left = dict(limits)
    chosen = []
    for result in found:
        kind = kind_of(result)
        if left[kind] > 0:
            left[kind] -= 1
            chosen.append(result)
    return chosen


def group_by_cube(found: Sequence[Json], cubes: Sequence[str]) -> Json:
    """Memories grouped as the server's routes do: by kind, then by cube; cubes: those that the call named."""
    named = {namespace_of(cube): cube for cube in cubes}
    groups: dict[str, dict[str, list[Json]]] = {kind: {cube: [] for cube in cubes} for kind in KINDS}
    for result in found:
        path = result["namespace"]["path"]
        groups[kind_of(result)].setdefault(named.get(path, path), []).append(memory(result))
    listed = {
        kind: [{"cube_id": cube, "memories": rows, "total_nodes": len(rows)} for cube, rows in group.items()]
        for kind, group in groups.items()
    }
    preferences = [result["content"] for result in found if kind_of(result) == "pref_mem"]
    return {
        **listed,
        "act_mem": [],
        "para_mem": [],
        "skill_mem": [],
        "pref_note": PREFERENCE_NOTE if preferences else "",
        "pref_string": _list_preferences(preferences),
    }


def group_by_kind(found: Sequence[Json]) -> Json:
    """Memories grouped as MemOS's client reads them."""
    lists = zip(KINDS, ("memory_detail_list", "preference_detail_list", "tool_memory_detail_list"), strict=True)
    grouped = {name: [detail(result) for result in found if kind_of(result) == kind] for kind, name in lists}
    return {**grouped, "preference_note": PREFERENCE_NOTE if grouped["preference_detail_list"] else ""}


def message_detail(raw: Json) -> Json:
    """A message of a conversation as MemOS's client reads it."""
    return {
        "message_id": raw["message_id"] or raw["id"],
        "conversation_id": raw["session_id"],
        "role": raw["speaker"] if raw["speaker"] in ROLES else "user",
        "content": raw["content"],
        "create_time": raw["said_at"] or raw["created_at"],
    }


def text_of(body: Json, name: str) -> str:
    """Raises NotTranslated."""
    text = body.get(name)
    if not isinstance(text, str) or not text.strip():
        raise NotTranslated(f"`{name}` is missing.")
    return text


def _list_preferences(preferences: Sequence[str]) -> str:
    """Preferences and what they are for, as MemOS hands them to a model; empty without any."""
    lines = [f"{number}. {text}" for number, text in enumerate(preferences, start=1)]
    return "\n".join(["Explicit Preference:", *lines, PREFERENCE_NOTE]) if lines else ""


def _messages(body: Json) -> list[Any]:
    given = body.get("messages")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if body.get("memory_content") and (given is None or isinstance(given, list)):
        given = [*(given or []), {"role": "user", "content": body["memory_content"]}]
    if not isinstance(given, list) or not given:
        raise NotTranslated("`messages` is no list of messages.")
    return [_message(message) for message in given]


def _message(given: Any) -> Any:
    """A message with the time at which it was said; what is no message stays, to be named by its place."""
    if not isinstance(given, Mapping):
        return given
    if given.get("type") == "text":
        return {"role": "user", "content": given.get("text")}
    said_at = given.get("chat_time") or given.get("created_at")
    return select_parts(given) | ({"timestamp": _moment(said_at)} if said_at else {})


def _moment(value: Any) -> str:
    """`chat_time` as an RFC 3339 text; without a zone it is in UTC. What is no time stays, to be named by its place."""
    try:
        when = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).isoformat()


def _filter(node: Any) -> Json:
    if not isinstance(node, Mapping):
        raise NotTranslated("A filter is an object.")
    return join_filters("AND", [_leaf(str(name), value) for name, value in node.items()])


def _leaf(name: str, value: Any) -> Json:
    if name in {"and", "or"}:
        if not isinstance(value, list):
            raise NotTranslated(f"`{name}` is no list of filters.")
        return join_filters(name.upper(), [_filter(part) for part in value])
    if value == "*":
        value = {"exists": True}
    field = FIELDS.get(name) or (f"metadata.{name.removeprefix('info.')}" if name.startswith("info.") else None)
    if field is None:
        known = ", ".join([*FIELDS, "info.…"])
        raise NotTranslated(f"Nothing is filtered by `{name}` here. Known are {known}.")
    if isinstance(value, Mapping) and (unknown := sorted({*value} - {*OPERATORS, "exists"})):
        raise NotTranslated(f"The operator `{unknown[0]}` has no equal here. Known are {', '.join(OPERATORS)}.")
    return {field: value}


def _type_of(raw: Json) -> str:
    types = {"tool_mem": "ToolTrajectoryMemory", "pref_mem": "PreferenceMemory"}
    plain = "WorkingMemory" if raw["layer"] == "short_term" else "LongTermMemory"
    return types.get(kind_of(raw), plain)
