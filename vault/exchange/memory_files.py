"""Files of memory products and agents: mem0, OpenMemory, the MCP memory server, Letta, Graphiti, LangGraph. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from governance.errors import Invalid
from vault.exchange.archives import Document, Entries, end_of_day, short_text, text_item, unfit_entry
from vault.exchange.items import Item, Unfit
from vault.vocabulary import SemanticType, State

MEM0_LISTS = ("results", "memories", "data")
TEXT_NAMES = ("memory", "text", "content", "data")
TIME_NAMES = ("created_at", "timestamp", "updated_at")
OPENMEMORY = "memories.json"
LETTA_ROLES = ("user", "assistant")
SENDING = "send_message"  # the tool by which agents of MemGPT speak


def _rows(document: Any, names: Sequence[str], what: str) -> list[Any]:
    """The list that a document is, or has under one of the names. Raises Invalid."""
    rows = (
        next((document[name] for name in names if name in document), None) if isinstance(document, dict) else document
    )
    if not isinstance(rows, list):
        raise Invalid(f"{what} is a list, or an object with one under {' or '.join(names)}.")
    return rows


def _first_text(row: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((row[name] for name in names if isinstance(row.get(name), str)), "")


def _first_value(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name)), None)


# mem0 and OpenMemory


def mem0_entries(documents: Sequence[Document]) -> Entries:
    """The memories of mem0: what `get_all` and exports answer."""
    for document in documents:
        for number, entry in enumerate(_rows(document.json(), MEM0_LISTS, "A mem0 export"), 1):
            yield f"memory {number}{document.place}", partial(_mem0_item, entry)


def _mem0_item(entry: Any) -> Item:
    """Raises Unfit."""
    if not isinstance(entry, dict):
        raise Unfit("malformed")
    payload = entry.get("payload")  # as vector stores hold it
    entry = {**payload, **entry} if isinstance(payload, dict) else entry
    if str(entry.get("event", "")).upper() == "DELETE" or entry.get("deleted_at"):
        raise Unfit("deleted")
    metadata = entry.get("metadata") or {}
    categories = entry.get("categories") or []
    if not isinstance(metadata, dict) or not isinstance(categories, list):
        raise Unfit("malformed")
    return text_item(
        _first_text(entry, TEXT_NAMES),
        id=str(entry.get("id") or ""),
        tags=tuple(str(category) for category in categories),
        at=entry.get("created_at"),
        metadata={**metadata, **{name: str(entry[name]) for name in ("agent_id", "app_id") if entry.get(name)}},
        labels={
            "persona": str(entry.get("user_id") or ""),
            "session_id": str(entry.get("run_id") or ""),
            "expires_at": end_of_day(entry.get("expiration_date")),
        },
    )


def openmemory_entries(documents: Sequence[Document]) -> Entries:
    """The memories of OpenMemory's backup: a zip with memories.json, or that file. Archived ones stay archived."""
    for document in documents:
        if document.name and document.last_name != OPENMEMORY:
            is_copy = document.last_name.startswith("memories.jsonl")
            yield document.skip("repeated" if is_copy else "not_text")
            continue
        backup = document.json()
        rows = _rows(backup, ("memories",), "A backup of OpenMemory")
        names = [_names_by_id(backup, part) for part in ("categories", "apps")]
        owner = backup.get("user") if isinstance(backup, dict) else None
        persona = str(owner.get("user_id") or "") if isinstance(owner, dict) else ""
        for number, row in enumerate(rows, 1):
            yield f"memory {number}{document.place}", partial(_openmemory_item, row, persona, *names)


def _names_by_id(backup: Any, part: str) -> dict[str, str]:
    rows = backup.get(part) if isinstance(backup, dict) else None
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {str(row.get("id")): str(row.get("name")) for row in rows}


def _openmemory_item(row: Any, persona: str, categories: Mapping[str, str], apps: Mapping[str, str]) -> Item:
    """Raises Unfit."""
    if not isinstance(row, dict):
        raise Unfit("malformed")
    if row.get("state") == "deleted":
        raise Unfit("deleted")
    metadata, ids = row.get("metadata") or {}, row.get("category_ids") or []
    if not isinstance(metadata, dict) or not isinstance(ids, list):
        raise Unfit("malformed")
    app = apps.get(str(row.get("app_id")))
    state = State.ARCHIVED if row.get("state") == "archived" else State.GENERATED
    return text_item(
        _first_text(row, ("content",)),
        id=str(row.get("id") or ""),
        tags=tuple(categories[key] for key in map(str, ids) if key in categories),
        at=row.get("created_at"),
        metadata={**metadata, **({"app_id": app} if app else {})},
        labels={"persona": persona, "state": state},
    )


# The MCP memory server


