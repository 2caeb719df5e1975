"""Files that memories are imported from, by format. Pure; nothing in a file is executed.

Every size is bounded before anything is read.
"""

import csv
import io
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from governance.errors import FieldError, Invalid, TooLarge
from vault.exchange.archives import (
    LARGEST_FILE,
    LARGEST_LINE,
    MOST_ITEMS,
    Entries,
    archive_entries,
    archive_open,
    entry_read,
    text_item,
    unfit_entry,
)
from vault.exchange.dumps import chatgpt_entries, memos_entries, pack_entries
from vault.exchange.items import FORMAT, Item, LeftOut, Parsed, Unfit, item_read, json_read
from vault.exchange.markdown import read_headings, split_origin
from vault.packs.files import file_read
from vault.vocabulary import ImportFormat

CONTENT_NAMES = ("content", "text", "memory", "note", "body")
TIME_NAMES = ("event_time", "created_at", "date", "timestamp")
COLUMNS = ("id", "content", "title", "tags", "namespace", "event_time", "speaker", "session_id", "subject")
MEM0_CONTENT = ("memory", "text", "content", "data")
LONGEST_COLUMN = 200  # characters of a name
MOST_COLUMNS, MOST_CELLS = 1_000, 2_000_000  # of a table
MARKDOWN = (".md", ".markdown")
ENDINGS = {
    ".jsonl": ImportFormat.JSONL,
    ".csv": ImportFormat.CSV,
    **dict.fromkeys(MARKDOWN, ImportFormat.MARKDOWN),
    ".mempack": ImportFormat.MEMPACK,
    "textual_memory.json": ImportFormat.MEMOS,
    "conversations.json": ImportFormat.CHATGPT,
}

Columns = Mapping[str, str]


def file_parse(content: bytes, form: ImportFormat, columns: Columns | None = None) -> Parsed:
    """The items of a file, whoever sent it. columns: of a CSV file, our name to its own.

    Raises Invalid; TooLarge.
    """
    if len(content) > LARGEST_FILE:
        raise TooLarge(f"A file has at most {LARGEST_FILE} bytes. Split it.")
    if columns and form is not ImportFormat.CSV:
        raise Invalid(errors=[FieldError("columns", "only a CSV file has columns")])
    pack = file_read(content) if form is ImportFormat.MEMPACK else None
    if pack is not None:
        entries = pack_entries(pack)
    else:
        entries = _read_csv(content, columns or {}) if form is ImportFormat.CSV else READERS[form](content)
    items: dict[str, Item] = {}
    left_out: list[LeftOut] = []
    for place, entry in entries:
        if len(items) + len(left_out) >= MOST_ITEMS:
            raise TooLarge(f"A file holds at most {MOST_ITEMS} memories. Split it.")
        try:
            item = entry()
        except Unfit as unfit:
            left_out.append(LeftOut(place, str(unfit)))
            continue
        if item.id in items:
            left_out.append(LeftOut(place, "repeated"))
        else:
            items[item.id] = item
    return Parsed(tuple(items.values()), tuple(left_out), pack.manifest if pack else None)


def _read_jsonl(content: bytes) -> Entries:
    first, _, rest = content.partition(b"\n")
    heading = json_read(first, "The first line")
    if not isinstance(heading, dict) or heading.get("format") != FORMAT:
        raise Invalid(f"The first line must name the format {FORMAT}.")
    for number, line in enumerate(rest.split(b"\n"), 2):
        if line.strip():
            yield f"line {number}", partial(_bounded_line, line)


def _bounded_line(line: bytes) -> Item:
    if len(line) > LARGEST_LINE:
        raise Unfit("too_long")
    return item_read(line)


def _read_csv(content: bytes, columns: Columns) -> Entries:
    text = _decode_text(content)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        names = next((row for row in rows if row), [])
        places = {ours: names.index(theirs) for ours, theirs in _choose_columns(names, columns).items()}
        cells = 0
        for number, row in enumerate(filter(None, rows), 1):
            cells += len(row)
            if cells > MOST_CELLS:
                raise TooLarge(f"A table has at most {MOST_CELLS:,} cells. Split it.")
            values = {ours: row[place] for ours, place in places.items()} if len(row) == len(names) else None
            yield f"row {number}", partial(_read_row, values)
    except csv.Error as error:
        raise Invalid("The file is no readable CSV.") from error


def table_columns(content: bytes) -> tuple[list[str], dict[str, str]]:
    """The names in the first row of a CSV file, and the file's column by our name as far as it can be guessed.

    Raises Invalid.
    """
    try:
        rows = csv.reader(io.StringIO(_decode_text(content), newline=""), strict=True)
        names = next((row for row in rows if row), [])
    except csv.Error as error:
        raise Invalid("The file is no readable CSV.") from error
    return names, _guess_columns(names)


def format_guess(name: str) -> ImportFormat | None:
    """The format that the name of a file tells; None where several have such names."""
    found = [form for ending, form in ENDINGS.items() if name.lower().endswith(ending)]
    return found[0] if found else None


