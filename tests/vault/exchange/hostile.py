"""Files that attack an importer, each made by a script: name, format, bytes."""

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

from tests.vault.store.hostile import hostile_files as hostile_packs
from vault.exchange.archives import LARGEST_FILE, LARGEST_UNPACKED
from vault.exchange.items import FORMAT
from vault.vocabulary import ImportFormat

PICKLE = b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."
HEADING = json.dumps({"format": FORMAT}).encode() + b"\n"


def hostile_files() -> Iterator[tuple[str, str, bytes]]:
    yield from _any_format()
    yield from _lines()
    yield from _tables()
    yield from _mem0()
    yield from _zips()
    yield from _traps()
    yield from _cubes()
    yield from _memoryos()
    yield from _locomo()
    yield from _chats()
    yield from _memories_of_others()
    for name, content in hostile_packs():
        yield name, "mempack", content


def _any_format() -> Iterator[tuple[str, str, bytes]]:
    for form in ImportFormat:
        yield "empty", form, b""
        yield "too large", form, b"a" * (LARGEST_FILE + 1)
    for form in [form for form in ImportFormat if form != "markdown"]:
        yield "no UTF-8", form, b"\xff\xfe\xfa"
        yield "NUL alone", form, b"\x00"
        yield (
            "pickle",
            form,
            PICKLE,
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
        ("deep metadata", _line(content="x", metadata=_nest(40))),
        ("large metadata", _line(content="x", metadata={"a": "b" * 200_000})),
        ("NUL in metadata", _line(content="x", metadata={"a": "\x00"})),
        ("vector of NaN", b'{"id": "a", "versions": [{"content": "x", "embedding": [NaN, NaN]}]}'),
        ("vector of another size", _line(content="x", embedding=[0.5] * 7)),
        ("forged owner", b'{"id": "a", "owner": "olivia@acme.example", "versions": [{"content": "x"}]}'),
        ("forged tenant", b'{"id": "a", "tenant": "acme", "versions": [{"content": "x"}]}'),
        ("forged grant", b'{"id": "a", "grants": [{"role": "owner"}], "versions": [{"content": "x"}]}'),
        ("forged author", _line(content="x", principal_id="00000000-0000-7000-8000-000000000000")),
    ):
        yield name, "jsonl", HEADING + line


def _tables() -> Iterator[tuple[str, str, bytes]]:
    yield "no text column", "csv", b"a,b\n1,2\n"
    yield "column twice", "csv", b"content,content\n1,2\n"
    yield "open quote", "csv", b'content\n"a\n'
    yield "long field", "csv", b"content\n" + b"a" * 200_000
    yield "no text in any row", "csv", b"content,title\n,a\n ,b,c\n"
    yield "half a character of UTF-16", "csv", b"\xff\xfec"
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


def _traps() -> Iterator[tuple[str, str, bytes]]:
    """Zips that lead out of a folder, lie about sizes, or hold each other."""
    for form, name in (("markdown", "a.md"), ("memos", "textual_memory.json"), ("chatgpt", "conversations.json")):
        for way in (f"../../{name}", f"/etc/{name}", f"a/../../{name}", f"..\\..\\{name}"):
            yield f"leads out by {way[:4]}", form, _zip({way: b"[]"})
    bomb = _zip({"a.md": b"a" * 2_000_000})
    yield "zip in a zip", "markdown", _zip({f"{number}.zip": bomb for number in range(50)})
    yield "zip named as Markdown", "markdown", _zip({"a.md": _zip({"b.md": b"x"})})
    yield (
        "overlapping entries",
        "markdown",
        _overlap_entries(_zip({f"{number}.md": b"a" * 2_000_000 for number in range(40)})),
    )
    yield "states a smaller size", "markdown", _understate_lengths(_zip({"a.md": b"a" * 2_000_000}))
    yield "encrypted entry", "markdown", _set_encryption_flag(_zip({"a.md": b"a"}))


def _overlap_entries(content: bytes) -> bytes:
    """All entries of the directory point to the data of the first."""
    changed, at = bytearray(content), 0
    while (at := content.find(b"PK\x01\x02", at)) != -1:
        changed[at + 42 : at + 46] = bytes(4)
        at += 46
    return bytes(changed)


def _understate_lengths(content: bytes) -> bytes:
    changed, at = bytearray(content), content.find(b"PK\x01\x02")
    changed[at + 24 : at + 28] = (10).to_bytes(4, "little")
    return bytes(changed)


