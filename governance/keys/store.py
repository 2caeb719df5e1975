"""The key store: a SQLite file with `secure_delete`, outside PostgreSQL and outside its backups.

Master key → tenant's key → data keys. A scope names what a data key is for: `general`, `tokens`, `member:<id>`,
`subject:<id>`. Destroying a key makes everything sealed under it unreadable, in all copies.

The file has an id, which the database stores when the file is created. If the file is missing, empty, damaged, made by
another master key or for another database, it is never replaced: every call raises KeyUnavailable. The database also
stores the id of each rotation of keys, so that a copy of the file from before a rotation is refused.
"""

import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import UUID

from governance.errors import KeyUnavailable
from governance.ids import uuid7
from governance.keys.registry import Registry
from governance.keys.rules import KEY_BYTES, DataKey, SealBroken, derive, seal, unseal
from governance.keys.tables import (
    ALL_SCOPES,
    NEEDED,
    OF_AUDIT,
    OF_SCOPE,
    ROOT_PLACE,
    SCHEMA,
    TENANT_SCOPE,
    complete_tenants,
    file_open,
    is_destroyed,
    key_insert,
    key_row,
    refuse_destroyed_scope,
    rotations_of,
    sealing_context,
)

CACHE_SECONDS = 30.0  # how long a key is used before it is read again
TRIES = 4  # of a call during which the file changes
INSTALLATION = UUID(int=0)  # in place of the tenant, for keys that belong to no tenant
MISSING = "The key store is missing: restore keystore.sqlite3 from its backup."
DAMAGED = "The key store is empty or damaged: restore keystore.sqlite3 from its backup."
FOREIGN = "The key store belongs to another database: restore the key store of this database."
OTHER_MASTER = (
    "The key store was made under another master key, or is a copy from before a rotation of it: "
    "set the master key of this installation, or restore a newer copy."
)
KEY_MISSING = "The key store lacks a key of this database: restore a newer copy of the key store."
OLDER = "The key store is a copy from before a rotation of keys: restore a newer copy of the key store."
Answer = TypeVar("Answer")
Cache = dict[tuple[UUID, str | UUID], tuple[float, DataKey]]
FileMark = tuple[int, int, int]  # inode, time of the last change in ns, size in bytes


def new_secret() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


class KeyStore(Protocol):
    """Storage of data keys. Every method raises KeyUnavailable if the store cannot answer."""

    def key_for(self, tenant_id: UUID, scope: str, *, make_secret: Callable[[], bytes] = new_secret) -> DataKey:
        """Return the key of `scope`. The first call creates it from 32 bytes of `make_secret` and writes it to disk."""

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        """Return the key with this id, or None if it was destroyed."""

    def find(self, tenant_id: UUID, scope: str) -> DataKey | None:
        """Return the key of `scope`, or None if there is none."""

    def destroy(self, tenant_id: UUID, scope: str) -> None:
        """Destroy the key of `scope`. What it sealed cannot be read again, and the scope never gets another key."""

    def destroy_tenant(self, tenant_id: UUID) -> None:
        """Destroy all keys of a tenant except its audit signing key, and refuse new ones."""

    def destroyed_scopes(self) -> list[tuple[UUID, str]]:
        """Return the tenant and scope of each destroyed key."""

    def check(self) -> None:
        """Check that the store is complete, belongs to this database, and opens with this master key."""