def _choose_columns(names: list[str], asked: Columns) -> dict[str, str]:
    """Map our field names to the file's columns; an empty choice drops a guessed column. Raises Invalid."""
    found, taken = _guess_columns(names), {ours: theirs for ours, theirs in asked.items() if theirs}
    faults = [FieldError("columns", f"unknown field: {ours}"[:100]) for ours in asked if ours not in COLUMNS]
    faults += [
        FieldError("columns", f"the file has no column {theirs}"[:100])
        for theirs in taken.values()
        if theirs not in names
    ]
    if faults:
        raise Invalid(errors=faults)
    found = {ours: theirs for ours, theirs in found.items() if ours not in asked} | taken
    if "content" not in found:
        raise Invalid(errors=[FieldError("columns", f"name the column of the text: one of {', '.join(CONTENT_NAMES)}")])
    return found


def _guess_columns(names: list[str]) -> dict[str, str]:
    """Guess the file's column for each of our field names. Raises Invalid."""
    if len(names) > MOST_COLUMNS:
        raise Invalid(f"A table has at most {MOST_COLUMNS:,} columns.")
    if any(len(name) > LONGEST_COLUMN for name in names):
        raise Invalid(f"The name of a column has at most {LONGEST_COLUMN} characters.")
    if len(set(names)) != len(names) or not names:
        raise Invalid("The first row must name each column once.")
    by_name = {name.strip().casefold(): name for name in reversed(names)}
    found = {name: by_name[name] for name in COLUMNS if name in by_name}
    for ours, candidates in (("content", CONTENT_NAMES), ("event_time", TIME_NAMES)):
        theirs = next((by_name[name] for name in candidates if name in by_name), None)
        if theirs is not None:
            found.setdefault(ours, theirs)
    return found


def _read_row(row: Mapping[str, str] | None) -> Item:
    """row: the values of our columns; None where it has more or fewer fields than the first one. Raises Unfit."""
    if row is None:
        raise Unfit("malformed")
    values = {ours: value.strip() for ours, value in row.items()}
    text = values.pop("content")
    labels = {name: values[name] for name in ("namespace", "speaker", "session_id", "subject") if values.get(name)}
    return text_item(
        text,
        id=values.get("id", ""),
        title=values.get("title", ""),
        tags=_split_tags(values.get("tags", "")),
        at=values.get("event_time", ""),
        labels=labels,
    )


def _read_markdown(content: bytes) -> Entries:
    """Each section of each file, by its heading; a file in a zip, or one by itself."""
    if not content.startswith(b"PK"):
        yield from _read_sections("", content)
        return
    with archive_open(content) as archive:
        for entry in archive_entries(archive, len(content)):
            if not entry.filename.lower().endswith(MARKDOWN):
                yield f"file {entry.filename[:100]}", unfit_entry("other_file")
                continue
            yield from _read_sections(entry.filename, entry_read(archive, entry))


def _read_sections(name: str, content: bytes) -> Entries:
    try:
        text = content.decode("utf-8-sig")
    except ValueError:
        yield f"file {name[:100]}", unfit_entry("no_utf8")
        return
    title, lines, number = name.rpartition("/")[2].rpartition(".")[0], list[str](), 0
    parts: list[tuple[str, str]] = []
    for line, heading in read_headings(text):
        if heading is None:
            lines.append(line)
        else:
            parts.append((title, "\n".join(lines).strip()))
            title, lines = heading, []
    parts.append((title, "\n".join(lines).strip()))
    for section, written in parts:
        body, pack = split_origin(written)
        if body:
            number += 1
            identity = sha256(f"{name}\x00{section}\x00{body}".encode(errors="replace")).hexdigest()
            yield (
                f"section {number} of {name[:100]}" if name else f"section {number}",
                partial(text_item, body, id=identity, title=section[:500], metadata={"pack": pack} if pack else {}),
            )


def _read_mem0(content: bytes) -> Entries:
    document = json_read(content, "The file")
    if isinstance(document, dict):
        document = next((document[name] for name in ("results", "memories") if name in document), None)
    if not isinstance(document, list):
        raise Invalid("A mem0 export is a list of memories, or an object with them under results or memories.")
    for number, entry in enumerate(document, 1):
        yield f"memory {number}", partial(_mem0_item, entry)


def _mem0_item(entry: Any) -> Item:
    if not isinstance(entry, dict):
        raise Unfit("malformed")
    if str(entry.get("event", "")).upper() == "DELETE" or entry.get("deleted_at"):
        raise Unfit("deleted")
    text = next((entry[name] for name in MEM0_CONTENT if isinstance(entry.get(name), str)), "")
    metadata = entry.get("metadata") or {}
    categories = entry.get("categories") or []
    if not isinstance(metadata, dict) or not isinstance(categories, list):
        raise Unfit("malformed")
    owners = {f"mem0_{name}": entry[name] for name in ("user_id", "agent_id", "run_id", "app_id") if entry.get(name)}
    return text_item(
        text,
        id=str(entry.get("id") or ""),
        tags=tuple(str(category) for category in categories),
        at=str(entry.get("created_at") or ""),
        metadata={**metadata, **owners},
    )


def _split_tags(text: str) -> tuple[str, ...]:
    parts = text.split(";") if ";" in text else text.split(",")
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _decode_text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except ValueError as error:
        raise Invalid("The file is no text in UTF-8.") from error
    if "\x00" in text:
        raise Invalid("The file has a NUL.")
    return text


READERS: Mapping[ImportFormat, Callable[[bytes], Entries]] = {
    ImportFormat.JSONL: _read_jsonl,
    ImportFormat.MARKDOWN: _read_markdown,
    ImportFormat.MEM0: _read_mem0,
    ImportFormat.MEMOS: memos_entries,
    ImportFormat.CHATGPT: chatgpt_entries,
}
