"""Reads a file that is imported, in the process for files: what comes back is small, or ready to be stored. Pure."""

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import BinaryIO

from governance.errors import FieldError, Invalid, TooLarge
from governance.keys.services import TokenMaker
from vault.exchange.archives import LARGEST_FILE, MOST_ITEMS, documents_open
from vault.exchange.conversations import CONVERSATIONS, conversation_read, list_texts, request_write
from vault.exchange.dumps import pack_entries
from vault.exchange.file_preview import SAMPLES, FileView, Names, Sample, make_sample, rename_item, top_names
from vault.exchange.formats import read_items, recognise_format
from vault.exchange.item_drafts import ItemDigest, item_digest
from vault.exchange.items import Item, LeftOut, LeftOutReport, is_broken, item_line
from vault.exchange.sealed_file import SealedFile
from vault.exchange.tables import table_columns
from vault.layers.formats import Imported
from vault.namespaces.rules import PathError, check_path
from vault.store.files import ADAPTER, Pack, file_read
from vault.vocabulary import ImportFormat, OnConflict

LONGEST_LABEL = 200
PART = 500  # memories that the job of an import stores at once
LENGTH = 8  # bytes of the length of a part


@dataclass(frozen=True)
class ImportDraft:
    """A file to import.

    namespace: the target of all memories; None: as the file says, otherwise the actor's private namespace. columns: for
    a CSV file, our field → the file's column. namespaces, speakers, personas: name in the file → name to store.
    """

    content: bytes | SealedFile = field(repr=False)
    form: ImportFormat
    namespace: str | None = None
    persona: str | None = None
    on_conflict: OnConflict = OnConflict.SKIP
    columns: Names = field(default_factory=dict)
    namespaces: Names = field(default_factory=dict)
    speakers: Names = field(default_factory=dict)
    personas: Names = field(default_factory=dict)


@dataclass(frozen=True)
class Publisher:
    """The publisher of a memory pack, as its manifest states it; the manifest's signature was checked."""

    pack: str
    version: str
    key_id: str


@dataclass(frozen=True)
class CheckedFile:
    """A file for its dry run. The texts of a conversation have no id."""

    view: FileView
    memories: tuple[ItemDigest, ...] = field(repr=False)
    left_out: LeftOutReport = field(default_factory=LeftOutReport)
    publisher: Publisher | None = None


@dataclass(frozen=True)
class ReadFile:
    """A file for the job that stores it. total: memories, or texts of conversations.

    lines: of a small file; those of a larger one are written to a file, PART in each of its parts.
    """

    lines: tuple[bytes, ...] = field(repr=False)
    total: int
    left_out: LeftOutReport = field(default_factory=LeftOutReport)
    publisher: Publisher | None = None


def open_content(content: bytes | SealedFile) -> BinaryIO:
    """The bytes of a file as a stream."""
    return io.BytesIO(content) if isinstance(content, bytes) else content.open()


