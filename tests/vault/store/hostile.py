"""Files that are no valid packs, each made by a few lines from one that is."""

import hashlib
import io
import json
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from vault.store.files import (
    LARGEST_FILE,
    LARGEST_LINE,
    LARGEST_MANIFEST,
    LARGEST_MEMORIES,
    MANIFEST,
    MEMORIES,
    Item,
    canonical,
    file_write,
)

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = KEY.public_key().public_bytes_raw()
STATED: Mapping[str, Any] = {
    "name": "acme/herons",
    "version": "1.0.0",
    "title": "Herons",
    "created_at": "2026-01-31T12:00:00Z",
    "minimum_product_version": "0.1.0",
}
ITEMS = (
    Item(UUID(int=1), "The heron nests by the mill.", tags=("birds",)),
    Item(UUID(int=2), "The heron fishes at dawn."),
)
Change = Callable[[dict[str, Any]], None]


def valid_file() -> bytes:
    return file_write(STATED, ITEMS, public_key=PUBLIC, sign=KEY.sign)


def parts() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The manifest and the memories of the valid file."""
    with zipfile.ZipFile(io.BytesIO(valid_file())) as archive:
        lines = archive.read(MEMORIES).splitlines()
        return json.loads(archive.read(MANIFEST)), [json.loads(line) for line in lines]


def archive_of(entries: Mapping[str, bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def sign_file(manifest: dict[str, Any], memories: bytes) -> bytes:
    """A file whose digests and signature are right, whatever else it says."""
    lines = memories.splitlines()
    ids = [_id_of(line) for line in lines]
    manifest["digest"] = hashlib.sha256(memories).hexdigest()
    manifest["digests"] = {
        item: hashlib.sha256(line).hexdigest() for item, line in zip(ids, lines, strict=True) if item is not None
    }
    return sign_again(manifest, memories)


def sign_again(manifest: dict[str, Any], memories: bytes) -> bytes:
    unsigned = {name: value for name, value in manifest.items() if name != "signature"}
    manifest["signature"] = KEY.sign(canonical(unsigned)).hex()
    return archive_of({MANIFEST: canonical(manifest), MEMORIES: memories})


def with_manifest(change: Change) -> bytes:
    manifest, memories = parts()
    change(manifest)
    return sign_again(manifest, _lines(memories))


def with_line(change: Change) -> bytes:
    """The first memory changed, everything signed anew."""
    manifest, memories = parts()
    change(memories[0])
    return sign_file(manifest, _lines(memories))


def with_text(old: bytes, new: bytes) -> bytes:
    """A part of the memories' text replaced, everything signed anew."""
    manifest, memories = parts()
    text = _lines(memories)
    assert old in text
    return sign_file(manifest, text.replace(old, new, 1))


def set_field(name: str, value: Any) -> Change:
    def change(stated: dict[str, Any]) -> None:
        stated[name] = value

    return change


def without(name: str) -> Change:
    def change(stated: dict[str, Any]) -> None:
        del stated[name]

    return change


def hostile_files() -> Iterator[tuple[str, bytes]]:
    """Each file by the name of what is wrong with it."""
    yield from _containers()
    yield from _bombs()
    for name, value in MANIFEST_FAULTS.items():
        yield f"manifest_{name}", with_manifest(value)
    for name, value in LINE_FAULTS.items():
        yield f"memory_{name}", with_line(value)
    yield from _texts()
    yield from _signatures()


