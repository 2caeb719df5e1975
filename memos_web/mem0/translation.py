"""mem0's words and ours: requests and memories of one in the shapes of the other. Nothing here calls anything.

A user is a persona, a run is a session, categories are tags. Agents and apps are kept in the metadata.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from operator import itemgetter
from typing import Any

from memos_web.protocols import Json, NotTranslated, join_filters

IN_METADATA = ("agent_id", "app_id")
ENTITIES = ("user_id", *IN_METADATA, "run_id")
JOINS = ("AND", "OR", "NOT")
OPERATORS = ("eq", "ne", "in", "gt", "gte", "lt", "lte", "contains")
FIELDS = {"user_id": "persona", "run_id": "session_id", "categories": "tags", "created_at": "created_at"}
FIELDS |= {name: f"metadata.{name}" for name in IN_METADATA}
FEEDBACK = {"POSITIVE": "useful", "NEGATIVE": "wrong", "VERY_NEGATIVE": "wrong"}
NO_PAGES = {"NOT": {"AND": [{"semantic_type": "dialogue"}, {"layer": "short_term"}]}}
# What a caller may send and what then happens anyway: answers have this form, and words are always searched for.
WITHOUT_EFFECT = frozenset({"output_format", "version", "async_mode", "latest_only", "keyword_search", "rerank"})


def refuse_unknown_options(body: Mapping[str, Any], *known: str) -> None:
    """Refuse an option that would be ignored. Raises NotTranslated, which names the option."""
    unknown = sorted(name for name in body if name not in {*known, *WITHOUT_EFFECT} and body[name] is not None)
    if unknown:
        raise NotTranslated(f"`{unknown[0]}` has no equal here. Known are {', '.join(sorted(known))}.")


def entities_of(body: Mapping[str, Any]) -> Json:
    """`user_id`, `agent_id`, `app_id` and `run_id` of a call, at its top level or in `filters`."""
    filters = body.get("filters") or {}
    if not isinstance(filters, Mapping):
        raise NotTranslated("`filters` is no object.")
    named = {name: body.get(name) or filters.get(name) for name in ENTITIES}
    return {name: _name(name, value) for name, value in named.items() if value is not None}


def make_addition(body: Json) -> Json:
    """The body of `POST memories/` for one of `v3/memories/add/`."""
    refuse_unknown_options(body, "messages", "metadata", "infer", "timestamp", "expiration_date", "filters", *ENTITIES)
    entities = entities_of(body)
    metadata = read_metadata(body) | {name: entities[name] for name in IN_METADATA if name in entities}
    asked = {
        "messages": body.get("messages"),
        "infer": True if body.get("infer") is None else body["infer"],
        "persona": entities.get("user_id"),
        "session_id": entities.get("run_id"),
        "metadata": metadata or None,
        "event_time": moment(body["timestamp"]) if body.get("timestamp") is not None else None,
        "expires_at": end_of(body["expiration_date"]) if body.get("expiration_date") else None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def read_metadata(body: Mapping[str, Any]) -> Json:
    """Raises NotTranslated."""
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise NotTranslated("`metadata` is no object.")
    return dict(metadata)


def make_changes(body: Json, metadata: Json) -> Json:
    """The body of a PATCH for one of an update; metadata: of the memory, whose agent and app stay."""
    refuse_unknown_options(body, "text", "metadata", "timestamp", "expiration_date", "memory_id")
    changes: Json = {}
    if body.get("text") is not None:
        changes["content"] = body["text"]
    if body.get("metadata") is not None:
        changes["metadata"] = {
            **read_metadata(body),
            **{name: metadata[name] for name in IN_METADATA if name in metadata},
        }
    if body.get("timestamp") is not None:
        changes["event_time"] = moment(body["timestamp"])
    if "expiration_date" in body:
        changes["expires_at"] = end_of(body["expiration_date"]) if body["expiration_date"] else None
    if not changes:
        raise NotTranslated("Nothing to change: give text, metadata, timestamp or expiration_date.")
    return changes


def filters_of(body: Mapping[str, Any]) -> Json | None:
    """Our filter for all that limits a search or a list; None without any."""
    parts = [_filter(body["filters"])] if body.get("filters") else []
    parts += [_filter({name: body[name]}) for name in ENTITIES if body.get(name)]
    if body.get("metadata"):
        parts.append(_filter({"metadata": body["metadata"]}))
    if body.get("categories"):
        parts.append({"tags": {"in": body["categories"]}})
    for name, operator in (("start_date", "gte"), ("end_date", "lte")):
        if body.get(name):
            parts.append({"created_at": {operator: body[name]}})
    if body.get("show_expired"):
        raise NotTranslated("Expired memories are never shown: leave `show_expired` out.")
    return join_filters("AND", parts) if parts else None


def make_visible_filters(body: Mapping[str, Any]) -> Json:
    """Return the filters without pages of dialogue: mem0 has none, and their statements are stored beside them."""
    asked = filters_of(body)
    return join_filters("AND", [asked, NO_PAGES]) if asked else NO_PAGES


def _filter(node: Any) -> Json:
    if not isinstance(node, Mapping):
        raise NotTranslated("A filter is an object.")
    return join_filters("AND", [_leaf(str(name), value) for name, value in node.items()])


def _leaf(name: str, value: Any) -> Json:
    if name in JOINS:
        parts = value if isinstance(value, list) else [value]
        whole = join_filters("OR" if name == "NOT" else name, [_filter(part) for part in parts])
        return {"NOT": whole} if name == "NOT" else whole
    if name == "metadata":
        if not isinstance(value, Mapping):
            raise NotTranslated("A filter by `metadata` is an object of keys and values.")
        return join_filters(
            "AND", [{f"metadata.{key}": _operators(name, condition)} for key, condition in value.items()]
        )
    if name not in FIELDS:
        raise NotTranslated(f"Nothing is filtered by `{name}` here. Known are {', '.join([*FIELDS, 'metadata'])}.")
    return {FIELDS[name]: _operators(name, value)}


def _operators(name: str, value: Any) -> Any:
    if value == "*":
        raise NotTranslated(f"`*` has no equal here: leave `{name}` out, or name a value.")
    if not isinstance(value, Mapping):
        return value
    operators = {
        "contains" if operator == "icontains" else str(operator): operand for operator, operand in value.items()
    }
    unknown = [operator for operator in operators if operator not in OPERATORS]
    if unknown:
        raise NotTranslated(f"The operator `{unknown[0]}` has no equal here. Known are {', '.join(OPERATORS)}.")
    return operators


def memory(raw: Json) -> Json:
    """A memory as mem0's client expects it."""
    metadata = dict(raw["metadata"])
    return {
        "id": raw["id"],
        "memory": raw["content"],
        "user_id": raw["persona"]["name"] if raw["persona"] else None,
        **{name: metadata.pop(name, None) for name in IN_METADATA},
        "run_id": raw["session_id"] or None,
        "metadata": metadata or None,
        "categories": raw["tags"],
        "created_at": raw["created_at"],
        "updated_at": raw["updated_at"],
        "expiration_date": raw["expires_at"],
        **({"score": raw["score"]} if "score" in raw else {}),
    }


