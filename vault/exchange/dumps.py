"""Files of other systems: memory packs, cube folders of MemOS, exports of ChatGPT. Pure; pickles are never opened."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from governance.errors import Invalid
from vault.exchange.archives import (
    LARGEST_FILE,
    Entries,
    archive_entries,
    archive_open,
    entry_read,
    text_item,
    unfit_entry,
)
from vault.exchange.items import Item, ItemVersion, Unfit, json_read
from vault.packs.files import Item as PackItem
from vault.packs.files import Pack
from vault.vocabulary import SemanticType, SourceKind

CONFIGURATION = "config.json"  # of a cube folder: with keys of model providers
CUBE_TYPES = {
    "fact": SemanticType.FACT,
    "event": SemanticType.EVENT,
    "opinion": SemanticType.PREFERENCE,
    "preference": SemanticType.PREFERENCE,
    "topic": SemanticType.SUMMARY,
    "reasoning": SemanticType.INSIGHT,
    "procedure": SemanticType.SKILL,
}
LEFT_BEHIND = ("deleted", "archived")  # states of a cube's rows
LABELS = ("memory_type", "type", "source")
MERGED_TO = "MERGED_TO"
MOST_EDGES, MOST_ORIGINS = 50, 100  # of one memory
CONVERSATIONS = "conversations.json"
SPEAKERS = ("user", "assistant")

Edges = Mapping[str, list[tuple[str, str]]]


def pack_entries(pack: Pack) -> Entries:
    """The memories of a checked pack."""
    for number, item in enumerate(pack.items, 1):
        yield f"line {number}", partial(_pack_item, item)


def _pack_item(item: PackItem) -> Item:
    version = ItemVersion(
        content=item.content,
        title=item.title,
        tags=item.tags,
        semantic_type=item.semantic_type,
        importance=item.importance,
        event_time=item.event_time,
        valid_from=item.valid_from,
        valid_to=item.valid_to,
    )
    return Item(id=str(item.id), versions=(version,))


def memos_entries(content: bytes) -> Entries:
    """The memories of a zipped cube folder, or of its textual_memory.json: rows of general_text, nodes of tree_text."""
    if not content.startswith(b"PK"):
        yield from _read_memoryos_cube("", content)
        return
    with archive_open(content) as archive:
        for entry in archive_entries(archive, len(content), LARGEST_FILE):
            name = entry.filename
            if name.rpartition("/")[2] == CONFIGURATION:
                yield f"file {name[:100]}", unfit_entry("configuration")
            elif name.lower().endswith(".json"):
                yield from _read_memoryos_cube(f" of {name[:100]}", entry_read(archive, entry, LARGEST_FILE))
            else:
                yield f"file {name[:100]}", unfit_entry("not_text")


def _read_memoryos_cube(place: str, content: bytes) -> Entries:
    document = json_read(content, "The textual memory")
    edges: Any = []  # general_text has none
    if isinstance(document, dict):
        edges = document.get("edges", [])
        document = document.get("nodes")
    if not isinstance(document, list) or not isinstance(edges, list):
        raise Invalid("A cube's textual memory is a list of memories, or an object with nodes and edges.")
    outgoing: dict[str, list[tuple[str, str]]] = {}
    incoming: dict[str, list[tuple[str, str]]] = {}
    for number, edge in enumerate(edges, 1):
        if not isinstance(edge, dict) or not all(isinstance(edge.get(n), str) for n in ("source", "target", "type")):
            yield f"edge {number}{place}", unfit_entry("malformed")
            continue
        outgoing.setdefault(edge["source"], []).append((edge["type"], edge["target"]))
        incoming.setdefault(edge["target"], []).append((edge["type"], edge["source"]))
    for number, row in enumerate(document, 1):
        yield f"memory {number}{place}", partial(_cube_item, row, outgoing, incoming)


def _cube_item(row: Any, outgoing: Edges, incoming: Edges) -> Item:
    """A row: its edges are metadata, and those of a merge its lineage. Raises Unfit."""
    if not isinstance(row, dict) or not isinstance(row.get("memory"), str):
        raise Unfit("malformed")
    stated = row.get("metadata") or {}
    if not isinstance(stated, dict):
        raise Unfit("malformed")
    if stated.get("status") in LEFT_BEHIND:
        raise Unfit(stated["status"])
    identity = str(row.get("id") or "")
    tags = stated.get("tags") or []
    if not isinstance(tags, list):
        raise Unfit("malformed")
    metadata: dict[str, Any] = {f"memos_{name}": stated[name] for name in LABELS if _is_short(stated.get(name))}
    edges = outgoing.get(identity, [])[:MOST_EDGES]
    if edges:
        metadata["memos_edges"] = [{"type": kind, "target": target} for kind, target in edges]
    merged = dict.fromkeys(other for kind, other in incoming.get(identity, []) if kind == MERGED_TO)
    origins = [other for other in merged if other != identity][:MOST_ORIGINS]
    kind = stated.get("type")
    return text_item(
        row["memory"],
        id=identity,
        title=stated["key"] if _is_short(stated.get("key")) else "",
        tags=tuple(str(tag) for tag in tags),
        at=_find_time(stated),
        metadata=metadata,
        labels={"session_id": stated["session_id"]} if _is_short(stated.get("session_id")) else {},
        semantic_type=CUBE_TYPES.get(kind, SemanticType.FACT) if isinstance(kind, str) else SemanticType.FACT,
        made_from=tuple({"id": other, "version": 1, "kind": SourceKind.TEXT} for other in origins),
    )


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200


def _find_time(stated: Mapping[str, Any]) -> str:
    found = next((stated[name] for name in ("memory_time", "created_at", "updated_at") if stated.get(name)), "")
    if not isinstance(found, str):
        raise Unfit("bad_time")
    return found


def chatgpt_entries(content: bytes) -> Entries:
    """Messages of the person and the assistant, on the branch of each conversation that was shown last."""
    if not content.startswith(b"PK"):
        yield from _read_chatgpt_conversations(content)
        return
    with archive_open(content) as archive:
        entries = archive_entries(archive, len(content), LARGEST_FILE)
        if not any(entry.filename.rpartition("/")[2] == CONVERSATIONS for entry in entries):
            raise Invalid(f"The zip holds no {CONVERSATIONS}.")
        for entry in entries:
            if entry.filename.rpartition("/")[2] == CONVERSATIONS:
                yield from _read_chatgpt_conversations(entry_read(archive, entry, LARGEST_FILE))
            else:
                yield f"file {entry.filename[:100]}", unfit_entry("not_text")


def _read_chatgpt_conversations(content: bytes) -> Entries:
    document = json_read(content, "The list of conversations")
    if not isinstance(document, list):
        raise Invalid("An export of ChatGPT is a list of conversations.")
    for number, conversation in enumerate(document, 1):
        place = f"conversation {number}"
        mapping = conversation.get("mapping") if isinstance(conversation, dict) else None
        if not isinstance(mapping, dict):
            yield place, unfit_entry("malformed")
            continue
        branch = _find_branch(mapping, conversation.get("current_node"))
        for position, (key, node) in enumerate(mapping.items(), 1):
            message = node.get("message") if isinstance(node, dict) else None
            if message is None and isinstance(node, dict):
                continue  # the root of a conversation, without words
            where = f"message {position} of {place}"
            if branch and key not in branch:
                yield where, unfit_entry("other_branch")
            else:
                yield where, partial(_read_message, message, conversation)


def _find_branch(mapping: Mapping[str, Any], last: Any) -> set[str]:
    """The keys from a node up to the root; empty where the file names no such node."""
    branch: set[str] = set()
    while isinstance(last, str) and last in mapping and last not in branch:
        branch.add(last)
        node = mapping[last]
        last = node.get("parent") if isinstance(node, dict) else None
    return branch


def _read_message(message: Any, conversation: Mapping[str, Any]) -> Item:
    """Read the message. Raises Unfit."""
    if not isinstance(message, dict):
        raise Unfit("malformed")
    author, content = message.get("author"), message.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict):
        raise Unfit("malformed")
    if author.get("role") not in SPEAKERS:
        raise Unfit("other_role")
    parts = content.get("parts")
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    if not any(text.strip() for text in texts):
        raise Unfit("no_words" if parts and not texts else "empty")
    title = conversation.get("title")
    session = conversation.get("conversation_id") or conversation.get("id") or ""
    identity = message.get("id")
    if not isinstance(session, str) or not isinstance(identity, str):
        raise Unfit("malformed")
    return text_item(
        "\n".join(texts),
        id=identity,
        title=title[:500] if isinstance(title, str) else "",
        at=_format_posix_time(message.get("create_time") or conversation.get("create_time")),
        labels={"session_id": session, "message_id": identity, "speaker": author["role"]},
        semantic_type=SemanticType.DIALOGUE,
    )


def _format_posix_time(value: Any) -> str:
    """Seconds since 1970 as ISO 8601; empty for None. Raises Unfit."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit("bad_time")
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise Unfit("bad_time") from error
