"""The `.mempack` file: a zip of a signed manifest and one JSON line for each memory (docs/mempack.md). Pure.

Every size is limited before anything is read, and nothing in the file is ever executed.
"""

import hashlib
import io
import json
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import IO, Annotated, Any, ClassVar, Literal, NoReturn, Self
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from governance.errors import FieldError, Invalid, TooLarge
from governance.time_range import is_in_range
from vault.vocabulary import SemanticType

FORMAT: Literal["mempack/1"] = "mempack/1"
MINIMUM_PRODUCT = "0.1.0"  # the first release that reads this format
MINIMUM_WITH_SAID = "0.2.0"  # the first that reads `said_at`
MINIMUM_WITH_ADAPTER = "0.3.0"  # the first that reads an adapter
MANIFEST, MEMORIES, ADAPTER = "manifest.json", "memories.jsonl", "adapter.safetensors"
LARGEST_FILE = 16 * 1024 * 1024  # bytes
LARGEST_MANIFEST = 2 * 1024 * 1024
LARGEST_MEMORIES = 24 * 1024 * 1024
LARGEST_ADAPTER = 14 * 1024 * 1024
LARGEST_LINE = 256 * 1024
MOST_MEMORIES = 10_000
LONGEST_CONTENT, LONGEST_TITLE = 32_000, 500  # characters of a memory
MOST_FAULTS = 20
READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
STRICT = ConfigDict(extra="forbid", hide_input_in_errors=True)
WRITTEN_AT = (1980, 1, 1, 0, 0, 0)  # equal content makes an equal file


Name = Annotated[str, StringConstraints(strict=True, min_length=3, max_length=130)]
Title = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=120)]
Line = Annotated[str, StringConstraints(strict=True, max_length=300)]
Readme = Annotated[str, StringConstraints(strict=True, max_length=20_000)]
Short = Annotated[str, StringConstraints(strict=True, max_length=60)]
Hex = Annotated[str, StringConstraints(strict=True, max_length=128)]
Label = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100)]
Labels = Annotated[tuple[Label, ...], Field(max_length=50)]
Digest = Annotated[str, StringConstraints(strict=True, min_length=64, max_length=64)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class PackInvalid(Invalid):
    code, title = "pack_invalid", "The file is no valid memory pack"


@dataclass(frozen=True)
class Item:
    """One memory of a pack. id: equal in all versions of the pack. importance: 0..1. said_at: of a message, and of what
    it states.
    """

    id: UUID
    content: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=LONGEST_CONTENT)] = field(
        repr=False
    )
    title: Annotated[str, StringConstraints(strict=True, max_length=LONGEST_TITLE)] = field(default="", repr=False)
    tags: Labels = ()
    semantic_type: SemanticType = SemanticType.FACT
    language: Annotated[str, StringConstraints(strict=True, max_length=8)] = ""
    importance: Share = 0.5
    event_time: datetime | None = None
    said_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


class DataSubjects(StrEnum):
    """The statement of a manifest about memories of people."""

    NONE = "none"
    NAMES_REPLACED = "names-replaced"
    DE_IDENTIFIED = "de-identified"


@dataclass(frozen=True)
class DeIdentification:
    """The checks and replacements in the anonymised memories of a pack.

    rules, detector: versions of what looked for names and for personal data. replaced: placeholders by kind. undecided:
    number of distinct texts that no rule decided. confirmed: the publisher states that a person read the preview, and
    accepted each of these.
    """

    rules: Short
    detector: Short
    memories: Annotated[int, Field(strict=True, ge=1, le=MOST_MEMORIES)]
    replaced: Annotated[Mapping[Short, Annotated[int, Field(strict=True, ge=0)]], Field(max_length=50)]
    undecided: Annotated[int, Field(strict=True, ge=0)]
    confirmed: Annotated[bool, Field(strict=True)]

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


def state_data_subjects(done: DeIdentification | None) -> DataSubjects:
    """Return the strongest statement about data subjects that holds after this."""
    if done is None:
        return DataSubjects.NONE
    return DataSubjects.DE_IDENTIFIED if done.confirmed else DataSubjects.NAMES_REPLACED