def mcp_memory_entries(documents: Sequence[Document]) -> Entries:
    """Observations and relations of a knowledge graph, one JSON object a line."""
    for document in documents:
        for number, line in enumerate(document.lines(), 1):
            if line.strip():
                yield from _graph_entries(f"line {number}{document.place}", _load_object(line))


def _load_object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _graph_entries(place: str, row: dict[str, Any]) -> Entries:
    name, observations = short_text(row.get("name"), 500), row.get("observations")
    if row.get("type") == "relation":
        yield place, partial(_relation_item, row)
    elif row.get("type") != "entity" or not name or not isinstance(observations, list):
        yield place, unfit_entry("malformed")
    elif not observations:
        yield place, unfit_entry("empty")
    else:
        kind = short_text(row.get("entityType"), 100)
        for text in observations:
            yield place, partial(_observation_item, text, name, kind)


def _observation_item(text: Any, name: str, kind: str) -> Item:
    if not isinstance(text, str):
        raise Unfit("malformed")
    return text_item(
        text,
        id=_identity("observation", name, text),
        title=name,
        tags=(kind,) if kind else (),
        metadata={"entity": name, "entity_type": kind},
    )


def _relation_item(row: Mapping[str, Any]) -> Item:
    ends = [row.get(name) for name in ("from", "relationType", "to")]
    if not all(isinstance(end, str) and end for end in ends):
        raise Unfit("malformed")
    source, kind, target = map(str, ends)
    return text_item(
        f"{source} {kind.replace('_', ' ')} {target}",
        id=_identity("relation", *map(str, ends)),
        title=source[:500],
        metadata={"entity": source, "relation": kind, "target": target},
    )


def _identity(*parts: str) -> str:
    """Return an id for an entry that has none: the hash of what it says."""
    return sha256("\x00".join(parts).encode(errors="replace")).hexdigest()


# Letta


def letta_entries(documents: Sequence[Document]) -> Entries:
    """Memory blocks, and messages of the person and the agent. Tools, prompts and secrets are not read."""
    for document in documents:
        agent_file = document.json()
        if not isinstance(agent_file, dict):
            raise Invalid("An agent file of Letta is an object.")
        agents = _list_of(agent_file, "agents") or [agent_file]
        blocks = [
            *_list_of(agent_file, "blocks"),
            *(part for agent in agents for part in _list_of(agent, "core_memory")),
        ]
        for number, block in enumerate(blocks, 1):
            yield f"block {number}{document.place}", partial(_block_item, block)
        for agent in agents:
            for number, message in enumerate(_list_of(agent, "messages"), 1):
                yield from _letta_message(f"message {number}{document.place}", agent, message)
        for number, passage in enumerate(_list_of(agent_file, "passages"), 1):
            yield f"passage {number}{document.place}", partial(_passage_item, passage)


def _list_of(row: Any, name: str) -> list[Any]:
    found = row.get(name) if isinstance(row, dict) else None
    return found if isinstance(found, list) else []


def _block_item(block: Any) -> Item:
    if not isinstance(block, dict) or not isinstance(block.get("value"), str):
        raise Unfit("malformed")
    label = short_text(block.get("label"), 500)
    kind = SemanticType.PROFILE if label == "human" else SemanticType.FACT
    return text_item(block["value"], title=label, semantic_type=kind, metadata={"letta_block": label})


def _passage_item(passage: Any) -> Item:
    if not isinstance(passage, dict):
        raise Unfit("malformed")
    tags = tuple(str(tag) for tag in _list_of(passage, "tags"))
    text = _first_text(passage, ("text", "content"))
    return text_item(text, id=str(passage.get("id") or ""), tags=tags, at=passage.get("created_at"))


def _letta_message(place: str, agent: Any, message: Any) -> Entries:
    if not isinstance(message, dict) or message.get("role") not in LETTA_ROLES:
        yield place, unfit_entry("other_role" if isinstance(message, dict) else "malformed")
        return
    texts = _sent_texts(message) or [_unpack_user_message(_message_text(message))]
    name = short_text(agent.get("id")) or short_text(agent.get("name"))
    for number, text in enumerate(texts):
        identity = short_text(message.get("id"), 150)
        yield place, partial(_message_item, text, message, name, f"{name[:40]}/{identity}/{number}" if identity else "")


