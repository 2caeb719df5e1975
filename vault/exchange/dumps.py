"""Memory packs, and cube folders of MemOS. Pure; pickles are never opened."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from governance.errors import Invalid
from vault.exchange.archives import Document, Entries, text_item, unfit_entry
from vault.exchange.items import Item, ItemVersion, Unfit
from vault.store.files import Item as PackItem
from vault.store.files import Pack
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
TIMES = ("memory_time", "created_at", "updated_at")
MERGED_TO = "MERGED_TO"
MOST_EDGES, MOST_ORIGINS = 50, 100  # of one memory

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
    return Item(id=str(item.id), versions=(version,), said_at=item.said_at)


def memos_entries(documents: Sequence[Document]) -> Entries:
    """The memories of cube folders, or of one textual_memory.json: rows of general_text, nodes of tree_text."""
    for document in documents:
        if document.last_name == CONFIGURATION:
            yield document.skip("configuration")
        elif document.name and not document.name.lower().endswith(".json"):
            yield document.skip("not_text")
        else:
            yield from _read_cube(document)


def _read_cube(document: Document) -> Entries:
    content = document.json()
    edges: Any = []  # general_text has none
    if isinstance(content, dict):
        edges = content.get("edges", [])
        content = content.get("nodes")
    if not isinstance(content, list) or not isinstance(edges, list):
        raise Invalid("A cube's textual memory is a list of memories, or an object with nodes and edges.")
    outgoing: dict[str, list[tuple[str, str]]] = {}
    incoming: dict[str, list[tuple[str, str]]] = {}
    for number, edge in enumerate(edges, 1):
        if not isinstance(edge, dict) or not all(isinstance(edge.get(n), str) for n in ("source", "target", "type")):
            yield f"edge {number}{document.place}", unfit_entry("malformed")
            continue
        outgoing.setdefault(edge["source"], []).append((edge["type"], edge["target"]))
        incoming.setdefault(edge["target"], []).append((edge["type"], edge["source"]))
    cube = document.name.rpartition("/")[0].rpartition("/")[2][:200]
    for number, row in enumerate(content, 1):
        yield f"memory {number}{document.place}", partial(_cube_item, row, outgoing, incoming, cube)


def _cube_item(row: Any, outgoing: Edges, incoming: Edges, cube: str) -> Item:
    """A row: its edges are metadata, and those of a merge its lineage. cube: the name of its folder. Raises Unfit."""
    payload = row.get("payload") if isinstance(row, dict) else None
    if isinstance(payload, dict):  # a row of a vector store
        row = {"id": row.get("id"), **payload}
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
    metadata |= {"memos_cube": cube} if cube else {}
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
        at=next((stated[name] for name in TIMES if stated.get(name)), None),
        metadata=metadata,
        labels={"session_id": stated["session_id"]} if _is_short(stated.get("session_id")) else {},
        semantic_type=CUBE_TYPES.get(kind, SemanticType.FACT) if isinstance(kind, str) else SemanticType.FACT,
        made_from=tuple({"id": other, "version": 1, "kind": SourceKind.TEXT} for other in origins),
    )


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200
