"""mem0's words and ours: requests and memories of one in the shapes of the other. Nothing here calls anything.

A user is a persona, a run is a session, categories are tags. Agents and apps are kept in the metadata.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from operator import itemgetter
from typing import Any

from governance.api.fields import is_blank
from memos_web.protocols import Json, NotTranslated, is_empty, join_filters, refuse_blank_conditions, select_parts

IN_METADATA = ("agent_id", "app_id")
IMMUTABLE = "immutable"  # in the metadata of a memory that these routes do not change
ENTITIES = ("user_id", *IN_METADATA, "run_id")
JOINS = ("AND", "OR", "NOT")
OPERATORS = ("eq", "ne", "in", "gt", "gte", "lt", "lte", "contains")
WILDCARDS = ("*", ["*"])
OF_WILDCARD = ("eq", "ne", "in")
FIELDS = {"user_id": "persona", "run_id": "session_id", "categories": "tags", "memory_ids": "id"}
FIELDS |= {"created_at": "said_at", "timestamp": "said_at", "updated_at": "updated_at", "expiration_date": "expires_at"}
FIELDS |= {name: f"metadata.{name}" for name in IN_METADATA}
FIELDS |= {"text": "content", "keywords": "content"}
TIMES = ("created_at", "timestamp", "updated_at")
LENGTH_OF_DATE = len("2026-05-01")
FEEDBACK = {"POSITIVE": "useful", "NEGATIVE": "wrong", "VERY_NEGATIVE": "wrong"}
NO_PAGES = {"NOT": {"AND": [{"semantic_type": "dialogue"}, {"layer": {"in": ["short_term", "mid_term"]}}]}}
# What a caller may send and what then happens anyway: answers have this form, and words are always searched for.
WITHOUT_EFFECT = frozenset({"output_format", "version", "async_mode", "latest_only", "keyword_search", "rerank"})


def refuse_unknown_options(body: Mapping[str, Any], *known: str) -> None:
    """Refuse an option that would be ignored and is not empty. Raises NotTranslated, which names the option."""
    unknown = sorted(
        name for name, value in body.items() if name not in {*known, *WITHOUT_EFFECT} and not is_empty(value)
    )
    if unknown:
        raise NotTranslated(f"`{unknown[0]}` has no equal here. Known are {', '.join(sorted(known))}.")


def entities_of(body: Mapping[str, Any]) -> Json:
    """`user_id`, `agent_id`, `app_id` and `run_id` of a call, at its top level or in `filters`."""
    filters = body.get("filters") or {}
    if not isinstance(filters, Mapping):
        raise NotTranslated("`filters` is no object.")
    named = {name: filters.get(name) if is_blank(body.get(name)) else body[name] for name in ENTITIES}
    return {name: _name(name, value) for name, value in named.items() if not is_blank(value)}


def make_addition(body: Json) -> Json:
    """The body of `POST memories/` for one of `v3/memories/add/`."""
    known = ("messages", "metadata", "infer", "timestamp", "expiration_date", "filters", IMMUTABLE, "custom_categories")
    refuse_unknown_options(body, *known, *ENTITIES)
    entities = entities_of(body)
    metadata = read_metadata(body) | {name: entities[name] for name in IN_METADATA if name in entities}
    if body.get(IMMUTABLE):
        metadata[IMMUTABLE] = True
    asked = {
        "messages": _messages(body.get("messages")),
        "infer": True if body.get("infer") is None else body["infer"],
        "persona": entities.get("user_id"),
        "session_id": entities.get("run_id"),
        "metadata": metadata or None,
        "categories": _read_categories(body.get("custom_categories")),
        "event_time": moment(body["timestamp"]) if body.get("timestamp") is not None else None,
        "expires_at": end_of(body["expiration_date"]) if body.get("expiration_date") else None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _messages(given: Any) -> Any:
    """The messages of an addition, which mem0's client sends as a list; what is no message is named by its place."""
    if isinstance(given, str | Mapping):
        given = [{"role": "user", "content": given} if isinstance(given, str) else given]
    if not isinstance(given, list):
        return given
    return [select_parts(message) if isinstance(message, Mapping) else message for message in given]


def _read_categories(given: Any) -> Json | None:
    """Descriptions by name, of a list of objects as mem0's client sends it. Raises NotTranslated."""
    if not given:
        return None
    if not isinstance(given, list) or not all(isinstance(part, Mapping) for part in given):
        raise NotTranslated("`custom_categories` is no list of objects of names and descriptions.")
    return {str(name): text for part in given for name, text in part.items()}


def read_metadata(body: Mapping[str, Any]) -> Json:
    """Raises NotTranslated."""
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise NotTranslated("`metadata` is no object.")
    return dict(metadata)


def make_changes(body: Json, metadata: Json) -> Json:
    """The body of a PATCH for one of an update; metadata: of the memory, whose agent and app stay."""
    refuse_unknown_options(body, "text", "metadata", "timestamp", "expiration_date", "memory_id")
    if metadata.get(IMMUTABLE):
        raise NotTranslated("This memory is immutable: delete it, and add it anew.")
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
    """Our filter for all that limits a search or a list; None without any. What is null or blank limits nothing."""
    parts = _filters_of_node(body["filters"]) if body.get("filters") else []
    for name in (*ENTITIES, "metadata"):
        parts += _filters_of_node({name: body[name]}) if body.get(name) else []
    if body.get("categories"):
        parts.append({"tags": {"in": body["categories"]}})
    for name, operator in (("start_date", "gte"), ("end_date", "lte")):
        if not is_blank(body.get(name)):
            parts.append(_leaf("created_at", {operator: body[name]}))
    if body.get("show_expired"):
        raise NotTranslated("Expired memories are never shown: leave `show_expired` out.")
    return join_filters("AND", parts) if parts else None