@dataclass(frozen=True)
class AdapterStatement:
    """The signed statement of the adapter in a file: the memories of the pack that it was trained on, none of them
    about a data subject. digest: SHA-256 of the entry. fingerprint: of the model. report: of its examination.
    """

    title: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)]
    model: Label
    fingerprint: Digest
    digest: Digest
    memories: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=200)]
    report: Annotated[Mapping[Short, Annotated[float, Field(allow_inf_nan=False)]], Field(max_length=50)]
    data_subjects: Literal["none"] = "none"

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class Manifest:
    """The signed part of a pack file.

    digest: SHA-256 of the memories' bytes; digests: memory id → digest of its line. alternatives: digests of lines with
    a second wording; a copy has either wording, and `digest` is then computed from the first wordings' digests, in
    order. public_key, signature: Ed25519, in hex. data_subjects: `none`; `names-replaced` if memories about people were
    anonymised; `de-identified` if a person confirmed the preview of them too. de_identification: what was done.
    """

    format: Literal["mempack/1"]
    name: Name
    version: Short
    title: Title
    created_at: datetime
    count: Annotated[int, Field(strict=True, ge=1, le=MOST_MEMORIES)]
    digest: Digest
    digests: Annotated[Mapping[str, Digest], Field(max_length=MOST_MEMORIES)] = field(repr=False)
    minimum_product_version: Short
    description: Line = ""
    readme: Readme = ""
    licence: Short = ""
    topic: Short = ""
    authors: Labels = ()
    keywords: Labels = ()
    languages: Labels = ()
    data_subjects: DataSubjects = DataSubjects.NONE
    de_identification: DeIdentification | None = None
    alternatives: Annotated[Mapping[str, Digest], Field(max_length=MOST_MEMORIES)] = field(
        default_factory=dict, repr=False
    )
    adapter: AdapterStatement | None = None
    public_key: Hex = ""
    signature: Hex = ""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def signed_bytes(self) -> bytes:
        """Return the canonical JSON of all fields but the signature."""
        stated = self.as_stored()
        del stated["signature"]
        return canonical(stated)

    def as_stored(self) -> dict[str, Any]:
        """Return the fields as a file stores them: `adapter`, `alternatives` and `de_identification` only if there are
        any."""
        stated: dict[str, Any] = _MANIFEST.dump_python(self, mode="json")
        if self.de_identification is None:
            del stated["de_identification"]
        if not self.alternatives:
            del stated["alternatives"]
        if self.adapter is None:
            del stated["adapter"]
        return stated

    @property
    def proved_statement(self) -> str:
        """The proved statement: older releases replaced one reference, and called that de-identified."""
        is_unproved = self.data_subjects is DataSubjects.DE_IDENTIFIED and self.de_identification is None
        return "reference-replaced" if is_unproved else str(self.data_subjects)

    @property
    def key_id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the public key."""
        return hashlib.sha256(bytes.fromhex(self.public_key)).hexdigest()[:16]


@dataclass(frozen=True)
class Pack:
    """The content of a file whose signature, digests and structure were checked."""

    manifest: Manifest
    items: tuple[Item, ...] = field(repr=False)
    adapter: bytes = field(default=b"", repr=False)  # safetensors; empty without one


_ITEM: TypeAdapter[Item] = TypeAdapter(Item)
_MANIFEST: TypeAdapter[Manifest] = TypeAdapter(Manifest)


def canonical(value: Any) -> bytes:
    """Return JSON with sorted names and without spaces, in UTF-8."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def item_stated(item: Item) -> dict[str, Any]:
    """Return the fields of a memory as a file states them: `said_at` only if there is one."""
    stated: dict[str, Any] = _ITEM.dump_python(item, mode="json")
    if item.said_at is None:
        del stated["said_at"]
    return stated


