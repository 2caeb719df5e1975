"""Limits, zips, and the item of a text, for the readers of all formats. Pure.

Every size is bounded before anything is read.
"""

import io
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, NoReturn

from governance.errors import Invalid
from vault.exchange.items import Item, Unfit, item_check
from vault.vocabulary import SemanticType

LARGEST_FILE = 16 * 1024 * 1024  # bytes
LARGEST_UNPACKED = 64 * 1024 * 1024  # of all entries of a zip
LARGEST_ENTRY = 2 * 1024 * 1024
LARGEST_LINE = 4 * 1024 * 1024
MOST_ITEMS = 20_000
MOST_ENTRIES = 10_000
READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Entries = Iterator[tuple[str, Callable[[], Item]]]


@contextmanager
def archive_open(content: bytes) -> Iterator[zipfile.ZipFile]:
    """A zip for reading. Raises Invalid, also for what reading its files meets."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise Invalid("The file is no readable zip.") from error


def archive_entries(archive: zipfile.ZipFile, size: int, largest: int = LARGEST_ENTRY) -> list[zipfile.ZipInfo]:
    """The plain files of a zip within its limits. largest: bytes of one, unpacked. Raises Invalid."""
    found = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(found) > MOST_ENTRIES:
        refuse(f"A zip has at most {MOST_ENTRIES} files.")
    if sum(entry.file_size for entry in found) > LARGEST_UNPACKED:
        refuse(f"A zip unpacks to at most {LARGEST_UNPACKED} bytes.")
    for entry in found:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in {0, stat.S_IFREG} or entry.flag_bits & 0x1 or entry.compress_type not in READABLE:
            refuse("An entry is a link, encrypted, or neither stored nor deflated.")
        if entry.filename.startswith("/") or ".." in PurePosixPath(entry.filename.replace("\\", "/")).parts:
            refuse("The name of an entry leads out of the zip.")
        if entry.file_size > largest or entry.compress_size > size:
            refuse(f"A file in it has more than {largest} bytes.")
    return found


def entry_read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, largest: int = LARGEST_ENTRY) -> bytes:
    """The unpacked bytes of a file of a zip. Raises Invalid."""
    with archive.open(entry) as stream:
        content = stream.read(largest + 1)
    if len(content) > largest:
        refuse("An entry is larger than it states.")
    return content


def text_item(
    text: str,
    *,
    id: str = "",
    title: str = "",
    tags: tuple[str, ...] = (),
    at: str = "",
    metadata: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    semantic_type: SemanticType = SemanticType.FACT,
    made_from: tuple[Mapping[str, Any], ...] = (),
) -> Item:
    """id: empty where the file names none; then the text itself identifies the memory. Raises Unfit."""
    if not text.strip():
        raise Unfit("empty")
    version = {
        "content": text.strip(),
        "title": title,
        "tags": tags,
        "metadata": metadata or {},
        "semantic_type": semantic_type,
        "event_time": moment_read(at),
    }
    identity = id or sha256(text.strip().encode(errors="replace")).hexdigest()
    said_at = version["event_time"]
    return item_check(
        {"id": identity, "versions": [version], "made_from": made_from, "said_at": said_at, **(labels or {})}
    )


def moment_read(text: str) -> datetime | None:
    """ISO 8601, UTC where no zone is named; None for no text. Raises Unfit."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Unfit("bad_time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def unfit_entry(reason: str) -> Callable[[], Item]:
    def fail() -> Item:
        raise Unfit(reason)

    return fail


def refuse(detail: str) -> NoReturn:
    raise Invalid(detail)