MANIFEST_FAULTS: Mapping[str, Change] = {
    "of_another_format": set_field("format", "mempack/2"),
    "without_name": without("name"),
    "without_digests": without("digests"),
    "with_unknown_field": set_field("owner", "root"),
    "with_a_grant": set_field("grants", [{"role": "owner"}]),
    "with_a_long_title": set_field("title", "x" * 121),
    "with_a_number_as_title": set_field("title", 7),
    "with_count_zero": set_field("count", 0),
    "with_a_negative_count": set_field("count", -1),
    "with_a_huge_count": set_field("count", 10**12),
    "with_count_as_text": set_field("count", "2"),
    "with_too_small_a_count": set_field("count", 1),
    "with_too_large_a_count": set_field("count", 3),
    "with_a_short_digest": set_field("digest", "00"),
    "with_another_digest": set_field("digest", "0" * 64),
    "with_no_time": set_field("created_at", "yesterday"),
    "with_a_time_without_zone": set_field("created_at", "2026-01-31T12:00:00"),
    "with_a_year_out_of_range": set_field("created_at", "0001-01-01T00:00:00Z"),
    "with_unknown_data_subjects": set_field("data_subjects", "many"),
    "with_keywords_as_text": set_field("keywords", "birds"),
    "with_a_thousand_keywords": set_field("keywords", ["k"] * 1000),
}
LINE_FAULTS: Mapping[str, Change] = {
    "without_content": without("content"),
    "with_empty_content": set_field("content", ""),
    "with_blank_content": set_field("content", " \n "),
    "with_content_too_long": set_field("content", "x" * 32_001),
    "with_content_as_number": set_field("content", 7),
    "with_content_as_list": set_field("content", ["a"]),
    "with_a_nul": set_field("content", "a\x00b"),
    "with_a_forged_owner": set_field("owner", str(UUID(int=9))),
    "with_a_forged_tenant": set_field("tenant_id", str(UUID(int=9))),
    "with_a_forged_trust": set_field("trust", 1.0),
    "with_a_grant": set_field("grants", ["everyone"]),
    "with_a_vector": set_field("embedding", [0.0] * 256),
    "with_a_vector_of_another_size": set_field("embedding", [0.0] * 7),
    "with_metadata": set_field("metadata", {"a": 1}),
    "with_a_bad_id": set_field("id", "../../etc/passwd"),
    "with_the_same_id": set_field("id", str(UUID(int=2))),
    "with_an_unknown_type": set_field("semantic_type", "order"),
    "with_a_tag_too_long": set_field("tags", ["t" * 101]),
    "with_a_thousand_tags": set_field("tags", ["t"] * 1000),
    "with_tags_as_text": set_field("tags", "birds"),
    "with_importance_above_one": set_field("importance", 2),
    "with_importance_as_text": set_field("importance", "0.5"),
    "with_a_bad_time": set_field("event_time", "soon"),
    "with_a_time_out_of_range": set_field("event_time", "9999-12-31T23:59:59Z"),
}


