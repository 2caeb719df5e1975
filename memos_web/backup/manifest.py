"""The manifest of a backup: code version, key store, and hashes of rows and files."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

FORMAT = "memos-backup/1"
NAME = "backup.json"
DUMP = "database.dump"
MIGRATED = ("governance", "vault")  # apps whose last migration determines which code can read the rows
FILE = re.compile(r"[\w.-]+(/[\w.-]+)*")
ROOT = Path(__file__).resolve().parents[2]


class BackupError(Exception):
    """A backup or a restoration failed. The message is one line for a person."""


class Missing(BackupError):
    """A file of a backup is not there."""


class Readable(Protocol):
    """The place of a backup, as far as it is read."""

    @property
    def name(self) -> str: ...

    def read(self, name: str) -> Iterator[bytes]:
        """Yield a file of the backup. Raises Missing; BackupError if it cannot be read."""


@dataclass(frozen=True)
class TableHash:
    """The hash of a table. rows: their number; digest: of all rows in any order, 128 bits in hex."""

    rows: int
    digest: str


@dataclass(frozen=True)
class Manifest:
    """The manifest. at: RFC 3339. migrations: app → last migration. files: path in the backup → SHA-256."""

    at: str
    key_store_id: str
    migrations: dict[str, str]
    tables: dict[str, TableHash]
    files: dict[str, str]


def manifest_text(manifest: Manifest) -> bytes:
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1, sort_keys=True)
    return f"{text}\n".encode()


def manifest_read(place: Readable) -> Manifest:
    """Read the manifest of a backup and check its files. Raises BackupError if it is no backup, is of another release,
    or a file is missing or changed."""
    try:
        found = json.loads(b"".join(place.read(NAME)))
        kind = found.pop("format")
        tables = {name: TableHash(**table) for name, table in found.pop("tables").items()}
        manifest = Manifest(tables=tables, **found)
    except (Missing, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"{place.name} holds no backup") from error
    if kind != FORMAT:
        raise BackupError(f"{place.name} has the format {kind}; this release reads {FORMAT}")
    _refuse_newer(manifest)
    _refuse_changed(place, manifest)
    return manifest


def files_below(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file() and path.name != NAME)


def _refuse_newer(manifest: Manifest) -> None:
    for app in MIGRATED:
        last = manifest.migrations.get(app, "")
        if not (ROOT / app / "migrations" / f"{last}.py").is_file():
            raise BackupError(f"the backup was made by another release: this one has no migration {app} {last}")


def _refuse_changed(place: Readable, manifest: Manifest) -> None:
    for name, expected in manifest.files.items():
        if not FILE.fullmatch(name) or ".." in name.split("/"):
            raise BackupError(f"{place.name} holds no backup: {name!r} is no name of a file")
        digest = hashlib.sha256()
        try:
            for part in place.read(name):
                digest.update(part)
        except Missing:
            digest = hashlib.sha256(b"missing")
        if digest.hexdigest() != expected:
            raise BackupError(f"{place.name}/{name} is missing, or was changed since the backup was made")