def _set_encryption_flag(content: bytes) -> bytes:
    changed, at = bytearray(content), content.find(b"PK\x01\x02")
    changed[at + 8] |= 1
    return bytes(changed)


def _cubes() -> Iterator[tuple[str, str, bytes]]:
    yield "number", "memos", b"1"
    yield "deep", "memos", b"[" * 100_000
    yield "nodes are an object", "memos", b'{"nodes": {}, "edges": []}'
    yield "edges are text", "memos", b'{"nodes": [], "edges": "all"}'
    yield "configuration alone", "memos", _zip({"config.json": b'{"api_key": "sk-secret"}'})
    yield "pickle in it", "memos", _zip({"activation_memory.pickle": PICKLE})
    yield "pickle named as JSON", "memos", _zip({"textual_memory.json": PICKLE})
    yield "large entry", "memos", _zip({"textual_memory.json": b" " * (LARGEST_FILE + 1)})
    yield "bomb", "memos", _zip({f"{number}.json": b" " * LARGEST_FILE for number in range(5)})
    for name, row in (
        ("no object", 1),
        ("text is a list", {"memory": ["a"]}),
        ("metadata is a list", {"memory": "a", "metadata": [1]}),
        ("tags are an object", {"memory": "a", "metadata": {"tags": {"a": 1}}}),
        ("state is a list", {"memory": "", "metadata": {"status": []}}),
        ("type is a list", {"memory": "a\x00", "metadata": {"type": []}}),
        ("time is a number", {"memory": "a", "metadata": {"created_at": 10**400}}),
        ("long id", {"memory": "a", "id": "x" * 300}),
    ):
        yield name, "memos", json.dumps([row]).encode()
    broken = {
        "nodes": [{"id": "a", "memory": "a"}],
        "edges": [{"source": "\ud800", "target": "a", "type": "MERGED_TO"}],
    }
    yield "half a surrogate as origin", "memos", json.dumps(broken).encode()


def _memoryos() -> Iterator[tuple[str, str, bytes]]:
    def folder(content: bytes, name: str = "short_term.json") -> bytes:
        return _zip({f"users/a/{name}": content})

    yield "no zip", "memoryos", b"[]"
    yield "broken zip", "memoryos", b"PK\x03\x04 nothing"
    yield "no data", "memoryos", _zip({"notes.txt": b"x"})
    yield "deep", "memoryos", folder(b"[" * 100_000)
    yield "pickle named as JSON", "memoryos", folder(PICKLE)
    yield "pages are text", "memoryos", folder(b'["page"]')
    yield "sessions are a number", "memoryos", folder(b'{"sessions": 7}', "mid_term.json")
    yield "details are a number", "memoryos", folder(b'{"sessions": {"a": {"details": 7}}}', "mid_term.json")
    yield "large entry", "memoryos", folder(b" " * (LARGEST_FILE + 1))
    yield "bomb", "memoryos", _zip({f"{number}/short_term.json": b" " * LARGEST_FILE for number in range(5)})
    page = {"user_input": "half \ud800 of a pair", "timestamp": "2026-05-01 10:00:00"}
    yield "half a surrogate", "memoryos", folder(json.dumps([page]).encode())
    yield "too long", "memoryos", folder(json.dumps([{**page, "user_input": "heron " * 6_000}]).encode())


def _locomo() -> Iterator[tuple[str, str, bytes]]:
    said = {"speaker": "A", "dia_id": "D1:1", "text": "Hello."}
    spoken = {"speaker_a": "A", "speaker_b": "B", "session_1_date_time": "1:56 pm on 8 May, 2023"}

    def file(*turns: Any, **changed: Any) -> bytes:
        return json.dumps([{"sample_id": "c", "conversation": {**spoken, "session_1": turns, **changed}}]).encode()

    yield "deep", "locomo", b"[" * 100_000
    yield "object", "locomo", b"{}"
    yield "samples are text", "locomo", b'["sample"]'
    yield "turns are text", "locomo", file("Hello.")
    yield "text is a number", "locomo", file({**said, "text": 7})
    yield "turn without an id", "locomo", file({**said, "dia_id": None})
    yield "long name", "locomo", file({**said, "speaker": "A" * 5_000})
    yield "time of another kind", "locomo", file(said, session_1_date_time="soon")
    yield "many digits", "locomo", file(**{f"session_{'9' * 5_000}": [said]})
    yield "half a surrogate", "locomo", file({**said, "text": "half \ud800 of a pair"})
    yield "too long", "locomo", file({**said, "text": "heron " * 6_000})