def history(memory_id: str, versions: list[Json]) -> list[Json]:
    """The versions of a memory, oldest first, each with the text before it; versions: as the REST API lists them."""
    ordered = sorted(versions, key=itemgetter("version"))
    before: list[Json | None] = [None, *ordered]
    return [
        {
            "id": f"{memory_id}:{version['version']}",
            "memory_id": memory_id,
            "old_memory": earlier["content"] if earlier else None,
            "new_memory": version["content"],
            "event": "UPDATE" if earlier else "ADD",
            "metadata": version["metadata"],
            "created_at": version["created_at"],
        }
        for earlier, version in zip(before, ordered, strict=False)
    ]


def moment(value: Any) -> str:
    """A Unix time or an RFC 3339 text as an RFC 3339 text."""
    if isinstance(value, str):
        return value
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise NotTranslated("`timestamp` is no Unix time in seconds.") from error


def end_of(day: Any) -> str:
    """The moment at which `day`, a date such as 2026-11-23, is over in UTC."""
    try:
        following = date.fromisoformat(day) + timedelta(days=1)
    except (TypeError, ValueError, OverflowError) as error:
        raise NotTranslated("`expiration_date` is no date such as 2026-11-23.") from error
    return datetime.combine(following, time.min, UTC).isoformat()


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise NotTranslated(f"`{name}` is no name.")
    return str(value)