def _message_item(text: str | None, message: Mapping[str, Any], session: str, identity: str) -> Item:
    if text is None:
        raise Unfit("other_role")
    return text_item(
        text,
        id=identity,
        at=message.get("created_at"),
        labels={"speaker": message["role"], "session_id": session},
        semantic_type=SemanticType.DIALOGUE,
    )


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(_first_text(part, ("text",)) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else _first_text(message, ("text",))


def _unpack_user_message(text: str) -> str | None:
    """The words within the JSON that an agent is sent; None for a heartbeat or another event of the system."""
    packed = _load_object(text.encode(errors="replace")) if text.startswith("{") else {}
    if packed.get("type") in {"heartbeat", "system_alert", "login"}:
        return None
    return packed["message"] if isinstance(packed.get("message"), str) else text


def _sent_texts(message: Mapping[str, Any]) -> list[str | None]:
    calls = [call.get("function") for call in _list_of(message, "tool_calls") if isinstance(call, dict)]
    sent = [call.get("arguments") for call in calls if isinstance(call, dict) and call.get("name") == SENDING]
    texts = [_load_object(text.encode(errors="replace")).get("message") for text in sent if isinstance(text, str)]
    return [text for text in texts if isinstance(text, str)]


# Graphiti and Zep


def graphiti_entries(documents: Sequence[Document]) -> Entries:
    """Episodes, the facts of edges with their validity, and the summaries of nodes."""
    for document in documents:
        graph = document.json()
        graph = {"episodes": graph} if isinstance(graph, list) else graph
        parts = (("episodes", _episode_item), ("edges", _edge_item), ("facts", _edge_item), ("nodes", _node_item))
        if not isinstance(graph, dict) or not any(_list_of(graph, name) for name, _ in parts):
            raise Invalid("An export of Graphiti is an object with episodes, edges or nodes.")
        for name, make in parts:
            for number, row in enumerate(_list_of(graph, name), 1):
                yield f"{name.removesuffix('s')} {number}{document.place}", partial(_graph_item, make, row)


def _graph_item(make: Any, row: Any) -> Item:
    if not isinstance(row, dict):
        raise Unfit("malformed")
    item: Item = make(row)
    return item


def _graph_metadata(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    return {f"graphiti_{name}": row[name] for name in names if short_text(row.get(name))}


def _episode_item(row: Mapping[str, Any]) -> Item:
    return text_item(
        _first_text(row, ("content", "episode_body", "data")),
        id=str(row.get("uuid") or ""),
        title=short_text(row.get("name"), 500),
        at=_first_value(row, ("valid_at", "reference_time", "created_at")),
        labels={"session_id": short_text(row.get("session_id")), "speaker": short_text(row.get("role"))},
        metadata=_graph_metadata(row, ("group_id", "source", "source_description")),
        semantic_type=SemanticType.DIALOGUE if row.get("source") == "message" else SemanticType.DOCUMENT,
    )


def _edge_item(row: Mapping[str, Any]) -> Item:
    episodes = [uuid for uuid in _list_of(row, "episodes") if short_text(uuid)][:100]
    return text_item(
        _first_text(row, ("fact",)),
        id=str(row.get("uuid") or ""),
        at=_first_value(row, ("valid_at", "created_at")),
        valid=(row.get("valid_at"), _first_value(row, ("invalid_at", "expired_at"))),
        metadata={
            **_graph_metadata(row, ("name", "group_id", "source_node_uuid", "target_node_uuid")),
            **({"graphiti_episodes": episodes} if episodes else {}),
        },
    )


def _node_item(row: Mapping[str, Any]) -> Item:
    name = short_text(row.get("name"), 500)
    tags = tuple(
        short_text(label, 100) for label in _list_of(row, "labels") if label != "Entity" and short_text(label, 100)
    )
    text = _first_text(row, ("summary",))
    identity, at = str(row.get("uuid") or ""), row.get("created_at")
    return text_item(text, id=identity, title=name, tags=tags, at=at, semantic_type=SemanticType.SUMMARY)


# LangGraph


def langgraph_entries(documents: Sequence[Document]) -> Entries:
    """Items of a LangGraph store, as its search answers them; those of LangMem among them."""
    for document in documents:
        for number, row in enumerate(_rows(document.json(), ("items",), "An export of a LangGraph store"), 1):
            yield f"item {number}{document.place}", partial(_store_item, row)


def _store_item(row: Any) -> Item:
    """Raises Unfit."""
    path = row.get("namespace") if isinstance(row, dict) else None
    if not isinstance(path, list) or not all(isinstance(label, str) for label in path) or "value" not in row:
        raise Unfit("malformed")
    key = str(row.get("key") or "")
    return text_item(
        _value_text(row["value"]),
        id=_identity(*path, key),
        title=key[:500],
        at=_first_value(row, TIME_NAMES),
        metadata={"langgraph_namespace": path, "langgraph_key": key},
    )


def _value_text(value: Any) -> str:
    """The text of a stored value: LangMem's content, a text of its own, or the value as JSON."""
    content = value.get("content") if isinstance(value, dict) else None
    for part in (content, value):
        text = part if isinstance(part, str) else _first_text(part, TEXT_NAMES) if isinstance(part, dict) else ""
        if text:
            return text
    return json.dumps(value, ensure_ascii=False) if value else ""