@dataclass
class _Reading:
    """A file while it is read. left_out: what is left out so far; pack: of a memory pack, checked."""

    draft: ImportDraft
    left_out: LeftOutReport = field(default_factory=LeftOutReport)
    pack: Pack | None = None

    def read(self) -> Iterator[Item]:
        """Yield the memories as the file names them. Raises Invalid; TooLarge."""
        for number, part in enumerate(self._parts(), 1):
            if number > MOST_ITEMS:
                raise TooLarge(f"A file holds at most {MOST_ITEMS:,} memories. Split it.")
            if isinstance(part, LeftOut):
                self.left_out.add(part)
            else:
                yield part

    def map(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the memories under the names to store. Raises Invalid for a name that cannot be stored."""
        draft = self.draft
        _check_names(draft)
        for item in items:
            mapped = rename_item(item, draft.namespaces, draft.speakers, draft.personas)
            if mapped.namespace and not draft.namespace:
                _check_paths({mapped.namespace})
            yield mapped

    def _parts(self) -> Iterator[Item | LeftOut]:
        if self.draft.form is ImportFormat.MEMPACK:
            self.pack = file_read(open_content(self.draft.content).read(LARGEST_FILE + 1))
            yield from (entry() for _, entry in pack_entries(self.pack))
            if self.pack.adapter:
                yield LeftOut(ADAPTER, "adapter")
        else:
            yield from read_items(open_content(self.draft.content), self.draft.form, self.draft.columns)

    @property
    def publisher(self) -> Publisher | None:
        manifest = self.pack.manifest if self.pack else None
        return None if manifest is None else Publisher(manifest.name, manifest.version, manifest.key_id)


def file_form(content: bytes | SealedFile, name: str) -> ImportFormat | None:
    """The format of a file, by its content and name; None where none fits. Raises Invalid."""
    return recognise_format(open_content(content), name)


def file_check(draft: ImportDraft, maker: TokenMaker) -> CheckedFile:
    """Raises Invalid; TooLarge."""
    if draft.form in CONVERSATIONS:
        _check_conversation(draft)
        file = conversation_read(open_content(draft.content), draft.form)
        texts = tuple(ItemDigest("", (maker.hash(text),)) for text in list_texts(file.imported))
        return CheckedFile(_conversation_view(draft, file.imported), texts, LeftOutReport.of(file.left_out))
    reading, view = _Reading(draft), _ViewWriter(draft)
    digests = tuple(item_digest(item, maker) for item in reading.map(map(view.add, reading.read())))
    return CheckedFile(view.make_view(), digests, reading.left_out, reading.publisher)


def file_view(draft: ImportDraft) -> FileView:
    """The content of a file, also where its mapping is not complete yet. Raises Invalid; TooLarge."""
    if draft.form in CONVERSATIONS:
        _check_conversation(draft)
        return _conversation_view(draft, conversation_read(open_content(draft.content), draft.form).imported)
    try:
        view = _ViewWriter(draft)
        for item in _Reading(draft).read():
            view.add(item)
        return view.make_view()
    except Invalid as fault:
        if draft.form is not ImportFormat.CSV or all(error.field != "columns" for error in fault.errors):
            raise
        return FileView(*_read_table(draft))


def file_lines(draft: ImportDraft, larger: SealedFile | None = None) -> ReadFile:
    """Read a file for its job. larger: takes the lines of more than PART memories. Raises Invalid; TooLarge."""
    if draft.form in CONVERSATIONS:
        _check_conversation(draft)
        file = conversation_read(open_content(draft.content), draft.form)
        return ReadFile((request_write(file.imported),), file.size, LeftOutReport.of(file.left_out))
    reading = _Reading(draft)
    items = reading.map(reading.read())
    lines = tuple(item_line(item) for item in (islice(items, PART) if larger else items))
    if larger is None or len(lines) < PART:
        return ReadFile(lines, len(lines), reading.left_out, reading.publisher)
    counted = _Counted(chain(lines, map(item_line, items)))
    larger.write(frame_parts(counted))
    return ReadFile((), counted.total, reading.left_out, reading.publisher)


class _Counted:
    """Lines with their number so far."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines, self.total = iter(lines), 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.total += 1
            yield line


def frame_parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield PART lines at a time, each after their length in 8 bytes."""
    waiting = iter(lines)
    while part := b"\n".join(islice(waiting, PART)):
        yield len(part).to_bytes(LENGTH, "big") + part


def read_parts(file: SealedFile) -> Iterator[bytes]:
    """Yield what `frame_parts` framed."""
    with file.open() as stream:
        while length := int.from_bytes(stream.read(LENGTH), "big"):
            yield stream.read(length)


def _check_names(draft: ImportDraft) -> None:
    """Raises Invalid for a name that cannot be stored."""
    _check_paths({draft.namespace} if draft.namespace else set())
    given = (("speakers", draft.speakers), ("personas", draft.personas), ("persona", {"": draft.persona or ""}))
    for field_name, names in given:
        if any(len(name) > LONGEST_LABEL or is_broken(name) for name in names.values()):
            raise Invalid(errors=[FieldError(field_name, f"at most {LONGEST_LABEL} characters, and no NUL")])


class _ViewWriter:
    """Collects what the mapping can be chosen from, while the items are read."""

    def __init__(self, draft: ImportDraft) -> None:
        self._draft = draft
        self._names = {name: Counter[str]() for name in ("namespace", "speaker", "persona")}
        self._samples: list[Sample] = []

    def add(self, item: Item) -> Item:
        draft = self._draft
        for name, counts in self._names.items():
            counts[getattr(item, name)] += 1
        if len(self._samples) < SAMPLES:
            mapped = rename_item(item, draft.namespaces, draft.speakers, draft.personas)
            self._samples.append(make_sample(mapped, draft.namespace))
        return item

    def make_view(self) -> FileView:
        columns, chosen = _read_table(self._draft) if self._draft.form is ImportFormat.CSV else ((), {})
        return FileView(
            columns=columns,
            chosen=chosen,
            namespaces=top_names(self._names["namespace"]),
            speakers=top_names(self._names["speaker"]),
            personas=top_names(self._names["persona"]),
            samples=tuple(self._samples),
        )


def _read_table(draft: ImportDraft) -> tuple[tuple[str, ...], dict[str, str]]:
    """The columns of a CSV file, and those that are chosen by our name. Raises Invalid."""
    with documents_open(open_content(draft.content)) as documents:
        names, guessed = table_columns(documents[0])
    return tuple(names), {**guessed, **draft.columns}


def _conversation_view(draft: ImportDraft, imported: Imported) -> FileView:
    texts = list_texts(imported)[:SAMPLES]
    return FileView(samples=tuple(Sample(text, namespace=draft.namespace or "") for text in texts))


def _check_conversation(draft: ImportDraft) -> None:
    """Raises Invalid for a mapping that a conversation has not."""
    for name in ("columns", "namespaces", "speakers", "personas"):
        if getattr(draft, name):
            raise Invalid(errors=[FieldError(name, "a file of conversations has none")])
    _check_paths({draft.namespace} if draft.namespace else set())


def _check_paths(paths: Iterable[str]) -> None:
    """Check the paths. Raises Invalid."""
    for path in sorted(paths):
        try:
            check_path(path)
        except PathError as fault:
            raise Invalid(errors=[FieldError("namespace", str(fault))]) from fault
