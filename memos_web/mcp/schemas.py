"""The results of the tools, and JSON schemas that every host reads: without `$ref`, and with plain types."""

from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

JsonSchema = dict[str, Any]
NULL = {"type": "null"}


class MemoryItem(TypedDict):
    """A memory without its empty fields.

    cut: how to read the rest of the text. score: of a search.
    """

    id: str
    version: int
    content: str
    cut: NotRequired[str]
    title: NotRequired[str]
    speaker: NotRequired[str]
    said_at: NotRequired[str]
    event_time: NotRequired[str]
    tags: NotRequired[list[str]]
    namespace: NotRequired[str]
    layer: NotRequired[str]
    state: NotRequired[str]
    score: NotRequired[float]
    expires_at: NotRequired[str]
    pack: NotRequired[str]


class MemoryList(TypedDict):
    note: str
    memories: list[MemoryItem]


class SkippedMessage(TypedDict):
    """A message that was not stored, by its place in the call, from 0."""

    index: int
    reason: str


class AdditionResult(MemoryList):
    """count: of all memories that were added; the list has the first ones. skipped: messages that were not stored."""

    count: int
    skipped: NotRequired[list[SkippedMessage]]


class ResultPage(MemoryList):
    """next_offset: of the next page, if there may be one."""

    next_offset: NotRequired[int]


class CallList(MemoryList):
    failed_before: bool


class OneMemory(TypedDict):
    """next_start: the first character of the text that is not in this answer."""

    note: str
    memory: MemoryItem
    next_start: NotRequired[int]


class Author(TypedDict):
    kind: str
    id: str


class VersionItem(TypedDict):
    version: int
    content: str
    created_at: str
    author: Author
    cut: NotRequired[str]
    title: NotRequired[str]
    tags: NotRequired[list[str]]
    event_time: NotRequired[str]
    reason: NotRequired[str]


class VersionList(TypedDict):
    """next_cursor: of the next page, if there is one."""

    note: str
    versions: list[VersionItem]
    next_cursor: NotRequired[str]


class ContextText(TypedDict):
    note: str
    text: str
    tokens: int


class Deleted(TypedDict):
    deleted: str


def plain_schema(schema: JsonSchema) -> JsonSchema:
    """The schema without `$ref`, titles, and the `null` of what may be left out.

    Some hosts refuse tools with them: dbx 6233, copilot-cli 4623.
    """
    found: JsonSchema = _simplify(schema, schema.get("$defs", {}))
    return found


def _simplify(node: Any, definitions: JsonSchema) -> Any:
    if isinstance(node, list):
        return [_simplify(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**definitions[node["$ref"].rpartition("/")[2]], **node}
    variants = [variant for variant in node.get("anyOf", []) if variant != NULL]
    if len(variants) == 1:
        node = {**node, **variants[0]}
        del node["anyOf"]
    return {name: _simplify(value, definitions) for name, value in node.items() if not _is_needless(name, value)}


def _is_needless(name: str, value: Any) -> bool:
    """A property may be called `title`, too: its value is a schema."""
    return (
        name in {"$ref", "$defs"} or (name == "title" and isinstance(value, str)) or (name, value) == ("default", None)
    )