def refuse_blanks(asked: Mapping[str, Any]) -> None:
    """Refuse blank names in a deletion, which would delete more than was meant. Raises NotTranslated."""
    blank = [name for name in ENTITIES if name in asked and is_blank(asked[name])]
    if blank:
        raise NotTranslated(f"`{blank[0]}` is blank: leave it out, or name what to delete.")
    refuse_blank_conditions(asked.get("filters"))


def make_visible_filters(body: Mapping[str, Any]) -> Json:
    """Return the filters without pages of dialogue: mem0 has none, and their statements are stored beside them."""
    asked = filters_of(body)
    return join_filters("AND", [asked, NO_PAGES]) if asked else NO_PAGES


def _filters_of_node(node: Any) -> list[Json]:
    """Our filters for the parts of an object, without those whose values are null or blank."""
    if not isinstance(node, Mapping):
        raise NotTranslated("A filter is an object.")
    return [_leaf(str(name), value) for name, value in node.items() if not is_blank(value)]


def _filter(node: Any) -> Json:
    return join_filters("AND", _filters_of_node(node))


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
    if name in TIMES or name == "expiration_date":
        return _filter_times(name, value)
    if name == "memory_ids" and isinstance(value, list):
        return {"id": {"in": value}}
    operators = _operators(name, value)
    if FIELDS[name] == "content" and (not isinstance(operators, Mapping) or set(operators) != {"contains"}):
        raise NotTranslated(f"A filter by `{name}` has the operator `contains` or `icontains`, and no other.")
    return {FIELDS[name]: operators}


def _operators(name: str, value: Any) -> Any:
    """Our operators for a value: `*`, as the whole value or the only one of a list, is any value."""
    if not isinstance(value, Mapping):
        _refuse_star_beside_others(name, value)
        return {"exists": True} if value in WILDCARDS else value
    operators = {
        "contains" if operator == "icontains" else str(operator): operand for operator, operand in value.items()
    }
    unknown = [operator for operator in operators if operator not in OPERATORS]
    if unknown:
        raise NotTranslated(f"The operator `{unknown[0]}` has no equal here. Known are {', '.join(OPERATORS)}.")
    ours: Json = {}
    for operator, operand in operators.items():
        _refuse_star_beside_others(name, operand)
        if operand not in WILDCARDS:
            ours[operator] = operand
        elif operator not in OF_WILDCARD or "exists" in ours:
            raise NotTranslated(f"`*` is any value of `{name}`: it goes with one of {', '.join(OF_WILDCARD)} alone.")
        else:
            ours["exists"] = operator != "ne"
    return ours


def _refuse_star_beside_others(name: str, operand: Any) -> None:
    if isinstance(operand, list) and "*" in operand and operand != ["*"]:
        raise NotTranslated(f"`*` is any value of `{name}`: leave the others out.")


def _filter_times(name: str, value: Any) -> Json:
    """Our filter for one by a time. A date is its whole day: on or before it is before the next one."""
    operators = _operators(name, value if isinstance(value, Mapping) else {"eq": value})
    if "exists" in operators:
        return {FIELDS[name]: operators}
    return join_filters("AND", [_filter_time(name, operator, operand) for operator, operand in operators.items()])


def _filter_time(name: str, operator: str, operand: Any) -> Json:
    field = FIELDS[name]
    if operator == "in":
        moments = operand if isinstance(operand, list) else [operand]
        return join_filters("OR", [_filter_time(name, "eq", moment) for moment in moments])
    if operator == "ne":
        return {"NOT": _filter_time(name, "eq", operand)}
    if name == "expiration_date":
        return {field: {operator: end_of(operand)}}
    day = _read_day(operand)
    if day is None:
        return {field: {operator: _read_time(operand)}}
    following = (day + timedelta(days=1)).isoformat()
    bounds = {
        "eq": {"gte": operand, "lt": following},
        "lte": {"lt": following},
        "gt": {"gte": following},
    }
    return {field: bounds.get(operator, {operator: operand})}


def _read_day(value: Any) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) and len(value) == LENGTH_OF_DATE else None
    except ValueError:
        return None


def _read_time(value: Any) -> str:
    """A time as the REST API takes it: a Unix time, or a text, which is in UTC without an offset."""
    if not isinstance(value, str):
        return moment(value)
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return value
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).isoformat()


def memory(raw: Json) -> Json:
    """A memory as mem0's client expects it."""
    metadata = dict(raw["metadata"])
    is_immutable = bool(metadata.pop(IMMUTABLE, False))
    return {
        "id": raw["id"],
        "memory": raw["content"],
        "user_id": raw["persona"]["name"] if raw["persona"] else None,
        **{name: metadata.pop(name, None) for name in IN_METADATA},
        "run_id": raw["session_id"] or None,
        "metadata": metadata or None,
        IMMUTABLE: is_immutable,
        "categories": raw["tags"],
        "created_at": raw["said_at"] or raw["created_at"],
        "updated_at": raw["updated_at"],
        "occasions": raw["occasions"],
        "expiration_date": last_day_of(raw["expires_at"]),
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


def last_day_of(expires_at: str | None) -> str | None:
    """The last date, in UTC, on which a memory that expires then is shown."""
    if expires_at is None:
        return None
    return (datetime.fromisoformat(expires_at).astimezone(UTC) - timedelta(microseconds=1)).date().isoformat()


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise NotTranslated(f"`{name}` is no name.")
    return str(value)
