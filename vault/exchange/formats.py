"""The formats that memories are imported from: of each, how a file is recognised, and its reader.

Pure; nothing in a file is executed, and every size is bounded before anything is read.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from governance.errors import FieldError, Invalid
from vault.exchange.archives import LARGEST_LINE, Document, Entries, documents_open
from vault.exchange.chats import chatgpt_entries, claude_entries, gemini_entries, is_chatgpt_list
from vault.exchange.dumps import memos_entries
from vault.exchange.items import FORMAT, Item, LeftOut, Unfit, item_read, json_read
from vault.exchange.markdown import MARKDOWN, markdown_entries
from vault.exchange.memory_files import (
    OPENMEMORY,
    graphiti_entries,
    langgraph_entries,
    letta_entries,
    mcp_memory_entries,
    mem0_entries,
    openmemory_entries,
)
from vault.exchange.tables import Columns, csv_entries
from vault.layers.formats import MEMORYOS_FILES
from vault.store.files import MANIFEST, MEMORIES
from vault.vocabulary import ImportFormat

LOOKED_AT = 64 * 1024  # bytes of a file, for its format
TEXTUAL_MEMORY = "textual_memory.json"
TABLES = (".csv", ".tsv")


@dataclass(frozen=True)
class Head:
    """The facts that a file is recognised by. name: of the file; names: of the files of a zip, both in lower case.

    first: the first element of a JSON list, or the object; None for other files. is_lines: JSON Lines.
    """

    name: str
    names: frozenset[str] = frozenset()
    first: Mapping[str, Any] = field(default_factory=dict, repr=False)
    is_list: bool = False
    is_lines: bool = False

    def has(self, *fields: str) -> bool:
        return all(name in self.first for name in fields)

    def has_row(self, *fields: str) -> bool:
        """Return whether the rows of the file have these fields: those of a list, or the first list in an object."""
        if self.is_list:
            return self.has(*fields)
        lists = [value for value in self.first.values() if isinstance(value, list)]
        row = next((rows[0] for rows in lists if rows), None)
        return isinstance(row, dict) and all(name in row for name in fields)

    def ends(self, *endings: str) -> bool:
        return self.name.endswith(endings) or any(name.endswith(endings) for name in self.names)


@dataclass(frozen=True)
class FileFormat:
    """A format. recognise: whether a file seems to be in it; read: the entries, None for conversations and packs."""

    recognise: Callable[[Head], bool]
    read: Callable[[Sequence[Document]], Entries] | None = None


def read_items(stream: BinaryIO, form: ImportFormat, columns: Columns | None = None) -> Iterator[Item | LeftOut]:
    """Yield the memories of a file, and the places of what is left out. columns: of a CSV file, our name to its own.

    Raises Invalid; TooLarge.
    """
    if columns and form is not ImportFormat.CSV:
        raise Invalid(errors=[FieldError("columns", "only a CSV file has columns")])
    known: set[str] = set()
    with documents_open(stream) as documents:
        read = FORMATS[form].read
        if read is None:
            raise Invalid("The file holds no memories.")
        entries = csv_entries(documents, columns or {}) if columns else read(documents)
        for place, entry in entries:
            try:
                item = entry()
            except Unfit as unfit:
                yield LeftOut(place, str(unfit))
                continue
            yield LeftOut(place, "repeated") if item.id in known else item
            known.add(item.id)


def recognise_format(stream: BinaryIO, name: str = "") -> ImportFormat | None:
    """The format of a file, by its content and name; None where no format or several ones fit. Raises Invalid."""
    with documents_open(stream) as documents:
        head = _read_head(documents, name.lower())
    return next((form for form, known in FORMATS.items() if known.recognise(head)), None)


def _read_head(documents: Sequence[Document], name: str) -> Head:
    names = frozenset(document.last_name.lower() for document in documents if document.name)
    chosen = next((part for part in documents if is_chatgpt_list(part.last_name)), documents[0] if documents else None)
    if chosen is None or (chosen.name and not chosen.name.lower().endswith(".json")):
        return Head(name, names)
    with chosen.stream() as stream:
        start = stream.read(LOOKED_AT).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        first = _try_reading(lambda: next(chosen.elements(), None))
        return Head(name, names, first, is_list=True)
    if not start.startswith(b"{"):
        return Head(name, names)
    line = _try_reading(lambda: json.loads(start.partition(b"\n")[0]))
    return Head(name, names, line, is_lines=True) if line else Head(name, names, _try_reading(chosen.json))


def _try_reading(read: Callable[[], Any]) -> dict[str, Any]:
    """The object that is read; an empty one for anything else."""
    try:
        value = read()
    except (Invalid, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _jsonl_entries(documents: Sequence[Document]) -> Entries:
    for document in documents:
        lines = enumerate(document.lines(), 1)
        _, first = next(lines, (1, b""))
        heading = json_read(first, "The first line")
        if not isinstance(heading, dict) or heading.get("format") != FORMAT:
            raise Invalid(f"The first line must name the format {FORMAT}.")
        for number, line in lines:
            if line.strip():
                yield f"line {number}{document.place}", partial(_bounded_line, line)


def _bounded_line(line: bytes) -> Item:
    if len(line) > LARGEST_LINE:
        raise Unfit("too_long")
    return item_read(line)


# The first format that recognises a file is taken: what is told by more comes first.
FORMATS: Mapping[ImportFormat, FileFormat] = {
    ImportFormat.JSONL: FileFormat(lambda head: head.first.get("format") == FORMAT, _jsonl_entries),
    ImportFormat.MEMPACK: FileFormat(
        lambda head: head.ends(".mempack") or head.names == {MANIFEST, MEMORIES},
    ),
    ImportFormat.MEMORYOS: FileFormat(lambda head: bool(head.names & set(MEMORYOS_FILES))),
    ImportFormat.CLAUDE: FileFormat(
        lambda head: (
            head.has("chat_messages")
            or head.has("conversations_memory")
            or {"users.json", "memories.json"} <= head.names
        ),
        claude_entries,
    ),
    ImportFormat.CHATGPT: FileFormat(lambda head: head.has("mapping"), chatgpt_entries),
    ImportFormat.GEMINI: FileFormat(
        lambda head: (
            head.has("title", "time", "header")
            or any(name.startswith(("myactivity.", "my activity.")) for name in head.names | {head.name})
        ),
        gemini_entries,
    ),
    ImportFormat.OPENMEMORY: FileFormat(
        lambda head: head.has("memories", "export_meta") or {OPENMEMORY, "memories.jsonl.gz"} <= head.names,
        openmemory_entries,
    ),
    ImportFormat.MEMOS: FileFormat(
        lambda head: (
            head.ends(TEXTUAL_MEMORY)
            or (head.has("nodes", "edges") and head.has_row("memory"))
            or head.has_row("vector", "payload")
        ),
        memos_entries,
    ),
    ImportFormat.MCP_MEMORY: FileFormat(
        lambda head: head.first.get("type") in {"entity", "relation"} and head.is_lines, mcp_memory_entries
    ),
    ImportFormat.LETTA: FileFormat(
        lambda head: head.ends(".af") or head.has("agents", "blocks") or head.has("core_memory", "messages"),
        letta_entries,
    ),
    ImportFormat.GRAPHITI: FileFormat(
        lambda head: head.has("episodes") or head.has_row("uuid", "content", "source") or head.has_row("uuid", "fact"),
        graphiti_entries,
    ),
    ImportFormat.LANGGRAPH: FileFormat(lambda head: head.has_row("namespace", "key", "value"), langgraph_entries),
    ImportFormat.LOCOMO: FileFormat(lambda head: head.has("sample_id", "conversation")),
    ImportFormat.MEM0: FileFormat(lambda head: head.has_row("memory"), mem0_entries),
    ImportFormat.MARKDOWN: FileFormat(lambda head: head.ends(*MARKDOWN), markdown_entries),
    ImportFormat.CSV: FileFormat(lambda head: head.ends(*TABLES), partial(csv_entries, columns={})),
}
