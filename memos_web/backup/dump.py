"""`manage.py backup`: saves the database and its files as of one moment, while the product serves.

Keys are never part of a backup: they are backed up separately, in another place, and kept for a shorter time.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from governance.errors import DomainError
from governance.keys.moving import contents_of, copy_contents
from governance.keys.places import SqlitePlace, is_moved, place_at
from memos_web.backup.manifest import DUMP, MIGRATED, BackupError, Manifest, file_digest, files_below, manifest_write
from memos_web.backup.programs import run_tool
from memos_web.backup.rowhash import session_set, table_hashes
from memos_web.config import Config
from memos_web.embedded import postgres
from memos_web.embedded.bootstrap import DATABASE
from memos_web.fellows import STORE_ID
from memos_web.installation import key_store_path
from vault.providers.blobs_folder import FolderBlobStore
from vault.providers.ports import BlobStoreUnavailable
from vault.providers.registry import BLOBS, choose_blob_store

ROLE = "memos_backup"
FOLDERS = ("checkpoints", "receipts")  # of the data directory, beside the database
PARTIAL = ".partial"  # ends the name of a backup that is being written
COPIES = 7  # of the key store in one folder
KEY_STORE = "keystore-{at}.sqlite3"


def backup_make(config: Config, folder: Path) -> Manifest:
    """Write a backup to a new folder, completely or not at all. Raises BackupError."""
    if folder.exists():
        raise BackupError(f"{folder} is there already: name a new folder")
    draft = folder.with_name(f"{folder.name}{PARTIAL}")
    try:
        _remove_partial_backups(folder.parent)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True, mode=0o700)
        with _lock_folder(draft):
            manifest = _write(config, draft)
            draft.rename(folder)
    except OSError as error:
        raise BackupError(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _remove_partial_backups(parent: Path) -> None:
    """Remove what killed backups left in this folder. One that is being written holds a lock."""
    for path in parent.glob(f"*{PARTIAL}"):
        if (path / DUMP).is_file():
            with suppress(BlockingIOError), _lock_folder(path):
                shutil.rmtree(path)


@contextmanager
def _lock_folder(path: Path) -> Iterator[None]:
    """Hold a lock on a folder. Raises BlockingIOError where another process has it."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(folder)


def keys_copy(config: Config, folder: Path) -> Path:
    """Copy the key store to a new file in `folder`, return its path, and remove all but the newest COPIES.
    Raises BackupError."""
    source = place_at(config.key_store_url or key_store_path(config))
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    path = folder / KEY_STORE.format(at=at)
    try:
        if source.mark() is None:
            raise BackupError(f"the key store is missing: {source.name}")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with source.open() as store:
            if is_moved(store):
                raise BackupError(f"the key store has moved from {source.name}: set MEMOS_KEY_STORE_URL accordingly")
        with source.transaction() as store:
            copy_contents(contents_of(store), SqlitePlace(path))
        for older in sorted(folder.glob(KEY_STORE.format(at="*")))[:-COPIES]:
            older.unlink()
    except (OSError, DomainError) as error:
        raise BackupError(f"the key store cannot be copied to {folder}: {error}") from error
    return path


def _write(config: Config, folder: Path) -> Manifest:
    conninfo = _conninfo(config)
    with _snapshot(conninfo) as (connection, snapshot):
        words = ["--format=custom", f"--snapshot={snapshot}", f"--file={folder / DUMP}"]
        run_tool("pg_dump", words, conninfo)
        tables = table_hashes(connection)
        migrations = {app: _last_migration(connection, app) for app in MIGRATED}
        noted = connection.execute("SELECT store_id::text FROM governance_keystorenote WHERE id = 1").fetchone()
        at = connection.execute("SELECT now()").fetchone()
    for name in FOLDERS:
        if (config.data_dir / name).is_dir():
            shutil.copytree(config.data_dir / name, folder / name)
    blobs_copy(config, folder / BLOBS)
    manifest = Manifest(
        at=at[0].isoformat() if at else "",
        key_store_id=noted[0] if noted else "",
        migrations=migrations,
        tables=tables,
        files={str(path.relative_to(folder)): file_digest(path) for path in files_below(folder)},
    )
    manifest_write(folder, manifest)
    return manifest


def blobs_copy(config: Config, folder: Path) -> None:
    """Copy the blobs, after the database: blobs that its rows refer to stay for at least a day. Blobs erased meanwhile
    are left out. Raises BackupError."""
    store, copy = choose_blob_store(config.blob_store, config.data_dir), FolderBlobStore(folder)
    try:
        for entry in store.entries():
            content = store.read(entry.name) if entry.name != STORE_ID else None
            if content is not None:
                copy.write(entry.name, content)
    except BlobStoreUnavailable as error:
        raise BackupError(f"the blobs of {store.name} cannot be copied: {error.detail}") from error


@contextmanager
def _snapshot(conninfo: str) -> Iterator[tuple[psycopg.Connection[Any], str]]:
    """Yield a connection in a transaction with a snapshot of the database, and the name of the snapshot for pg_dump."""
    try:
        with psycopg.connect(conninfo, connect_timeout=5, autocommit=True) as connection:
            session_set(connection)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = connection.execute("SELECT pg_export_snapshot()").fetchone()
            yield connection, str(row[0] if row else "")
    except psycopg.OperationalError as error:
        raise BackupError(f"the database does not answer as {ROLE}: {' '.join(str(error).split())}") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise BackupError(f"{ROLE} may not read everything: run deploy/backup.sql as a superuser") from error


def _conninfo(config: Config) -> str:
    server = postgres.of(config)
    if server is not None:
        return server.conninfo(database=DATABASE, user=ROLE)
    if not config.database_backup_url:
        raise BackupError(f"set DATABASE_BACKUP_URL: the address of the database as {ROLE}")
    return config.database_backup_url


def _last_migration(connection: psycopg.Connection[Any], app: str) -> str:
    last = "SELECT name FROM django_migrations WHERE app = %s ORDER BY name DESC LIMIT 1"
    row = connection.execute(last, [app]).fetchone()
    if row is None:
        raise BackupError("the database is not migrated: there is nothing to back up")
    return str(row[0])
