"""`manage.py restore`: loads a backup into an empty database, checks every row, and repeats all later erasures."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import psycopg

from governance.errors import KeyUnavailable
from governance.keys.moving import contents_of, copy_contents
from governance.keys.places import Place, SqlitePlace, place_at
from governance.keys.store import SealedKeyStore
from memos_web.backup.dump import FOLDERS
from memos_web.backup.manifest import DUMP, BackupError, Manifest, Readable, manifest_read
from memos_web.backup.places import write_file
from memos_web.backup.programs import feed_tool
from memos_web.backup.rowhash import session_set, table_hashes
from memos_web.config import Config
from memos_web.embedded import postgres, product_programs
from memos_web.embedded.account import give, server_account
from memos_web.embedded.bootstrap import DATABASE, bootstrap, empty_database
from memos_web.embedded.errors import StartError
from memos_web.embedded.folders import lock_data_dir, prepare_data_dir
from memos_web.embedded.programs import Program, last_line, spawn, stop_all
from memos_web.installation import key_store_path, lost_master_key, master_key, secrets_make
from vault.providers.ports import BlobStoreUnavailable
from vault.providers.registry import BLOBS, choose_blob_store

START_SECONDS = 60.0
STOP_SECONDS = 30.0
SERVING = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'memos_app' AND datname = current_database()"


@dataclass(frozen=True)
class NotedStore:
    """The key store's id from the manifest, in place of a database that is not restored yet."""

    id: UUID

    def find_store_id(self) -> UUID:
        return self.id

    def database(self) -> None:
        return None

    def register(self, store_id: UUID) -> UUID:
        return self.id

    def tenants(self) -> frozenset[UUID]:
        return frozenset({self.id})  # no new store is made

    def rotations(self) -> frozenset[UUID]:
        return frozenset()  # the restored database records them itself

    def note_rotations(self, ids: Collection[UUID]) -> None:
        """Do nothing: the restored database records its rotations itself."""

    def has_memories(self, tenant_ids: Collection[UUID]) -> bool:
        return False  # unknown until the database is restored


def restore(config: Config, source: Readable, *, keys: Path | None = None) -> Manifest:
    """Restore a backup. keys: a copy of the key store, if the data directory has none.

    Raises BackupError; StartError if the product is running. A failed restoration leaves nothing behind.
    """
    manifest = manifest_read(source)
    prepare_data_dir(config.data_dir)
    lock = lock_data_dir(config.data_dir)
    try:
        placed = _keys_check(config, manifest, keys)
        secrets_make(config)
        try:
            with _empty_database(config) as conninfo:
                _load(config, source, manifest, conninfo)
        except BaseException:
            if placed is not None:
                placed.remove()
            raise
    finally:
        os.close(lock)
    return manifest


def verify(config: Config, source: Readable, *, keys: Path | None = None) -> Manifest:
    """Load a backup into a PostgreSQL of its own, compare every row, and remove that again; nothing else changes.

    keys: a copy of the key store to check; None: the key store of this installation. Raises BackupError; StartError.
    """
    manifest = manifest_read(source)
    place = SqlitePlace(keys) if keys else place_at(config.key_store_url or key_store_path(config))
    _keys_compare(place, manifest, _given_master_key(config))
    account = server_account()
    with TemporaryDirectory(prefix="memos-verify-") as scratch:
        own = Path(scratch)
        give(own, account)
        server = postgres.Postgres(own / "pg", own / "run", own / "postgres.log", account)
        with _embedded_database(server) as conninfo:
            _load_rows(source, manifest, conninfo)
    return manifest


def _load_rows(source: Readable, manifest: Manifest, conninfo: str) -> None:
    words = ["--exit-on-error", "--single-transaction", "--no-comments", f"--dbname={_name_of(conninfo)}"]
    feed_tool("pg_restore", words, conninfo, source.read(DUMP))
    _compare(conninfo, manifest)


def _load(config: Config, source: Readable, manifest: Manifest, conninfo: str) -> None:
    _load_rows(source, manifest, conninfo)
    for name in manifest.files:
        if name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            write_file(config.data_dir / name, source.read(name))
    blobs_load(config, source, manifest.files)
    _run(product_programs.command(config, "migrate", "--noinput", environ=product_programs.owner_environ(config)))
    _run(product_programs.command(config, "erasures_apply"))


def blobs_load(config: Config, source: Readable, files: Iterable[str]) -> None:
    """Write the saved blobs to the configured store, which may differ from that of the backup. Raises BackupError."""
    store = choose_blob_store(config.blob_store, config.data_dir)
    try:
        for name in (name for name in files if name.startswith(f"{BLOBS}/")):
            store.write(name.removeprefix(f"{BLOBS}/"), b"".join(source.read(name)))
    except BlobStoreUnavailable as error:
        raise BackupError(f"the blobs cannot be written to {store.name}: {error.detail}") from error


def _name_of(conninfo: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(conninfo).get("dbname") or DATABASE)


def _compare(conninfo: str, manifest: Manifest) -> None:
    """Compare the rows of each table with the manifest. Raises BackupError if they differ."""
    with psycopg.connect(conninfo, connect_timeout=5) as connection:
        session_set(connection)
        present = table_hashes(connection)
    names = present.keys() | manifest.tables.keys()
    wrong = sorted(name for name in names if present.get(name) != manifest.tables.get(name))
    if wrong:
        raise BackupError(f"the restored rows are not those of the backup, in {', '.join(wrong)}")