def item_read(stated: Mapping[str, Any]) -> Item:
    """Return the memory with these fields. Raises PackInvalid."""
    item: Item = _validate_value(_ITEM, stated, "memory")
    return item


def encode_line(item: Item) -> bytes:
    """Return the line of a memory, without its line feed."""
    return canonical(item_stated(item))


def item_digest(item: Item) -> str:
    return hashlib.sha256(encode_line(item)).hexdigest()


class PackWriter:
    """Writes a pack file in parts. It keeps only one digest per memory. Use it as a context manager."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._archive = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED)
        self._lines = self._archive.open(_make_entry(MEMORIES), "w")
        self._digest = hashlib.sha256()
        self._digests: dict[str, str] = {}
        self._size = 0
        self._has_said = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the archive, also after an error: zipfile warns about an open one."""
        self._lines.close()
        self._archive.close()

    def add(self, items: Iterable[Item]) -> bytes:
        """Add memories and return the next bytes of the file. Raises Invalid if the pack is too large."""
        for item in items:
            line = encode_line(item)
            self._digests[str(item.id)] = hashlib.sha256(line).hexdigest()
            self._digest.update(line + b"\n")
            self._size += self._lines.write(line + b"\n")
            self._has_said |= item.said_at is not None
        if self._size > LARGEST_MEMORIES or len(self._digests) > MOST_MEMORIES:
            raise Invalid(f"A pack holds at most {MOST_MEMORIES} memories and {LARGEST_MEMORIES} bytes of text.")
        return self._sink.take()

    def close(
        self, stated: Mapping[str, Any], *, public_key: bytes, sign: Callable[[bytes], bytes], adapter: bytes = b""
    ) -> bytes:
        """Return the last bytes, with the adapter and the signed manifest. stated: its fields except counts, digests,
        the minimum version and the signature.
        """
        self._lines.close()
        if adapter:
            self._archive.writestr(_make_entry(ADAPTER), adapter)
        unsigned = {
            **stated,
            "minimum_product_version": MINIMUM_WITH_ADAPTER
            if adapter
            else MINIMUM_WITH_SAID
            if self._has_said
            else MINIMUM_PRODUCT,
            "format": FORMAT,
            "count": len(self._digests),
            "digest": _combine_digests(self._digests.values())
            if stated.get("alternatives")
            else self._digest.hexdigest(),
            "digests": self._digests,
            "public_key": public_key.hex(),
        }
        manifest = _MANIFEST.validate_python(unsigned)
        signature = sign(manifest.signed_bytes()).hex()
        complete = {**manifest.as_stored(), "signature": signature}
        self._archive.writestr(_make_entry(MANIFEST), canonical(complete))
        self._archive.close()
        return self._sink.take()


class _Sink(io.RawIOBase):
    """A stream that collects written bytes until they are taken. It cannot seek."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._written += content
        return len(content)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def file_write(
    stated: Mapping[str, Any],
    items: Sequence[Item],
    *,
    public_key: bytes,
    sign: Callable[[bytes], bytes],
    adapter: bytes = b"",
) -> bytes:
    """Return the file of these memories and an adapter. stated: as in `PackWriter.close`.

    Raises Invalid if the pack is too large.
    """
    with PackWriter() as writer:
        content = writer.add(items) + writer.close(stated, public_key=public_key, sign=sign, adapter=adapter)
    if len(adapter) > LARGEST_ADAPTER or len(content) > LARGEST_FILE:
        raise Invalid(f"A pack has at most {LARGEST_FILE} bytes, and its adapter at most {LARGEST_ADAPTER}.")
    return content


def file_copy(pack: Pack, items: Sequence[Item]) -> bytes:
    """Return a copy's file, with some memories in their second wording and the publisher's unchanged manifest."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_make_entry(MEMORIES), b"".join(encode_line(item) + b"\n" for item in items))
        if pack.adapter:
            archive.writestr(_make_entry(ADAPTER), pack.adapter)
        archive.writestr(_make_entry(MANIFEST), canonical(pack.manifest.as_stored()))
    return target.getvalue()