class SqliteKeyStore:
    """One file, safe between processes. The rollback journal is truncated, so destroyed keys leave no copy in a log."""

    def __init__(self, path: Path, master_key: bytes, registry: Registry) -> None:
        self._path = path
        self._master = master_of(master_key)
        self._wrapping = self._master[1]  # until the file says which root key the master key opens
        self._registry = registry
        self._cache: Cache = {}
        self._registered: UUID | None = None
        self._rotations: frozenset[UUID] | None = None
        self._identified: FileMark | None = None
        self._checked: FileMark | None = None
        self._lock = threading.RLock()

    def key_for(self, tenant_id: UUID, scope: str, *, make_secret: Callable[[], bytes] = new_secret) -> DataKey:
        def find() -> DataKey:
            cache = self._cache
            cached = _find_cached(cache, tenant_id, scope)
            return cached or _remember(cache, tenant_id, scope, self._find_or_make(tenant_id, scope, make_secret))

        return self._retry_after_change(find)

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        return self._retry_after_change(lambda: self._find_by_id(tenant_id, key_id))

    def find(self, tenant_id: UUID, scope: str) -> DataKey | None:
        def read() -> DataKey | None:
            with self._open() as db:
                row = key_row(db, tenant_id, scope)
            return self._unwrap(tenant_id, row) if row else None

        return self._retry_after_change(read)

    def _find_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        cache = self._cache
        cached = _find_cached(cache, tenant_id, key_id)
        if cached:
            return cached
        with self._open() as db:
            row = db.execute(
                "SELECT id, scope, wrapped FROM data_key WHERE tenant = ? AND id = ?", (tenant_id.bytes, key_id.bytes)
            ).fetchone()
            if row is None and not is_destroyed(db, key_id):
                raise KeyUnavailable(KEY_MISSING)
        return _remember(cache, tenant_id, key_id, self._unwrap(tenant_id, row)) if row else None

    def destroy(self, tenant_id: UUID, scope: str) -> None:
        self._identify()
        of_scope = (tenant_id.bytes, scope)
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT OR IGNORE INTO destroyed_scope VALUES (?, ?)", of_scope)
            db.execute(f"INSERT INTO destroyed_key SELECT id FROM data_key WHERE {OF_SCOPE}", of_scope)
            db.execute(f"DELETE FROM data_key WHERE {OF_SCOPE}", of_scope)
            db.execute("COMMIT")
        self._cache = {}

    def destroy_tenant(self, tenant_id: UUID) -> None:
        self._identify()
        destroyed = "FROM data_key WHERE tenant = ?1 AND scope NOT IN (?2, ?3)"
        of_tenant = (tenant_id.bytes, *OF_AUDIT)
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT OR IGNORE INTO destroyed_scope VALUES (?, ?)", (tenant_id.bytes, ALL_SCOPES))
            db.execute(f"INSERT INTO destroyed_key SELECT id {destroyed}", of_tenant)
            db.execute(f"DELETE {destroyed}", of_tenant)
            db.execute("COMMIT")
        self._cache = {}

    def destroyed_scopes(self) -> list[tuple[UUID, str]]:
        self._identify()
        with self._open() as db:
            rows = db.execute("SELECT tenant, scope FROM destroyed_scope ORDER BY tenant, scope").fetchall()
        return [(UUID(bytes=tenant), scope) for tenant, scope in rows]

    def check(self) -> None:
        self._identify()
        if self._checked == self._identified:
            return
        with self._open() as db:
            if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise KeyUnavailable(DAMAGED)
            self._refuse_missing_keys(self._registry.tenants() - complete_tenants(db))
        self._checked = self._identified

    # Identity of the file

    def _identify(self) -> None:
        """Detect whether the file was removed, replaced or changed since the last call. If so, empty the cache."""
        mark = self._file_mark()
        if mark is not None and mark == self._identified:
            return
        with self._lock:
            try:
                self._refresh_identity(mark)
            except KeyUnavailable:
                now = self._file_mark()
                if now == mark:
                    raise
                self._refresh_identity(now)  # another process made or rotated it in between

    def _refresh_identity(self, mark: FileMark | None) -> None:
        if mark is None:
            self._make_if_new()
            mark = self._file_mark()
        self._refuse_stranger()
        self._cache = {}
        self._identified = mark

    def _file_mark(self) -> FileMark | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyUnavailable(MISSING) from error
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _make_if_new(self) -> None:
        """Create the file if the database has neither a key store nor a tenant. The first process wins."""
        if self._registered or self._registry.find_store_id() or self._registry.tenants():
            if self._file_mark() is not None:  # another process made it meanwhile
                return
            raise KeyUnavailable(MISSING)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, draft = tempfile.mkstemp(prefix=f"{self._path.name}.", dir=self._path.parent)  # mode 0600
            os.close(descriptor)
            with closing(file_open(Path(draft))) as db:
                self._write_identity(db)
                db.execute("PRAGMA journal_mode = DELETE")  # leaves no journal of the draft behind
            with suppress(FileExistsError):
                os.link(draft, self._path)
            os.unlink(draft)
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable("The key store cannot be made: the folder of keys cannot be written.") from error

    def _write_identity(self, db: sqlite3.Connection) -> None:
        store_id = uuid7()
        db.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA:
            db.execute(statement)
        proof = seal(self._wrapping, b"", place=store_id.bytes)
        db.execute("INSERT INTO key_store VALUES (?, ?)", (store_id.bytes, proof))
        db.execute("COMMIT")

    def _refuse_stranger(self) -> None:
        """Raise KeyUnavailable if the database names another file, or another master key made it."""
        with self._open() as db:
            if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'key_store'").fetchone() is None:
                raise KeyUnavailable(DAMAGED)
            self._wrapping = self._root(db)
            store_id = self._identity(db)
            if self._registered is None:
                self._registered = self._registry.find_store_id() or self._register(db, store_id)
            if store_id != self._registered:
                raise KeyUnavailable(FOREIGN)
            self._refuse_older(rotations_of(db))

    def _refuse_older(self, rotations: frozenset[UUID]) -> None:
        """Raise KeyUnavailable if the file is a copy from before a rotation, whose keys are retired.

        A rotation is written to the file first, then to the database. If it is killed in between, the file is newer.
        """
        if rotations == self._rotations:
            return
        noted = self._registry.rotations()
        if noted - rotations:
            raise KeyUnavailable(OLDER)
        if rotations - noted:
            self._registry.note_rotations(rotations - noted)
        self._rotations = rotations

    def _identity(self, db: sqlite3.Connection) -> UUID:
        """Return the id of the file. Raises KeyUnavailable where another master key made it."""
        row = db.execute("SELECT id, proof FROM key_store").fetchone()
        if row is None:
            raise KeyUnavailable(DAMAGED)
        try:
            unseal(self._wrapping, row[1], place=row[0])
        except SealBroken as error:
            raise KeyUnavailable(OTHER_MASTER) from error
        return UUID(bytes=row[0])

    def _register(self, db: sqlite3.Connection, store_id: UUID) -> UUID:
        """Store the id of the file in a database that has none: both are new. Raises KeyUnavailable."""
        of_tenants = "SELECT 1 FROM data_key WHERE scope = ? AND tenant <> ?"
        if self._registry.tenants() or db.execute(of_tenants, (TENANT_SCOPE, INSTALLATION.bytes)).fetchone():
            meanwhile = self._registry.find_store_id()  # by another process, which has made keys since
            if meanwhile is None:
                raise KeyUnavailable(FOREIGN)
            return meanwhile
        return self._registry.register(store_id)

    # Keys

    def _find_or_make(self, tenant_id: UUID, scope: str, make_secret: Callable[[], bytes]) -> DataKey:
        with self._open() as db:
            row = key_row(db, tenant_id, scope)
            is_first = row is None and (scope in NEEDED or key_row(db, tenant_id, TENANT_SCOPE) is None)
        if is_first:
            self._refuse_missing_keys([tenant_id])
        if row is None:
            row = self._make(tenant_id, scope, make_secret)
        return self._unwrap(tenant_id, row)

    def _make(self, tenant_id: UUID, scope: str, make_secret: Callable[[], bytes]) -> tuple[bytes, str, bytes] | None:
        """Create a key and return its row, or the row that another process created first."""
        with self._transaction() as db:
            row = key_row(db, tenant_id, scope)
            if row is None:
                refuse_destroyed_scope(db, tenant_id, scope)
                wrapping = self._ensure_wrapping_key(db, tenant_id, scope)
                key_insert(db, wrapping, tenant_id, scope, DataKey(id=uuid7(), secret=make_secret()))
                row = key_row(db, tenant_id, scope)
        return row

    def _refuse_missing_keys(self, tenant_ids: Collection[UUID]) -> None:
        """Raise KeyUnavailable if one of these tenants has memories, since their keys are missing from the file."""
        if tenant_ids and self._registry.has_memories(tenant_ids):
            raise KeyUnavailable(KEY_MISSING)

    def _ensure_wrapping_key(self, db: sqlite3.Connection, tenant_id: UUID, scope: str) -> DataKey:
        """Return the key that encrypts a new key of `scope`. Creates the tenant's key if there is none."""
        root = self._root(db)
        if scope == TENANT_SCOPE:
            return root
        row = key_row(db, tenant_id, TENANT_SCOPE)
        if row is not None:
            secret = unseal(root, row[2], place=sealing_context(tenant_id, TENANT_SCOPE))
            return DataKey(id=UUID(bytes=row[0]), secret=secret)
        return key_insert(db, root, tenant_id, TENANT_SCOPE, DataKey(id=uuid7(), secret=new_secret()))

    def _root(self, db: sqlite3.Connection) -> DataKey:
        """Return the key that encrypts the tenants' keys: until the first rotation, one derived from the master.

        Raises KeyUnavailable.
        """
        name, wrapping = self._master
        roots = dict(db.execute("SELECT master, wrapped FROM root_key"))
        if not roots:
            return wrapping
        if name not in roots:
            raise KeyUnavailable(OTHER_MASTER)
        try:
            return DataKey(id=INSTALLATION, secret=unseal(wrapping, roots[name], place=ROOT_PLACE))
        except SealBroken as error:
            raise KeyUnavailable(DAMAGED) from error

    def _retry_after_change(self, call: Callable[[], Answer]) -> Answer:
        """Run `call` again if the file changed meanwhile: during a rotation it may have read keys from before and
        after.
        """
        for _ in range(TRIES - 1):
            self._identify()
            mark = self._identified
            try:
                return call()
            except KeyUnavailable:
                if self._file_mark() == mark:
                    raise
        self._identify()
        return call()

    def _unwrap(self, tenant_id: UUID, row: tuple[bytes, str, bytes] | None) -> DataKey:
        if row is None:
            raise KeyUnavailable("The key store lost a key while it was being made.")
        key_id, scope, wrapped = row
        wrapping = self._wrapping if scope == TENANT_SCOPE else self.key_for(tenant_id, TENANT_SCOPE)
        try:
            secret = unseal(wrapping, wrapped, place=sealing_context(tenant_id, scope))
        except SealBroken as error:
            raise KeyUnavailable(OTHER_MASTER if scope == TENANT_SCOPE else DAMAGED) from error
        return DataKey(id=UUID(bytes=key_id), secret=secret)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the file in one write transaction, which is rolled back if the process is killed."""
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except SealBroken as error:
                raise KeyUnavailable(DAMAGED) from error
            db.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(file_open(self._path)) as db:
                yield db
        except sqlite3.OperationalError as error:
            raise KeyUnavailable("The key store cannot be opened.") from error
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable(DAMAGED) from error


def _find_cached(cache: Cache, tenant_id: UUID, name: str | UUID) -> DataKey | None:
    found = cache.get((tenant_id, name))
    return found[1] if found and found[0] > time.monotonic() else None


def _remember(cache: Cache, tenant_id: UUID, name: str | UUID, key: DataKey) -> DataKey:
    """Store the key in `cache`, which the caller took before reading: a newer cache must not get an older key."""
    if len(cache) > 10_000:
        cache.clear()
    cache[(tenant_id, name)] = (time.monotonic() + CACHE_SECONDS, key)
    return key


def master_of(master_key: bytes) -> tuple[bytes, DataKey]:
    """Return a name for a master key that does not reveal the key, and the key that it wraps other keys with."""
    name = derive(master_key, "memos key store name")[:16]
    return name, DataKey(id=INSTALLATION, secret=derive(master_key, "memos key store"))