def _keys_check(config: Config, manifest: Manifest, keys: Path | None) -> Place | None:
    """Check that the keys open this backup; return the place of the key store that was copied for this, or None.
    Raises BackupError."""
    place, placed = place_at(config.key_store_url or key_store_path(config)), None
    master = _given_master_key(config)
    try:
        if place.mark() is None:
            _keys_place(place, keys)
            placed = place
        _keys_compare(place, manifest, master)
    except (KeyUnavailable, BackupError) as error:
        if placed is not None:
            placed.remove()
        if isinstance(error, BackupError):
            raise
        raise BackupError(f"the keys do not fit this backup: {error}") from error
    return placed


def _given_master_key(config: Config) -> bytes:
    master = master_key(config)
    if master is None:
        raise BackupError(lost_master_key(config))
    return master


def _keys_compare(place: Place, manifest: Manifest, master: bytes) -> None:
    """Check that a key store opens this backup. Raises BackupError."""
    try:
        if place.mark() is None:
            raise BackupError(f"{place.name} is missing: name a copy of the key store with --keys")
        if manifest.key_store_id:
            SealedKeyStore(place, master, NotedStore(UUID(manifest.key_store_id))).check()
    except KeyUnavailable as error:
        raise BackupError(f"the keys do not fit this backup: {error}") from error


def _keys_place(place: Place, keys: Path | None) -> None:
    """Write a copy of the key store to its empty place. Raises BackupError; KeyUnavailable if it is no copy."""
    if keys is None:
        raise BackupError(f"{place.name} is missing: name a copy of the key store with --keys")
    if not os.access(keys, os.R_OK):
        raise BackupError(f"cannot read {keys}: it is missing, or belongs to others")
    with SqlitePlace(keys).open() as copy:
        contents = contents_of(copy)
    copy_contents(contents, place)


@contextmanager
def _empty_database(config: Config) -> Iterator[str]:
    """Yield the address of an empty database, for a superuser. If the restoration fails, the database is emptied
    again."""
    server = postgres.of(config)
    if server is not None and config.database_restore_url:
        raise BackupError("with DATABASE_RESTORE_URL set DATABASE_URL and DATABASE_OWNER_URL, too")
    if server is None:
        with _given_database(config) as conninfo:
            yield conninfo
        return
    if server.folder.exists():
        raise BackupError(f"there is a database at {server.folder}: move that folder away first")
    with _embedded_database(server) as conninfo:
        yield conninfo


@contextmanager
def _given_database(config: Config) -> Iterator[str]:
    """Yield the address of a database on the operator's own server, made by deploy/init-database.sh."""
    url = config.database_restore_url
    addresses = {
        "DATABASE_RESTORE_URL": url,
        "DATABASE_OWNER_URL": config.database_owner_url,
        "DATABASE_URL": config.database_url,
    }
    if missing := [name for name, address in addresses.items() if not address]:
        raise BackupError(f"set {' and '.join(missing)}: restoring needs {', '.join(addresses)}")
    databases = {name: _identify_database(name, address) for name, address in addresses.items()}
    if other := [name for name, database in databases.items() if database != databases["DATABASE_RESTORE_URL"]]:
        raise BackupError(f"{' and '.join(other)}: not the database of DATABASE_RESTORE_URL")
    with psycopg.connect(url, connect_timeout=5) as connection:
        if _first(connection, "SELECT to_regclass('public.governance_tenant') IS NOT NULL"):
            raise BackupError("the database is not empty: make a new one with deploy/init-database.sh")
        if _first(connection, SERVING):
            raise BackupError("the product is connected to this database: stop it first")
        if not _first(connection, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
            raise BackupError("DATABASE_RESTORE_URL is not a superuser's address")
    try:
        yield url
    except BaseException:
        empty_database(url)
        raise


def _identify_database(name: str, url: str) -> Any:
    """Return the start time of a server and the name of its database. `name`: the variable with its address."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            return connection.execute("SELECT pg_postmaster_start_time(), current_database()").fetchone()
    except psycopg.Error as error:
        raise BackupError(f"{name} cannot be used: {' '.join(str(error).split())}") from error


def _first(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    return row[0] if row else None


@contextmanager
def _embedded_database(server: postgres.Postgres) -> Iterator[str]:
    """Create and run the embedded PostgreSQL for the restoration, and remove it if the restoration fails."""
    program = postgres.program(server)
    process: subprocess.Popen[bytes] | None = None
    is_done = False
    try:
        postgres.prepare(server)
        process = spawn(program)
        deadline = time.monotonic() + START_SECONDS
        while not postgres.answers(server):
            if process.poll() is not None or time.monotonic() > deadline:
                raise StartError(f"PostgreSQL does not start: {last_line(program.log)}")
            time.sleep(0.05)
        conninfo = server.conninfo(database=DATABASE)
        bootstrap(server=server.conninfo(), database=conninfo)
        yield conninfo
        is_done = True
    finally:
        if process is not None:
            stop_all([(program, process)], seconds=STOP_SECONDS)
        if not is_done:
            shutil.rmtree(server.folder, ignore_errors=True)


def _run(program: Program) -> None:
    """Run one of the product's own commands to its end. Raises BackupError with its last output."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    if spawn(program).wait() != 0:
        raise BackupError(f"{program.argv[-1]} failed: {last_line(program.log)}")