def file_read(content: bytes) -> Pack:
    """Check the content of a file from any sender, and return it. Raises PackInvalid; TooLarge."""
    if len(content) > LARGEST_FILE:
        raise TooLarge(f"A pack file has at most {LARGEST_FILE} bytes.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = _read_entries(archive, len(content))
            manifest = _read_manifest(_read_bounded(archive, entries[MANIFEST], LARGEST_MANIFEST))
            with archive.open(entries[MEMORIES]) as lines:
                items = _read_items(lines, manifest)
            adapter = _read_adapter(archive, entries.get(ADAPTER), manifest)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise PackInvalid("The file is no readable zip of a manifest and memories.") from error
    return Pack(manifest, items, adapter)


def _read_adapter(archive: zipfile.ZipFile, entry: zipfile.ZipInfo | None, manifest: Manifest) -> bytes:
    """Return the adapter, if the manifest states one with this digest, of memories of the pack."""
    stated = manifest.adapter
    if entry is None and stated is None:
        return b""
    if entry is None or stated is None:
        _refuse_file(f"{ADAPTER} and the manifest's `adapter` belong together.")
    content = _read_bounded(archive, entry, LARGEST_ADAPTER)
    if hashlib.sha256(content).hexdigest() != stated.digest:
        _refuse_file("The adapter has another digest than the manifest.")
    if not {str(memory_id) for memory_id in stated.memories} <= manifest.digests.keys():
        _refuse_file("The adapter was trained on memories that the pack does not have.")
    return content


def _make_entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, WRITTEN_AT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry


def _read_entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the entries by name. They must be plain files within their limits that do not overlap."""
    found = archive.infolist()
    if sorted(entry.filename for entry in found) not in ([MANIFEST, MEMORIES], [ADAPTER, MANIFEST, MEMORIES]):
        _refuse_file(f"It must hold {MANIFEST} and {MEMORIES}, perhaps {ADAPTER}, and nothing else.")
    for entry, largest in ((entry, _largest_size(entry.filename)) for entry in found):
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in {0, stat.S_IFREG} or entry.is_dir():
            _refuse_file("An entry is no plain file.")
        if entry.flag_bits & 0x1:
            _refuse_file("An entry is encrypted.")
        if entry.compress_type not in READABLE:
            _refuse_file("An entry is neither stored nor deflated.")
        if entry.file_size > largest or entry.compress_size > size:
            _refuse_file(f"{entry.filename} has more than {largest} bytes.")
    for first, second in pairwise(sorted(found, key=lambda entry: entry.header_offset)):
        if first.header_offset + first.compress_size > second.header_offset:
            _refuse_file("Its entries overlap.")
    return {entry.filename: entry for entry in found}


def _largest_size(name: str) -> int:
    return {MANIFEST: LARGEST_MANIFEST, ADAPTER: LARGEST_ADAPTER}.get(name, LARGEST_MEMORIES)


def _read_bounded(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, largest: int) -> bytes:
    with archive.open(entry) as stream:
        content = stream.read(largest + 1)
    if len(content) > largest:
        _refuse_file(f"{entry.filename} has more than {largest} bytes.")
    return content


def _read_manifest(content: bytes) -> Manifest:
    manifest: Manifest = _validate_value(_MANIFEST, _parse_json(content, MANIFEST), MANIFEST)
    if not is_in_range(manifest.created_at) or manifest.created_at.tzinfo is None:
        _refuse_file("The manifest's created_at must be a time with its zone.")
    _check_signature(manifest)
    _check_statement(manifest)
    return manifest


def _check_statement(manifest: Manifest) -> None:
    """Refuse a statement about data subjects that is stronger than what the manifest says was done."""
    done, stated = manifest.de_identification, manifest.data_subjects
    is_of_older_release = done is None and stated is DataSubjects.DE_IDENTIFIED
    if stated is not state_data_subjects(done) and not is_of_older_release:
        _refuse_file("The manifest states something else of data subjects than what was done.")


def _check_signature(manifest: Manifest) -> None:
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(manifest.public_key))
        public.verify(bytes.fromhex(manifest.signature), manifest.signed_bytes())
    except (ValueError, InvalidSignature) as error:
        raise PackInvalid("The signature is not that of this manifest.") from error


def _read_items(lines: IO[bytes], manifest: Manifest) -> tuple[Item, ...]:
    """Read and check the memories. Raises PackInvalid if a line is no memory, or digests or counts do not match the
    manifest."""
    whole = hashlib.sha256()
    items: dict[UUID, Item] = {}
    for number, line in enumerate(_read_lines(lines), 1):
        whole.update(line)
        if number > manifest.count:
            _refuse_file(f"It holds more memories than the manifest's {manifest.count}.")
        text = line.removesuffix(b"\n")
        item: Item = _validate_value(_ITEM, _parse_json(text, f"line {number}"), f"line {number}")
        _check_item(item, number)
        if item.id in items:
            _refuse_file(f"Line {number} repeats an id.")
        digest, key = hashlib.sha256(text).hexdigest(), str(item.id)
        if digest not in (manifest.digests.get(key), manifest.alternatives.get(key)):
            _refuse_file(f"Line {number} has another digest than the manifest.")
        items[item.id] = item
    if len(items) != manifest.count or len(manifest.digests) != manifest.count:
        _refuse_file(f"It holds {len(items)} memories, and its manifest states {manifest.count}.")
    if not manifest.alternatives.keys() <= manifest.digests.keys():
        _refuse_file("The manifest has a second wording of a memory that it does not list.")
    first = (
        _combine_digests(manifest.digests[str(key)] for key in items) if manifest.alternatives else whole.hexdigest()
    )
    if first != manifest.digest:
        _refuse_file("The memories have another digest than the manifest.")
    return tuple(items.values())


def _combine_digests(digests: Iterable[str]) -> str:
    """Return the digest of lines with two wordings: that of their first wordings' digests, each with a line feed."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()


def _read_lines(stream: IO[bytes]) -> Iterator[bytes]:
    read = 0
    while line := stream.readline(LARGEST_LINE + 1):
        read += len(line)
        if len(line) > LARGEST_LINE or read > LARGEST_MEMORIES:
            _refuse_file(f"A line has at most {LARGEST_LINE} bytes, and all at most {LARGEST_MEMORIES}.")
        yield line


def _check_item(item: Item, number: int) -> None:
    stated = (item.event_time, item.said_at, item.valid_from, item.valid_to)
    times = [time for time in stated if time is not None]
    if not all(time.tzinfo is not None and is_in_range(time) for time in times):
        _refuse_file(f"Line {number} has a time without a zone, or out of range.")
    if item.valid_from and item.valid_to and item.valid_to <= item.valid_from:
        _refuse_file(f"Line {number} ends being valid before it begins.")
    if any("\x00" in text for text in (item.content, item.title, *item.tags)) or not item.content.strip():
        _refuse_file(f"Line {number} has an empty content, or a NUL.")


def _parse_json(content: bytes, place: str) -> Any:
    try:
        return json.loads(content.decode(), parse_constant=_no_number, object_pairs_hook=refuse_repeated_names)
    except (ValueError, RecursionError) as error:
        raise PackInvalid(f"{place} is no JSON in UTF-8.") from error


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for a name that stands twice: readers would differ on which one counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _validate_value(adapter: TypeAdapter[Any], value: Any, place: str) -> Any:
    try:
        return adapter.validate_python(value)
    except (ValidationError, RecursionError) as error:
        faults = error.errors()[:MOST_FAULTS] if isinstance(error, ValidationError) else []
        named = [FieldError(f"{place}: {_format_location(fault['loc'])}", fault["type"]) for fault in faults]
        raise PackInvalid(f"{place} has fields that are missing, unknown or out of bounds.", errors=named) from error


def _format_location(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:40] for part in location[:3])


def _refuse_file(detail: str) -> NoReturn:
    raise PackInvalid(detail)
