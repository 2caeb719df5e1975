"""Rules of items: how a store's namespaces, keys and values become memories, and back. Pure."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from memos_client.models import Json, Memory

KEY = "store_key"  # names in the metadata of an item's memory
VALUE = "store_value"
TTL = "store_ttl_minutes"
LONGEST_PATH = 200
LONGEST_CONTENT = 32_000
LONGEST_TEXT = 200  # of a text in a value that the server filters by
LOOKUPS = 40  # keys of one request: a filter has at most 100 leaves
BROKEN = re.compile("[\\x00\\ud800-\\udfff]")  # what the server cannot search for
ESCAPED = re.compile(r"[^\w@-]")
ESCAPE = re.compile(r"(?:\+[0-9a-f]{2})+")

Part = TypeVar("Part")
Place = tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class NewItem:
    """An item to store. `value` None: to delete. `text`: what searches read. `ttl`: minutes, or None."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    text: str = ""
    ttl: float | None = None


@dataclass(frozen=True)
class StoredItem:
    """An item as it is stored. `score`, from 0 to 1, is set in results of a search by a question."""

    namespace: tuple[str, ...]
    key: str
    value: Json
    created_at: datetime
    updated_at: datetime
    score: float | None
    ttl: float | None
    memory: Memory


def escape_label(label: str) -> str:
    """A label as a part of a path: what a path cannot hold becomes `+` and two hexadecimal digits for each byte."""
    return ESCAPED.sub(lambda found: "".join(f"+{byte:02x}" for byte in found[0].encode()), label)


def unescape_label(part: str) -> str:
    return ESCAPE.sub(lambda found: bytes.fromhex(found[0].replace("+", "")).decode(), part)


def path_of_labels(root: str, labels: Sequence[str]) -> str:
    """The path of a namespace below `root`. Raises ValueError where it is longer than the server allows."""
    path = "".join([root, *(f"/{escape_label(label)}" for label in labels)])
    if len(path) > LONGEST_PATH:
        raise ValueError(f"The namespace {tuple(labels)} takes a path of {len(path)} characters, over {LONGEST_PATH}.")
    return path


def labels_of_path(root: str, path: str) -> tuple[str, ...]:
    """The namespace at a path below `root`; () for the root itself."""
    return tuple(map(unescape_label, path.removeprefix(root).split("/")[1:]))


def text_of_value(value: Mapping[str, Any]) -> str:
    """A value as text: its only text, or a line for each of its fields."""
    if len(value) == 1:
        (only,) = value.values()
        return only if isinstance(only, str) else json.dumps(only, ensure_ascii=False, default=str)
    return "\n".join(
        f"{name}: {part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, default=str)}"
        for name, part in value.items()
    )


def filterable_fields(value: Mapping[str, Any], prefix: str = "value") -> Json:
    """The short texts of a value, each by its name in metadata, by which the server filters."""
    return {
        f"{prefix}.{name}": part
        for name, part in value.items()
        if isinstance(part, str) and 0 < len(part) <= LONGEST_TEXT and not BROKEN.search(f"{name}{part}")
    }


def server_conditions(asked: Mapping[str, Any], prefix: str = "value") -> list[Json]:
    """The part of a filter that the server can apply: equality of short texts. It ignores case, so compare again."""
    plain = {name: part["$eq"] if _is_equality(part) else part for name, part in asked.items()}
    return [{f"metadata.{name}": part} for name, part in filterable_fields(plain, prefix).items()]


def _is_equality(part: Any) -> bool:
    return isinstance(part, Mapping) and list(part) == ["$eq"]


def draft_of(root: str, item: NewItem) -> Json:
    """The memory of a new item, as the body of a request."""
    body = {"namespace": path_of_labels(root, item.namespace), "allow_duplicates": True, **fields_of(item)}
    if item.ttl is not None:
        body["ttl_seconds"] = max(1, math.ceil(item.ttl * 60))
    return body


def fields_of(item: NewItem) -> Json:
    """The content and the metadata of an item's memory."""
    value = dict(item.value or {})
    metadata = {**filterable_fields(value), KEY: item.key, VALUE: value}
    if item.ttl is not None:
        metadata[TTL] = item.ttl
    return {
        "content": item.text.strip()[:LONGEST_CONTENT].strip() or item.key.strip() or "(empty)",
        "metadata": metadata,
    }


def expiry(ttl: float | None) -> datetime | None:
    """The end of a time to live that begins now, in minutes."""
    return None if ttl is None else datetime.now(UTC) + timedelta(minutes=ttl)


def is_worth_a_refresh(item: StoredItem) -> bool:
    """True where a tenth of the time to live has passed: a refresh makes a version of the memory."""
    if item.ttl is None or item.memory.expires_at is None:
        return False
    return item.memory.expires_at - datetime.now(UTC) < 0.9 * timedelta(minutes=item.ttl)


def item_of(root: str, memory: Memory) -> StoredItem | None:
    """The item that a memory holds, or None where somebody else put the memory there."""
    key, value = memory.metadata.get(KEY), memory.metadata.get(VALUE)
    if not isinstance(key, str) or not isinstance(value, dict):
        return None
    return StoredItem(
        namespace=labels_of_path(root, memory.namespace),
        key=key,
        value=value,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        score=memory.score,
        ttl=memory.metadata.get(TTL),
        memory=memory,
    )


def parts_of(whole: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    for start in range(0, len(whole), size):
        yield whole[start : start + size]
