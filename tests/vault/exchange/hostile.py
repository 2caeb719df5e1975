"""Files that attack an importer, each made by a script: name, format, bytes."""

import io
import json
import zipfile
from collections.abc import Iterator

from vault.exchange.formats import LARGEST_FILE, LARGEST_UNPACKED
from vault.exchange.items import FORMAT

HEADING = json.dumps({"format": FORMAT}).encode() + b"\n"


def hostile_files() -> Iterator[tuple[str, str, bytes]]:
    yield from _any_format()
    yield from _lines()
    yield from _tables()
    yield from _mem0()
    yield from _zips()


def _any_format() -> Iterator[tuple[str, str, bytes]]:
    for form in ("jsonl", "csv", "markdown", "mem0"):
        yield "empty", form, b""
        yield "too large", form, b"a" * (LARGEST_FILE + 1)
    for form in ("jsonl", "csv", "mem0"):
        yield "no UTF-8", form, b"\xff\xfe\xfa"
        yield "NUL alone", form, b"\x00"
        yield (
            "pickle",
            form,
            b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
        )


def _lines() -> Iterator[tuple[str, str, bytes]]:
    yield "no heading", "jsonl", _line(content="Text.")
    yield "other format", "jsonl", b'{"format": "other/9"}\n' + _line(content="Text.")
    yield "heading is a list", "jsonl", b"[1]\n" + _line(content="Text.")
    yield "deep heading", "jsonl", b"[" * 100_000
    for name, line in (
        ("deep line", b"[" * 100_000),
        ("no object", b"1"),
        ("infinite number", b'{"id": "a", "versions": [{"content": "x", "importance": Infinity}]}'),
        ("unknown field", b'{"id": "a", "role": "owner", "versions": [{"content": "x"}]}'),
        ("no versions", b'{"id": "a", "versions": []}'),
        ("empty text", _line(content=" ")),
        ("NUL in text", _line(content="a\x00b")),
        ("half a surrogate", _line(content="\ud800")),
        ("long text", _line(content="a" * 32_001)),
        ("importance over one", _line(content="x", importance=1.5)),
        ("unknown type", _line(content="x", semantic_type="command")),
        ("many tags", _line(content="x", tags=["t"] * 51)),
        ("time without zone", _line(content="x", event_time="2026-05-01T08:00:00")),
        ("time out of range", _line(content="x", event_time="0001-01-01T00:00:00Z")),
        ("validity backwards", _line(content="x", valid_from="2026-05-02T00:00:00Z", valid_to="2026-05-01T00:00:00Z")),
        ("deep metadata", _line(content="x", metadata=_nested(40))),
        ("large metadata", _line(content="x", metadata={"a": "b" * 100_000})),
        ("NUL in metadata", _line(content="x", metadata={"a": "\x00"})),
    ):
        yield name, "jsonl", HEADING + line


def _tables() -> Iterator[tuple[str, str, bytes]]:
    yield "no text column", "csv", b"a,b\n1,2\n"
    yield "column twice", "csv", b"content,content\n1,2\n"
    yield "open quote", "csv", b'content\n"a\n'
    yield "long field", "csv", b"content\n" + b"a" * 200_000
    yield "ragged rows", "csv", b"content,title\na\nb,c,d\n"
    yield "NUL in a field", "csv", b"content\na\x00b\n"
    yield "only a heading", "csv", b"content\n"


def _mem0() -> Iterator[tuple[str, str, bytes]]:
    yield "no list", "mem0", b'{"results": 1}'
    yield "text alone", "mem0", b'"memory"'
    yield "deep", "mem0", b"[" * 100_000
    for name, entry in (
        ("no object", 1),
        ("text is a list", {"memory": ["a"]}),
        ("metadata is a list", {"memory": "a", "metadata": [1]}),
        ("categories are no list", {"memory": "a", "categories": "b"}),
        ("long id", {"memory": "a", "id": "x" * 300}),
        ("NUL in text", {"memory": "a\x00"}),
        ("no time", {"memory": "a", "created_at": "soon"}),
    ):
        yield name, "mem0", json.dumps([entry]).encode()


def _zips() -> Iterator[tuple[str, str, bytes]]:
    yield "broken zip", "markdown", b"PK\x03\x04 nothing"
    yield "no Markdown in it", "markdown", _zip({"a.txt": b"x", "b.pickle": b"y"})
    yield (
        "bomb",
        "markdown",
        _zip({f"{number}.md": b"a" * 2_000_000 for number in range(LARGEST_UNPACKED // 2_000_000 + 1)}),
    )
    yield "large entry", "markdown", _zip({"a.md": b"a" * 3_000_000})
    link = zipfile.ZipInfo("a.md")
    link.external_attr = 0o120777 << 16
    yield "link", "markdown", _zip({link: b"/etc/passwd"})
    yield "many files", "markdown", _zip({f"{number}.md": b"" for number in range(10_001)})
    yield "no UTF-8 in it", "markdown", _zip({"a.md": b"\xff\xfe"})
    yield "NUL in it", "markdown", _zip({"a.md": b"a\x00b"})
    whole = _zip({"a.md": b"a" * 1000})
    yield "cut off", "markdown", whole[: len(whole) // 2]


def _line(**version: object) -> bytes:
    return json.dumps({"id": "a", "versions": [version]}).encode()


def _nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def _zip(files: "dict[str, bytes] | dict[zipfile.ZipInfo, bytes]") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