def _containers() -> Iterator[tuple[str, bytes]]:
    manifest, memories = parts()
    entries = {MANIFEST: canonical(manifest), MEMORIES: _lines(memories)}
    yield "empty", b""
    yield "noise", bytes(range(256)) * 16
    yield "json_alone", canonical(manifest)
    yield "pickle", pickle.dumps({"name": "acme/herons"})
    yield "cut_in_half", valid_file()[: len(valid_file()) // 2]
    yield "without_memories", archive_of({MANIFEST: entries[MANIFEST]})
    yield "without_manifest", archive_of({MEMORIES: entries[MEMORIES]})
    yield "with_a_pickle", archive_of(entries | {"memories.pkl": pickle.dumps([1])})
    yield "with_a_script", archive_of(entries | {"install.py": b"print()"})
    yield "with_a_path_upwards", archive_of({MANIFEST: entries[MANIFEST], "../memories.jsonl": entries[MEMORIES]})
    yield "with_an_absolute_path", archive_of({"/manifest.json": entries[MANIFEST], MEMORIES: entries[MEMORIES]})
    yield "with_a_folder", archive_of(entries | {"memories/": b""})
    yield "with_lzma", archive_of(entries, compression=zipfile.ZIP_LZMA)
    yield "with_bzip2", archive_of(entries, compression=zipfile.ZIP_BZIP2)
    yield "with_a_link", _with_mode(entries, stat.S_IFLNK | 0o777)
    yield "with_a_device", _with_mode(entries, stat.S_IFCHR | 0o600)
    yield "with_an_encrypted_entry", _set_encryption_flag(valid_file())
    yield "with_an_entry_twice", _twice(entries)
    yield "with_overlapping_entries", _overlap_entries(valid_file())
    yield "manifest_not_utf8", archive_of({MANIFEST: b"\xff\xfe{}", MEMORIES: entries[MEMORIES]})
    yield "manifest_a_list", archive_of({MANIFEST: b"[]", MEMORIES: entries[MEMORIES]})
    yield "manifest_a_name_twice", archive_of({MANIFEST: b'{"name": "a", "name": "b"}', MEMORIES: entries[MEMORIES]})
    yield "manifest_too_deep", archive_of({MANIFEST: b"[" * 100_000, MEMORIES: entries[MEMORIES]})


def _bombs() -> Iterator[tuple[str, bytes]]:
    manifest, _ = parts()
    yield "larger_than_a_file_may_be", b"PK\x03\x04" + b"\0" * LARGEST_FILE
    yield "bomb_of_memories", archive_of({MANIFEST: canonical(manifest), MEMORIES: b"\n" * (LARGEST_MEMORIES + 1)})
    yield "bomb_of_a_manifest", archive_of({MANIFEST: b" " * (LARGEST_MANIFEST + 1), MEMORIES: b""})
    yield "bomb_in_one_line", archive_of({MANIFEST: canonical(manifest), MEMORIES: b"x" * (LARGEST_LINE + 2)})
    inner = archive_of({"again.zip": b"\0" * 4_000_000})
    yield "nested_bomb", archive_of({MANIFEST: inner, MEMORIES: inner})
    honest = archive_of({MANIFEST: canonical(manifest), MEMORIES: b"\n" * LARGEST_MEMORIES})
    yield "bomb_that_states_less", _stating_less(honest)


def _texts() -> Iterator[tuple[str, bytes]]:
    yield "memory_with_nan", with_text(b'"importance":0.5', b'"importance":NaN')
    yield "memory_with_infinity", with_text(b'"importance":0.5', b'"importance":Infinity')
    yield "memory_with_an_overflow", with_text(b'"importance":0.5', b'"importance":1e999')
    yield "memory_with_a_name_twice", with_text(b'"importance":0.5', b'"importance":0.5,"importance":0.6')
    yield "memory_no_json", with_text(b"{", b"<")
    yield "memory_too_deep", with_text(b'"tags":["birds"]', b'"tags":' + b"[" * 5_000 + b"]" * 5_000)


def _signatures() -> Iterator[tuple[str, bytes]]:
    manifest, memories = parts()
    text = _lines(memories)
    other = Ed25519PrivateKey.from_private_bytes(b"o" * 32).public_key().public_bytes_raw().hex()
    for name, changes in (
        ("signature_missing", {"signature": ""}),
        ("signature_of_zeros", {"signature": "0" * 128}),
        ("signature_no_hex", {"signature": "z" * 128}),
        ("key_of_another", {"public_key": other}),
        ("key_too_short", {"public_key": "00"}),
        ("title_changed_after_signing", {"title": "Owls"}),
    ):
        yield name, archive_of({MANIFEST: canonical(manifest | changes), MEMORIES: text})
    changed = text.replace(b"heron", b"eagle", 1)
    yield "memory_changed_after_signing", archive_of({MANIFEST: canonical(manifest), MEMORIES: changed})


def _lines(memories: list[dict[str, Any]]) -> bytes:
    return b"".join(canonical(memory) + b"\n" for memory in memories)


def _id_of(line: bytes) -> str | None:
    try:
        return str(json.loads(line)["id"])
    except (ValueError, RecursionError):
        return None


def _with_mode(entries: Mapping[str, bytes], mode: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _twice(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in (MANIFEST, MEMORIES):
            archive.writestr(name, entries[name])
        archive.writestr(f"{MEMORIES[:-1]}X", entries[MEMORIES])
    return buffer.getvalue().replace(b"memories.jsonX", MEMORIES.encode())


def _central(content: bytes, number: int) -> int:
    """The offset of an entry of the central directory."""
    at = -1
    for _ in range(number + 1):
        at = content.index(b"PK\x01\x02", at + 1)
    return at


def _patch_bytes(content: bytes, at: int, form: str, value: int) -> bytes:
    packed = struct.pack(form, value)
    return content[:at] + packed + content[at + len(packed) :]


def _set_encryption_flag(content: bytes) -> bytes:
    return _patch_bytes(content, _central(content, 0) + 8, "<H", 1)


def _overlap_entries(content: bytes) -> bytes:
    """Both entries name the bytes of the first one."""
    return _patch_bytes(content, _central(content, 1) + 42, "<L", 0)


def _stating_less(content: bytes) -> bytes:
    """The second entry states that it is a hundred bytes long, in both of its headers."""
    at = _central(content, 1)
    start = struct.unpack("<L", content[at + 42 : at + 46])[0]
    return _patch_bytes(_patch_bytes(content, at + 24, "<L", 100), start + 22, "<L", 100)