def _chats() -> Iterator[tuple[str, str, bytes]]:
    yield "object", "chatgpt", b"{}"
    yield "zip without conversations", "chatgpt", _zip({"user.json": b"{}"})
    yield "broken zip", "chatgpt", b"PK\x03\x04 nothing"
    yield "large entry", "chatgpt", _zip({"conversations.json": b" " * (LARGEST_FILE + 1)})
    words = {"content_type": "text", "parts": ["a"]}
    for name, message in (
        ("message is text", "a"),
        ("author is text", {"author": "user", "content": words}),
        ("role is a list", {"author": {"role": ["user"]}, "content": words}),
        ("order of the system", {"author": {"role": "system"}, "content": words}),
        ("parts are a number", {"author": {"role": "user"}, "content": {"parts": 7}}),
        ("only a picture", {"author": {"role": "user"}, "content": {"parts": [{"asset_pointer": "file:///etc"}]}}),
        ("id is a number", {"id": 7, "author": {"role": "user"}, "content": words}),
        ("endless time", {"id": "a", "author": {"role": "user"}, "content": words, "create_time": 1e300}),
        ("NUL in text", {"id": "a", "author": {"role": "user"}, "content": {"parts": ["a\x00"]}}),
    ):
        yield name, "chatgpt", json.dumps([{"mapping": {"n": {"message": message}}}]).encode()
    yield "mapping is a list", "chatgpt", b'[{"mapping": []}]'
    ring = {"a": {"parent": "b"}, "b": {"parent": "a"}}
    yield "ring of parents", "chatgpt", json.dumps([{"mapping": ring, "current_node": "a"}]).encode()


def _memories_of_others() -> Iterator[tuple[str, str, bytes]]:
    """Shapes that are nearly those of Claude, Gemini, OpenMemory, Letta, Graphiti, LangGraph and the MCP graph."""
    for name, document in (
        ("messages are text", [{"uuid": "a", "chat_messages": "b"}]),
        ("sender is a list", [{"uuid": "a", "chat_messages": [{"uuid": "b", "sender": ["human"], "text": "c"}]}]),
        ("ring of parents", [{"uuid": "a", "chat_messages": [{"uuid": "b", "parent_message_uuid": "b", "text": 7}]}]),
        ("blocks are numbers", [{"uuid": "a", "chat_messages": [{"uuid": "b", "sender": "human", "content": [7]}]}]),
    ):
        yield name, "claude", json.dumps(document).encode()
    for name, form, changed in (
        ("title is a number", "gemini", [{"title": 7, "time": 7}]),
        ("time is a list", "gemini", [{"title": "Searched", "time": [1], "products": 7, "safeHtmlItem": [7]}]),
        ("rows are text", "openmemory", {"memories": "a"}),
        ("categories are text", "openmemory", {"memories": [{"content": "a", "category_ids": "b"}], "categories": 7}),
        ("messages are numbers", "letta", {"agents": [{"messages": [1]}], "blocks": [7]}),
        ("calls are numbers", "letta", {"messages": [{"role": "user", "content": 7, "tool_calls": [7]}]}),
        ("rows are numbers", "graphiti", {"episodes": [1], "edges": [2], "nodes": [3]}),
        (
            "validity backwards",
            "graphiti",
            {"edges": [{"fact": "a", "valid_at": "2026-05-02", "invalid_at": "2026-05-01"}]},
        ),
        ("path is text", "langgraph", {"items": [{"namespace": "a", "key": "b", "value": "c"}]}),
        ("value is empty", "langgraph", {"items": [{"namespace": ["a"], "key": "b", "value": {}}]}),
        ("observation is a number", "mcp_memory", {"type": "entity", "name": "a", "observations": [7]}),
        ("relation to nobody", "mcp_memory", {"type": "relation", "from": "a", "relationType": "b"}),
    ):
        yield name, form, json.dumps(changed).encode()
    yield "deep page", "gemini", b"<div class='content-cell body-1'>" * 20_000
    yield "deep", "claude", b"[" * 100_000
    yield "endless element", "claude", b"[[" + b"0," * 2_000_001 + b"0]]"
    yield "no end", "claude", b"[{},"


def _line(**version: object) -> bytes:
    return json.dumps({"id": "a", "versions": [version]}).encode()


def _nest(depth: int) -> dict[str, object]:
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
