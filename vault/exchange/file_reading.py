"""Reads a file that is imported, in the process for files: what comes back is small, or ready to be stored. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from governance.errors import FieldError, Invalid
from governance.keys.services import TokenMaker
from vault.exchange.conversations import CONVERSATIONS, conversation_read, list_texts, request_write
from vault.exchange.file_preview import SAMPLES, FileView, Names, Sample, count_names, make_sample, rename_items
from vault.exchange.formats import file_parse, table_columns
from vault.exchange.item_drafts import ItemDigest, item_digest
from vault.exchange.items import LeftOut, Parsed, is_broken, item_line
from vault.layers.formats import Imported
from vault.namespaces.rules import PathError, check_path
from vault.vocabulary import ImportFormat, OnConflict

LONGEST_LABEL = 200


@dataclass(frozen=True)
class ImportDraft:
    """A file to import.

    namespace: the target of all memories; None: as the file says, otherwise the actor's private namespace. columns: for
    a CSV file, our field → the file's column. namespaces, speakers: name in the file → name to store.
    """

    content: bytes = field(repr=False)
    form: ImportFormat
    namespace: str | None = None
    persona: str | None = None
    on_conflict: OnConflict = OnConflict.SKIP
    columns: Names = field(default_factory=dict)
    namespaces: Names = field(default_factory=dict)
    speakers: Names = field(default_factory=dict)


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
    left_out: tuple[LeftOut, ...] = ()
    publisher: Publisher | None = None


@dataclass(frozen=True)
class ReadFile:
    """A file as lines of the job that stores it. total: memories, or texts of conversations."""

    lines: tuple[bytes, ...] = field(repr=False)
    total: int
    left_out: tuple[LeftOut, ...] = ()
    publisher: Publisher | None = None


def file_check(draft: ImportDraft, maker: TokenMaker) -> CheckedFile:
    """Raises Invalid; TooLarge."""
    if draft.form in CONVERSATIONS:
        _check_conversation(draft)
        file = conversation_read(draft.content, draft.form)
        texts = tuple(ItemDigest("", (maker.hash(text),)) for text in list_texts(file.imported))
        return CheckedFile(_conversation_view(draft, file.imported), texts, file.left_out)
    parsed = file_parse(draft.content, draft.form, draft.columns)
    view = _items_view(draft, parsed)
    parsed = _apply_mapping(draft, parsed)
    memories = tuple(item_digest(item, maker) for item in parsed.items)
    return CheckedFile(view, memories, parsed.left_out, _find_publisher(parsed))


def file_view(draft: ImportDraft) -> FileView:
    """The content of a file, also where its mapping is not complete yet. Raises Invalid; TooLarge."""
    if draft.form in CONVERSATIONS:
        _check_conversation(draft)
        return _conversation_view(draft, conversation_read(draft.content, draft.form).imported)
    try:
        return _items_view(draft, file_parse(draft.content, draft.form, draft.columns))
    except Invalid as fault:
        if draft.form is not ImportFormat.CSV or all(error.field != "columns" for error in fault.errors):
            raise
        return FileView(*_read_table(draft))


def file_lines(draft: ImportDraft) -> ReadFile:
    """Raises Invalid; TooLarge."""
    if draft.form in CONVERSATIONS:
        _check_conversation(draft)
        file = conversation_read(draft.content, draft.form)
        return ReadFile((request_write(file.imported),), file.size, file.left_out)
    parsed = _apply_mapping(draft, file_parse(draft.content, draft.form, draft.columns))
    lines = tuple(item_line(item) for item in parsed.items)
    return ReadFile(lines, len(lines), parsed.left_out, _find_publisher(parsed))


def _apply_mapping(draft: ImportDraft, parsed: Parsed) -> Parsed:
    """The file under the names to store. Raises Invalid."""
    items = rename_items(parsed.items, draft.namespaces, draft.speakers)
    _check_paths({draft.namespace} if draft.namespace else {item.namespace for item in items if item.namespace})
    for field_name, names in (("speakers", draft.speakers.values()), ("persona", [draft.persona or ""])):
        if any(len(name) > LONGEST_LABEL or is_broken(name) for name in names):
            raise Invalid(errors=[FieldError(field_name, f"at most {LONGEST_LABEL} characters, and no NUL")])
    return replace(parsed, items=items)


def _items_view(draft: ImportDraft, parsed: Parsed) -> FileView:
    columns, chosen = _read_table(draft) if draft.form is ImportFormat.CSV else ((), {})
    some = rename_items(parsed.items[:SAMPLES], draft.namespaces, draft.speakers)
    return FileView(
        columns=columns,
        chosen=chosen,
        namespaces=count_names(parsed.items, "namespace"),
        speakers=count_names(parsed.items, "speaker"),
        samples=tuple(make_sample(item, draft.namespace) for item in some),
    )


def _read_table(draft: ImportDraft) -> tuple[tuple[str, ...], dict[str, str]]:
    """The columns of a CSV file, and those that are chosen by our name. Raises Invalid."""
    names, guessed = table_columns(draft.content)
    return tuple(names), {**guessed, **draft.columns}


def _conversation_view(draft: ImportDraft, imported: Imported) -> FileView:
    texts = list_texts(imported)[:SAMPLES]
    return FileView(samples=tuple(Sample(text, namespace=draft.namespace or "") for text in texts))


def _check_conversation(draft: ImportDraft) -> None:
    """Raises Invalid for a mapping that a conversation has not."""
    for name in ("columns", "namespaces", "speakers"):
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


def _find_publisher(parsed: Parsed) -> Publisher | None:
    manifest = parsed.manifest
    return None if manifest is None else Publisher(manifest.name, manifest.version, manifest.key_id)
