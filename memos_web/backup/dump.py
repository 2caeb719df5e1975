"""`manage.py backup`: saves the database and its files as of one moment, while the product serves.

Keys are never part of a backup: they are backed up separately, in another place, and kept for a shorter time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from governance.errors import DomainError
from governance.keys.moving import contents_of, copy_contents
from governance.keys.places import SqlitePlace, is_moved, place_at
from memos_web.backup.manifest import DUMP, MIGRATED, NAME, BackupError, Manifest, files_below, manifest_text
from memos_web.backup.places import FolderPlace, Place, Write
from memos_web.backup.programs import tool_output
from memos_web.backup.rowhash import session_set, table_hashes
from memos_web.config import Config
from memos_web.embedded import postgres
from memos_web.embedded.bootstrap import DATABASE
from memos_web.fellows import STORE_ID
from memos_web.installation import key_store_path
from vault.providers.ports import BlobStoreUnavailable
from vault.providers.registry import BLOBS, choose_blob_store

ROLE = "memos_backup"
FOLDERS = ("checkpoints", "receipts")  # of the data directory, beside the database
COPIES = 7  # of the key store in one folder
KEY_STORE = "keystore-{at}.sqlite3"


def backup_make(config: Config, place: Place) -> Manifest:
    """Write a backup to a new place, completely or not at all. Raises BackupError."""
    conninfo = _conninfo(config)
    with _snapshot(conninfo) as (connection, snapshot):
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        with place.writing(int(row[0]) if row else 0) as write:
            return _write(config, conninfo, connection, snapshot, write)


def keys_copy(config: Config, target: Place) -> str:
    """Copy the key store to a new file in a folder or bucket, return its place, and remove all but the newest COPIES.
    Raises BackupError."""
    source = place_at(config.key_store_url or key_store_path(config))
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    try:
        if source.mark() is None:
            raise BackupError(f"the key store is missing: {source.name}")
        with source.open() as store:
            if is_moved(store):
                raise BackupError(f"the key store has moved from {source.name}: set MEMOS_KEY_STORE_URL accordingly")
        with TemporaryDirectory(prefix="memos-keys-") as scratch, source.transaction() as store:
            path = Path(scratch) / KEY_STORE.format(at=at)
            copy_contents(contents_of(store), SqlitePlace(path))
            return target.add(path, pattern=KEY_STORE.format(at="*"), most=COPIES)
    except (OSError, DomainError) as error:
        raise BackupError(f"the key store cannot be copied to {target.name}: {error}") from error


def _write(config: Config, conninfo: str, connection: psycopg.Connection[Any], snapshot: str, write: Write) -> Manifest:
    words = ["--format=custom", f"--snapshot={snapshot}"]
    files = {DUMP: write(DUMP, tool_output("pg_dump", words, conninfo))}
    tables = table_hashes(connection)
    migrations = {app: _last_migration(connection, app) for app in MIGRATED}
    noted = connection.execute("SELECT store_id::text FROM governance_keystorenote WHERE id = 1").fetchone()
    at = connection.execute("SELECT now()").fetchone()
    connection.rollback()  # the blobs come after it, and VACUUM need not wait for them
    own = FolderPlace(config.data_dir)
    for path in (path for folder in FOLDERS for path in files_below(config.data_dir / folder)):
        name = str(path.relative_to(config.data_dir))
        files[name] = write(name, own.read(name))
    files |= blobs_copy(config, write)
    manifest = Manifest(
        at=at[0].isoformat() if at else "",
        key_store_id=noted[0] if noted else "",
        migrations=migrations,
        tables=tables,
        files=files,
    )
    write(NAME, [manifest_text(manifest)])
    return manifest


def blobs_copy(config: Config, write: Write) -> dict[str, str]:
    """Copy the blobs, after the database: blobs that its rows refer to stay for at least a day. Blobs erased meanwhile
    are left out. Returns the hash of each file. Raises BackupError."""
    store, files = choose_blob_store(config.blob_store, config.data_dir), {}
    try:
        for entry in store.entries():
            content = store.read(entry.name) if entry.name != STORE_ID else None
            if content is not None:
                name = f"{BLOBS}/{entry.name}"
                files[name] = write(name, [content])
    except BlobStoreUnavailable as error:
        raise BackupError(f"the blobs of {store.name} cannot be copied: {error.detail}") from error
    return files


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
