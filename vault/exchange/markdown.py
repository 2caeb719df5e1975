"""Markdown of exports and imports: sections by their headings, each with the pack that it came from, if any.

A note of Obsidian or basic-memory begins with properties, and links to other notes.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from vault.exchange.archives import Document, Entries, moment_read, text_item, unfit_entry
from vault.exchange.items import Unfit

MARKDOWN = (".md", ".markdown")
DATE_NAMES = ("date", "created", "created_at", "updated", "modified")
NOTE_NAMES = ("type", "permalink", "aliases")
FENCE = "---"  # around the properties of a note
MOST_PROPERTIES, MOST_LINKS, MOST_TAGS = 100, 50, 50
PACK_LINE = "<!-- from the pack {} -->"  # of a section: an import makes a copy of the pack of it


def read_headings(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each line with the title that it has as a heading; None for a line of text, also inside of fences."""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        marks = len(line) - len(line.lstrip("#"))
        is_heading = not fenced and 1 <= marks <= 6 and line[marks : marks + 1] == " "
        yield line, line[marks:].strip().rstrip("#").strip() if is_heading else None


def write_section(title: str, text: str, pack: str) -> str:
    """Return a section. pack: full name of the pack that it came from, or empty; it is named after each heading."""
    section = f"## {title}\n\n{text}"
    return "\n".join(_name_pack(section, pack) if pack else [section]) + "\n"


def split_origin(body: str) -> tuple[str, str]:
    """Return the text of a section, and the full name of the pack that its first line names, or an empty text."""
    first, _, rest = body.partition("\n")
    before, _, after = PACK_LINE.partition("{}")
    if not (first.startswith(before) and first.endswith(after)):
        return body, ""
    return rest.strip(), first[len(before) : len(first) - len(after)]


def _name_pack(section: str, pack: str) -> Iterator[str]:
    for line, title in read_headings(section):
        yield line
        if title is not None:
            yield from ("", PACK_LINE.format(pack))


def markdown_entries(documents: Sequence[Document]) -> Entries:
    """Each section of each note, by its heading; a file in a zip, or one by itself."""
    for document in documents:
        if document.name and not document.name.lower().endswith(MARKDOWN):
            yield document.skip("other_file")
            continue
        try:
            text = document.read().decode("utf-8-sig")
        except ValueError:
            yield document.skip("no_utf8")
            continue
        yield from _read_note(document, text)


def _read_note(document: Document, text: str) -> Entries:
    properties, body = split_properties(text)
    own = document.last_name.rpartition(".")[0]
    title = next((value for value in (properties.get("title"), own) if isinstance(value, str) and value), "")
    at = _find_date(properties)
    if at is None and any(name in properties for name in DATE_NAMES):
        yield f"date{document.place}", unfit_entry("bad_time")
    metadata: dict[str, Any] = {name: properties[name] for name in NOTE_NAMES if properties.get(name)}
    if title and (metadata or properties):
        metadata["note"] = title[:500]
    number = 0
    for heading, written in _split_sections(title, body):
        section, pack = split_origin(written)
        if not section:
            continue
        number += 1
        links = find_links(section)
        known = {"pack": pack} if pack else {}
        identity = sha256(f"{document.name}\x00{heading}\x00{section}".encode(errors="replace")).hexdigest()
        yield (
            f"section {number}{document.place}",
            partial(
                text_item,
                section,
                id=identity,
                title=heading[:500],
                tags=_note_tags(properties.get("tags"), section),
                at=at,
                metadata={**metadata, **known, **({"links": links} if links else {})},
            ),
        )


def _split_sections(title: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each heading with the text below it; what is before the first one under the title."""
    lines: list[str] = []
    for line, heading in read_headings(text):
        if heading is None:
            lines.append(line)
            continue
        yield title, "\n".join(lines).strip()
        title, lines = heading, []
    yield title, "\n".join(lines).strip()


def split_properties(text: str) -> tuple[dict[str, str | list[str]], str]:
    """Return the properties at the start of a note, and its text. Only flat ones are read: texts and lists of texts."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != FENCE or FENCE not in map(str.rstrip, lines[1:]):
        return {}, text
    end = list(map(str.rstrip, lines)).index(FENCE, 1)
    properties: dict[str, str | list[str]] = {}
    name = ""
    for line in lines[1:end]:
        bare = line.strip()
        if bare.startswith("- ") and name:
            present = properties[name]
            properties[name] = [*(present if isinstance(present, list) else []), _unquote(bare[2:])]
        elif ":" in line and not line[:1].isspace() and len(properties) < MOST_PROPERTIES:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            properties[name] = _read_value(value.strip())
    return properties, "\n".join(lines[end + 1 :])


def _read_value(value: str) -> str | list[str]:
    if value.startswith("[") and value.endswith("]") and not value.startswith("[["):
        return [_unquote(part) for part in value[1:-1].split(",") if part.strip()]
    return _unquote(value)


def _unquote(value: str) -> str:
    bare = value.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'" else bare


def _find_date(properties: Mapping[str, Any]) -> str | None:
    """Return the first property that is a date, in ISO 8601; None without one."""
    for name in DATE_NAMES:
        try:
            value = properties.get(name)
            moment = moment_read(value) if isinstance(value, str) else None
        except Unfit:
            continue
        if moment is not None:
            return moment.isoformat()
    return None


def _note_tags(stated: str | list[str] | None, text: str) -> tuple[str, ...]:
    """Return the tags of the properties, and those in the text, as `#mill`."""
    named = stated if isinstance(stated, list) else (stated or "").replace(",", " ").split()
    written = [word[1:].rstrip(".,;:!?)") for word in text.split() if word.startswith("#") and word[1:2].isalpha()]
    tags = (tag.strip().removeprefix("#") for tag in (*named, *written))
    return tuple(dict.fromkeys(tag for tag in tags if tag and len(tag) <= 100))[:MOST_TAGS]


def find_links(text: str) -> list[str]:
    """Return the notes that a text links to, as `[[The Mill|the mill]]` does to The Mill."""
    parts = (part.partition("]]") for part in text.split("[[")[1:])
    names = (link.partition("|")[0].partition("#")[0].strip() for link, closed, _ in parts if closed)
    return list(dict.fromkeys(name for name in names if name and len(name) <= 200))[:MOST_LINKS]
