"""The manifest of a backup: code version, key store, and hashes of rows and files."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

FORMAT = "memos-backup/1"
NAME = "backup.json"
DUMP = "database.dump"
MIGRATED = ("governance", "vault")  # apps whose last migration determines which code can read the rows
ROOT = Path(__file__).resolve().parents[2]


class BackupError(Exception):
    """A backup or a restoration failed. The message is one line for a person."""


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


def manifest_write(folder: Path, manifest: Manifest) -> None:
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1, sort_keys=True)
    (folder / NAME).write_text(text + "\n", encoding="utf-8")


def manifest_read(folder: Path) -> Manifest:
    """Read the manifest of a backup and check its files. Raises BackupError if it is no backup, is of another release,
    or a file is missing or changed."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
        kind = found.pop("format")
        tables = {name: TableHash(**table) for name, table in found.pop("tables").items()}
        manifest = Manifest(tables=tables, **found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"{folder} holds no backup") from error
    if kind != FORMAT:
        raise BackupError(f"{folder} has the format {kind}; this release reads {FORMAT}")
    _refuse_newer(manifest)
    _refuse_changed(folder, manifest)
    return manifest


def files_below(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file() and path.name != NAME)


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_newer(manifest: Manifest) -> None:
    for app in MIGRATED:
        last = manifest.migrations.get(app, "")
        if not (ROOT / app / "migrations" / f"{last}.py").is_file():
            raise BackupError(f"the backup was made by another release: this one has no migration {app} {last}")


def _refuse_changed(folder: Path, manifest: Manifest) -> None:
    for name, digest in manifest.files.items():
        path = folder / name
        if not path.is_file() or file_digest(path) != digest:
            raise BackupError(f"{path} is missing, or was changed since the backup was made")
