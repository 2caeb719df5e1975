"""The KeyStore: keys outside PostgreSQL and outside its backups. This one is a SQLite file with `secure_delete`.

Master key → tenant's key → data keys. A scope names what a data key is for: `general`, `tokens`, `member:<id>`,
`subject:<id>`. Destroying a key makes everything sealed under it unreadable, wherever copies of it lie.

The file has an id, which the database notes when the file is made. A file that is missing, empty, damaged, made under
another master key or for another database is never replaced by a new one: every call then raises KeyUnavailable.
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
from typing import Protocol
from uuid import UUID

from governance.errors import KeyUnavailable
from governance.ids import uuid7
from governance.keys.registry import Registry
from governance.keys.rules import KEY_BYTES, DataKey, SealBroken, derive, seal, unseal

CACHE_SECONDS = 30.0  # how long a key is used before it is read again
TENANT_SCOPE = "tenant"
TOKENS = "tokens"
NEEDED = (TENANT_SCOPE, TOKENS)  # by every tenant that has stored a memory
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS data_key (id BLOB PRIMARY KEY, tenant BLOB NOT NULL, scope TEXT NOT NULL, "
    "wrapped BLOB NOT NULL, UNIQUE (tenant, scope)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS key_store (id BLOB PRIMARY KEY, proof BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS destroyed_key (id BLOB PRIMARY KEY) WITHOUT ROWID",
)
DESTROYED_SCOPES = (
    "CREATE TABLE IF NOT EXISTS destroyed_scope (tenant BLOB NOT NULL, scope TEXT NOT NULL, "
    "PRIMARY KEY (tenant, scope)) WITHOUT ROWID"
)
RETIRED = "#"  # a key that was rotated: `scope#id`; it opens what it sealed, and seals nothing more
OF_SCOPE = f"tenant = ?1 AND (scope = ?2 OR scope LIKE ?2 || '{RETIRED}%')"
INSTALLATION = UUID(int=0)  # stands for the tenant of keys that belong to none
MISSING = "The key store is missing: restore keystore.sqlite3 from its backup."
DAMAGED = "The key store is empty or damaged: restore keystore.sqlite3 from its backup."
FOREIGN = "The key store belongs to another database: restore the key store of this database."
OTHER_MASTER = "The key store was made under another master key: set the master key of this installation."
KEY_MISSING = "The key store lacks a key of this database: restore a newer copy of the key store."
FileMark = tuple[int, int, int]  # inode, time of the last change in ns, size in bytes


def new_secret() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


class KeyStore(Protocol):
    """Where data keys live. Every method raises KeyUnavailable when the store cannot answer."""

    def key_for(self, tenant_id: UUID, scope: str, *, make_secret: Callable[[], bytes] = new_secret) -> DataKey:
        """The key of `scope`, made on first use of 32 bytes from `make_secret`; durable before it is returned."""

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        """A key that a blob names, or None once it was destroyed."""

    def destroy(self, tenant_id: UUID, scope: str) -> None:
        """Remove the key of `scope` for good; what it sealed is unreadable from then on, and no other is made."""

    def destroyed_scopes(self) -> list[tuple[UUID, str]]:
        """The tenant and scope of each key that was destroyed."""

    def check(self) -> None:
        """Prove that the store is whole, belongs to this database, and opens with this master key."""


class SqliteKeyStore:
    """One file, safe between processes. The rollback journal is truncated, so destroyed keys leave no copy in a log."""

    def __init__(self, path: Path, master_key: bytes, registry: Registry) -> None:
        self._path = path
        self._wrapping = DataKey(id=INSTALLATION, secret=derive(master_key, "memos key store"))
        self._registry = registry
        self._cache: dict[tuple[UUID, str | UUID], tuple[float, DataKey]] = {}
        self._registered: UUID | None = None
        self._identified: FileMark | None = None
        self._checked: FileMark | None = None
        self._lock = threading.RLock()

    def key_for(self, tenant_id: UUID, scope: str, *, make_secret: Callable[[], bytes] = new_secret) -> DataKey:
        self._identify()
        cached = self._cached(tenant_id, scope)
        return cached or self._remember(tenant_id, scope, self._find_or_make(tenant_id, scope, make_secret))

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        self._identify()
        cached = self._cached(tenant_id, key_id)
        if cached:
            return cached
        with self._open() as db:
            row = db.execute(
                "SELECT id, scope, wrapped FROM data_key WHERE tenant = ? AND id = ?", (tenant_id.bytes, key_id.bytes)
            ).fetchone()
            if row is None and not _is_destroyed(db, key_id):
                raise KeyUnavailable(KEY_MISSING)
        return self._remember(tenant_id, key_id, self._unwrap(tenant_id, row)) if row else None

    def destroy(self, tenant_id: UUID, scope: str) -> None:
        self._identify()
        of_scope = (tenant_id.bytes, scope)
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute(DESTROYED_SCOPES)
            db.execute("INSERT OR IGNORE INTO destroyed_scope VALUES (?, ?)", of_scope)
            db.execute(f"INSERT INTO destroyed_key SELECT id FROM data_key WHERE {OF_SCOPE}", of_scope)
            db.execute(f"DELETE FROM data_key WHERE {OF_SCOPE}", of_scope)
            db.execute("COMMIT")
        self._cache.clear()

    def destroyed_scopes(self) -> list[tuple[UUID, str]]:
        self._identify()
        with self._open() as db:
            if not _has_table(db, "destroyed_scope"):
                return []
            rows = db.execute("SELECT tenant, scope FROM destroyed_scope ORDER BY tenant, scope").fetchall()
        return [(UUID(bytes=tenant), scope) for tenant, scope in rows]

    def check(self) -> None:
        self._identify()
        if self._checked == self._identified:
            return
        with self._open() as db:
            if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise KeyUnavailable(DAMAGED)
            self._refuse_lost(self._registry.tenants() - _complete(db))
        self._checked = self._identified

    # Which file this is

    def _identify(self) -> None:
        """Notice a file that was removed, replaced or changed since the last call; its keys are then read again."""
        mark = self._file_mark()
        if mark is not None and mark == self._identified:
            return
        with self._lock:
            if mark is None:
                self._make_if_new()
                mark = self._file_mark()
            self._refuse_stranger()
            self._cache.clear()
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
        """Make the file of a database that has neither a key store nor a tenant. The first one made counts."""
        if self._registered or self._registry.registered() or self._registry.tenants():
            raise KeyUnavailable(MISSING)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, draft = tempfile.mkstemp(prefix=f"{self._path.name}.", dir=self._path.parent)  # mode 0600
            os.close(descriptor)
            with closing(_connect(Path(draft))) as db:
                self._write_identity(db)
                db.execute("PRAGMA journal_mode = DELETE")  # leaves no journal of the draft behind
            with suppress(FileExistsError):
                os.link(draft, self._path)
            os.unlink(draft)
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable("The key store cannot be made: the folder of keys cannot be written.") from error

    def _write_identity(self, db: sqlite3.Connection) -> UUID:
        store_id = uuid7()
        db.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA:
            db.execute(statement)
        proof = seal(self._wrapping, b"", place=store_id.bytes)
        db.execute("INSERT INTO key_store VALUES (?, ?)", (store_id.bytes, proof))
        db.execute("COMMIT")
        return store_id

    def _refuse_stranger(self) -> None:
        """Raises KeyUnavailable unless the file is the one that the database notes, under this master key."""
        with self._open() as db:
            if not _has_table(db, "data_key"):
                raise KeyUnavailable(DAMAGED)
            store_id = self._identity(db)
            if self._registered is None:
                self._registered = self._registry.registered() or self._register(db, store_id)
            if self._identity(db) != self._registered:
                raise KeyUnavailable(FOREIGN)

    def _identity(self, db: sqlite3.Connection) -> UUID | None:
        """The id of the file; None in one that was made before files had ids."""
        row = db.execute("SELECT id, proof FROM key_store").fetchone() if _has_table(db, "key_store") else None
        if row is None:
            return None
        try:
            unseal(self._wrapping, row[1], place=row[0])
        except SealBroken as error:
            raise KeyUnavailable(OTHER_MASTER) from error
        return UUID(bytes=row[0])

    def _register(self, db: sqlite3.Connection, store_id: UUID | None) -> UUID | None:
        """Note the file in a database that notes none: both are new, or they have tenants in common."""
        tenants = self._registry.tenants()
        of_tenants = "SELECT tenant, id, scope, wrapped FROM data_key WHERE scope = ?"
        keys = {UUID(bytes=row[0]): row[1:] for row in db.execute(of_tenants, (TENANT_SCOPE,))}
        keys.pop(INSTALLATION, None)
        shared = tenants & keys.keys()
        if bool(tenants or keys) != bool(shared):
            raise KeyUnavailable(FOREIGN)
        for tenant_id in shared:
            self._unwrap(tenant_id, keys[tenant_id])
        return self._registry.register(store_id or self._write_identity(db))

    # Keys

    def _find_or_make(self, tenant_id: UUID, scope: str, make_secret: Callable[[], bytes]) -> DataKey:
        wrapping = self._wrapping if scope == TENANT_SCOPE else self.key_for(tenant_id, TENANT_SCOPE)
        with self._open() as db:
            if scope in NEEDED and self._row(db, tenant_id, scope) is None:
                self._refuse_lost([tenant_id])
            db.execute("BEGIN IMMEDIATE")
            row = self._row(db, tenant_id, scope)
            if row is None:
                _refuse_destroyed(db, tenant_id, scope)
                new = DataKey(id=uuid7(), secret=make_secret())
                wrapped = seal(wrapping, new.secret, place=_place(tenant_id, scope))
                db.execute("INSERT INTO data_key VALUES (?, ?, ?, ?)", (new.id.bytes, tenant_id.bytes, scope, wrapped))
                row = self._row(db, tenant_id, scope)
            db.execute("COMMIT")
        return self._unwrap(tenant_id, row)

    def _refuse_lost(self, tenant_ids: Collection[UUID]) -> None:
        """Raises KeyUnavailable where a tenant without its keys had them once: new ones would open nothing of it."""
        if tenant_ids and self._registry.has_memories(tenant_ids):
            raise KeyUnavailable(KEY_MISSING)

    @staticmethod
    def _row(db: sqlite3.Connection, tenant_id: UUID, scope: str) -> tuple[bytes, str, bytes] | None:
        row: tuple[bytes, str, bytes] | None = db.execute(
            "SELECT id, scope, wrapped FROM data_key WHERE tenant = ? AND scope = ?", (tenant_id.bytes, scope)
        ).fetchone()
        return row

    def _unwrap(self, tenant_id: UUID, row: tuple[bytes, str, bytes] | None) -> DataKey:
        if row is None:
            raise KeyUnavailable("The key store lost a key while it was being made.")
        key_id, scope, wrapped = row
        wrapping = self._wrapping if scope == TENANT_SCOPE else self.key_for(tenant_id, TENANT_SCOPE)
        try:
            secret = unseal(wrapping, wrapped, place=_place(tenant_id, scope))
        except SealBroken as error:
            raise KeyUnavailable(OTHER_MASTER if scope == TENANT_SCOPE else DAMAGED) from error
        return DataKey(id=UUID(bytes=key_id), secret=secret)

    def _cached(self, tenant_id: UUID, name: str | UUID) -> DataKey | None:
        found = self._cache.get((tenant_id, name))
        return found[1] if found and found[0] > time.monotonic() else None

    def _remember(self, tenant_id: UUID, name: str | UUID, key: DataKey) -> DataKey:
        if len(self._cache) > 10_000:
            self._cache.clear()
        self._cache[(tenant_id, name)] = (time.monotonic() + CACHE_SECONDS, key)
        return key

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(_connect(self._path)) as db:
                yield db
        except sqlite3.OperationalError as error:
            raise KeyUnavailable("The key store cannot be opened.") from error
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable(DAMAGED) from error


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file that is there, and make none. Closed to others, as is what SQLite writes beside it."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5, isolation_level=None)
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA journal_mode = TRUNCATE")
    db.execute("PRAGMA synchronous = EXTRA")
    return db


def _has_table(db: sqlite3.Connection, name: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)).fetchone() is not None


def _complete(db: sqlite3.Connection) -> frozenset[UUID]:
    """The tenants that have all keys that are NEEDED."""
    rows = db.execute("SELECT tenant FROM data_key WHERE scope IN (?, ?) GROUP BY tenant HAVING count(*) = 2", NEEDED)
    return frozenset(UUID(bytes=row[0]) for row in rows)


def _is_destroyed(db: sqlite3.Connection, key_id: UUID) -> bool:
    return db.execute("SELECT 1 FROM destroyed_key WHERE id = ?", (key_id.bytes,)).fetchone() is not None


def _refuse_destroyed(db: sqlite3.Connection, tenant_id: UUID, scope: str) -> None:
    """Raises KeyUnavailable: whoever writes about someone who was erased meanwhile writes nothing."""
    if not _has_table(db, "destroyed_scope"):
        return
    named = (tenant_id.bytes, scope)
    if db.execute("SELECT 1 FROM destroyed_scope WHERE tenant = ? AND scope = ?", named).fetchone():
        raise KeyUnavailable("The key was destroyed, and no other takes its place.")


def _place(tenant_id: UUID, scope: str) -> bytes:
    return tenant_id.bytes + scope.encode()
