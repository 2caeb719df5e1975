"""Limits, zips, and the item of a text, for the readers of all formats. Pure.

Every size is bounded before anything is read.
"""

import io
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NoReturn

from governance.errors import Invalid
from vault.exchange.items import BLOCK, Item, Unfit, item_check, iterate_list, json_read
from vault.vocabulary import SemanticType

LARGEST_FILE = 16 * 1024 * 1024  # bytes of a call; a larger file comes in parts
LARGEST_DOCUMENT = 64 * 1024 * 1024  # of a JSON document that is read as a whole
LARGEST_UNPACKED = 64 * 1024 * 1024  # of what is read of a zip, or
MOST_TIMES = 50  # times the size of the zip: text packs to a fifth or a tenth
LARGEST_ENTRY = 2 * 1024 * 1024
LARGEST_LINE = 4 * 1024 * 1024
MOST_ITEMS = 200_000
MOST_ENTRIES = 100_000  # an export of chats has thousands of pictures
SECONDS_OF_AN_AGE = 100_000_000  # as milliseconds, from 1973 on
READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Entries = Iterator[tuple[str, Callable[[], Item]]]


@dataclass(frozen=True)
class Document:
    """A file of a zip, or a file that is none. name: with its folders; empty for a file that is no zip."""

    name: str
    size: int
    _open: Callable[[], BinaryIO] = field(repr=False)

    @property
    def last_name(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def place(self) -> str:
        """The words that a report adds to a place in this file."""
        return f" of {self.name[:100]}" if self.name else ""

    def skip(self, reason: str) -> tuple[str, Callable[[], Item]]:
        """The entry of a file that is not read."""
        return f"file {self.name[:100]}", unfit_entry(reason)

    def read(self, largest: int = LARGEST_ENTRY) -> bytes:
        """The unpacked bytes. Raises Invalid for more than `largest`."""
        with self._open() as stream:
            content = stream.read(largest + 1)
        if len(content) > largest:
            refuse(
                f"A file in it has more than {largest} bytes." if self.name else f"The file is over {largest} bytes."
            )
        return content

    def json(self) -> Any:
        """The JSON of the whole file. Raises Invalid."""
        return json_read(self.read(LARGEST_DOCUMENT), self.name[:100] or "The file")

    def elements(self) -> Iterator[Any]:
        """Yield the elements of a file that is a JSON list, one after the other. Raises Invalid."""
        with self._open() as stream:
            yield from iterate_list(stream, self.name[:100] or "The file")

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, without their ends; what is longer than LARGEST_LINE is cut to one byte more."""
        with self._open() as stream:
            while line := stream.readline(LARGEST_LINE + 1):
                while len(line) > LARGEST_LINE and (more := stream.readline(LARGEST_LINE)) and not more.endswith(b"\n"):
                    pass
                yield line.rstrip(b"\r\n")

    def stream(self) -> BinaryIO:
        return self._open()


class Budget:
    """The bytes that may still be unpacked from one file."""

    def __init__(self, size: int) -> None:
        self.left = max(LARGEST_UNPACKED, MOST_TIMES * size)

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            refuse(f"A zip unpacks to at most {LARGEST_UNPACKED} bytes, or {MOST_TIMES} times its own size.")


class _Counted(io.RawIOBase):
    """The bytes that are read of a stream, taken from a budget. Closing leaves the stream open."""

    def __init__(self, stream: BinaryIO, budget: Budget) -> None:
        self._stream, self._budget = stream, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._budget.take(len(block))
        buffer[: len(block)] = block
        return len(block)


@contextmanager
def documents_open(stream: BinaryIO) -> Iterator[list[Document]]:
    """The files of a zip, or the one file that a stream is. Raises Invalid, also for what reading them meets."""
    start = stream.read(2)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if start != b"PK":
        yield [Document("", size, partial(_open_plain, stream, size))]
        return
    budget = Budget(size)
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive_entries(archive, size)
            yield [
                Document(entry.filename, entry.file_size, partial(_open_entry, archive, entry, budget))
                for entry in entries
            ]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise Invalid("The file is no readable zip.") from error


def _open_plain(stream: BinaryIO, size: int) -> BinaryIO:
    stream.seek(0)
    return io.BufferedReader(_Counted(stream, Budget(size)))


def _open_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget) -> BinaryIO:
    return io.BufferedReader(_Counted(archive.open(entry), budget), BLOCK)  # type: ignore[arg-type]


def archive_entries(archive: zipfile.ZipFile, size: int) -> list[zipfile.ZipInfo]:
    """The plain files of a zip. size: of the zip, in bytes. Raises Invalid."""
    found = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(found) > MOST_ENTRIES:
        refuse(f"A zip has at most {MOST_ENTRIES:,} files.")
    for entry in found:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in {0, stat.S_IFREG} or entry.flag_bits & 0x1 or entry.compress_type not in READABLE:
            refuse("An entry is a link, encrypted, or neither stored nor deflated.")
        if entry.filename.startswith("/") or ".." in PurePosixPath(entry.filename.replace("\\", "/")).parts:
            refuse("The name of an entry leads out of the zip.")
        if entry.compress_size > size:
            refuse("An entry is larger than the zip.")
    return found


def text_item(
    text: str,
    *,
    id: str = "",
    title: str = "",
    tags: tuple[str, ...] = (),
    at: Any = None,
    metadata: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    semantic_type: SemanticType = SemanticType.FACT,
    made_from: tuple[Mapping[str, Any], ...] = (),
    valid: tuple[Any, Any] = (None, None),
) -> Item:
    """Make the item of a text. id: empty where the file names none; then the text itself identifies the memory.

    at, valid: times as `moment_read` takes them; labels: other fields of the item. Raises Unfit.
    """
    if not text.strip():
        raise Unfit("empty")
    moment, valid_from, valid_to = (moment_read(value) for value in (at, *valid))
    version = {
        "content": text.strip(),
        "title": title,
        "tags": tags,
        "metadata": metadata or {},
        "semantic_type": semantic_type,
        "event_time": moment,
        "valid_from": valid_from,
        "valid_to": valid_to,
    }
    identity = id or sha256(text.strip().encode(errors="replace")).hexdigest()
    return item_check(
        {"id": identity, "versions": [version], "made_from": made_from, "said_at": moment, **(labels or {})}
    )


def moment_read(value: Any) -> datetime | None:
    """Read a time: ISO 8601, UTC where no zone is named, or seconds, milliseconds or microseconds since 1970; None for
    nothing. Raises Unfit."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(_in_seconds(value), UTC)
        else:
            raise Unfit("bad_time")
    except (ValueError, OverflowError, OSError) as error:
        raise Unfit("bad_time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _in_seconds(value: float) -> float:
    """The seconds of a number of seconds, milliseconds or microseconds: whichever is in this age."""
    for unit in (1_000_000, 1_000):
        if abs(value) >= unit * SECONDS_OF_AN_AGE:
            return value / unit
    return value


def end_of_day(value: Any) -> datetime | None:
    """The moment at which a day, as `2026-08-31`, is over in UTC; other times as they are. Raises Unfit."""
    moment = moment_read(value)
    is_day = isinstance(value, str) and len(value.strip()) == len("2026-08-31")
    return moment + timedelta(days=1) if moment and is_day else moment


def short_text(value: Any, longest: int = 200) -> str:
    """A text of this length at most; empty for anything else."""
    return value if isinstance(value, str) and len(value) <= longest else ""


def unfit_entry(reason: str) -> Callable[[], Item]:
    def fail() -> Item:
        raise Unfit(reason)

    return fail


def refuse(detail: str) -> NoReturn:
    raise Invalid(detail)
