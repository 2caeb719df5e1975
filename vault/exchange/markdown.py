"""Markdown of exports and imports: sections by their headings, each with the pack that it came from, if any."""

from collections.abc import Iterator

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
