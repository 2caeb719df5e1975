"""The KeyStore: keys outside PostgreSQL and outside its backups. This one is a SQLite file with `secure_delete`.

Master key → tenant's key → data keys. A scope names what a data key is for: `general`, `tokens`, `member:<id>`,
`subject:<id>`. Destroying a key makes everything sealed under it unreadable, wherever copies of it lie.

The file has an id, which the database notes when the file is made. A file that is missing, empty, damaged, made under
another master key or for another database is never replaced by a new one: every call then raises KeyUnavailable.
The database notes each rotation of keys too: a copy of the file from before one is refused.
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

from governance.errors import Conflict, KeyUnavailable
from governance.ids import uuid7
from governance.keys.registry import Registry
from governance.keys.rules import KEY_BYTES, DataKey, SealBroken, derive, seal, unseal

CACHE_SECONDS = 30.0  # how long a key is used before it is read again
TRIES = 4  # of a call whose file changes meanwhile
TENANT_SCOPE = "tenant"
TOKENS = "tokens"
AUDIT_SIGNING = "audit-signing"
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
ROOT_KEYS = (
    "CREATE TABLE IF NOT EXISTS root_key (master BLOB PRIMARY KEY, wrapped BLOB NOT NULL, "
    "is_next INTEGER NOT NULL) WITHOUT ROWID"
)
ROOT_PLACE = b"root key"
ROTATIONS = "CREATE TABLE IF NOT EXISTS rotation (id BLOB PRIMARY KEY) WITHOUT ROWID"
STABLE_SCOPES = frozenset({TOKENS, AUDIT_SIGNING})  # what they matched and signed must match again
RETIRED = "#"  # a key that was rotated: `scope#id`; it opens what it sealed, and seals nothing more
OF_SCOPE = f"tenant = ?1 AND (scope = ?2 OR scope LIKE ?2 || '{RETIRED}%')"
INSTALLATION = UUID(int=0)  # stands for the tenant of keys that belong to none
MISSING = "The key store is missing: restore keystore.sqlite3 from its backup."
DAMAGED = "The key store is empty or damaged: restore keystore.sqlite3 from its backup."
FOREIGN = "The key store belongs to another database: restore the key store of this database."
OTHER_MASTER = (
    "The key store was made under another master key, or is a copy from before a rotation of it: "
    "set the master key of this installation, or restore a newer copy."
)
KEY_MISSING = "The key store lacks a key of this database: restore a newer copy of the key store."
OLDER = "The key store is a copy from before a rotation of keys: restore a newer copy of the key store."
NOT_FINISHED = (
    "The last rotation of the master key is not finished: restart the product, then run keys_rotate --finish."
)
FORMER_MASTER = "This is the former master key: run keys_rotate --finish with the next one."
Answer = TypeVar("Answer")
Cache = dict[tuple[UUID, str | UUID], tuple[float, DataKey]]
FileMark = tuple[int, int, int]  # inode, time of the last change in ns, size in bytes


def new_secret() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


class KeyStore(Protocol):
    """Storage of data keys. Every method raises KeyUnavailable if the store cannot answer."""

    def key_for(self, tenant_id: UUID, scope: str, *, make_secret: Callable[[], bytes] = new_secret) -> DataKey:
        """The key of `scope`, made on first use of 32 bytes from `make_secret`; durable before it is returned."""

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        """A key that a blob names, or None once it was destroyed."""

    def find(self, tenant_id: UUID, scope: str) -> DataKey | None:
        """The key of `scope`; None where it was never made."""

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
        self._master = _master_of(master_key)
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
            cached = _cached(cache, tenant_id, scope)
            return cached or _remember(cache, tenant_id, scope, self._find_or_make(tenant_id, scope, make_secret))

        return self._again_if_changed(find)

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        return self._again_if_changed(lambda: self._by_id(tenant_id, key_id))

    def find(self, tenant_id: UUID, scope: str) -> DataKey | None:
        def read() -> DataKey | None:
            with self._open() as db:
                row = self._row(db, tenant_id, scope)
            return self._unwrap(tenant_id, row) if row else None

        return self._again_if_changed(read)

    def rotate_master(self, next_master: bytes) -> None:
        """Wrap every tenant's key under a new root key, which the present master key and the next one open; at once.

        Processes with either go on. The present one opens the file until `drop_masters`. Raises KeyUnavailable;
        Conflict where two master keys open the file already.
        """
        root = DataKey(id=INSTALLATION, secret=new_secret())
        with self._rotation() as db:
            if _has_table(db, "root_key") and db.execute("SELECT count(*) FROM root_key").fetchone() != (1,):
                raise Conflict(NOT_FINISHED)
            before = self._root(db)
            tenants = "SELECT id, tenant, wrapped FROM data_key WHERE scope = ?"
            for key_id, tenant, wrapped in db.execute(tenants, (TENANT_SCOPE,)).fetchall():
                place = _place(UUID(bytes=tenant), TENANT_SCOPE)
                again = seal(root, unseal(before, wrapped, place=place), place=place)
                db.execute("UPDATE data_key SET wrapped = ? WHERE id = ?", (again, key_id))
            (store_id,) = db.execute("SELECT id FROM key_store").fetchone()
            db.execute("UPDATE key_store SET proof = ?", (seal(root, b"", place=store_id),))
            db.execute(ROOT_KEYS)
            db.execute("DELETE FROM root_key")
            for is_next, (name, wrapping) in enumerate((self._master, _master_of(next_master))):
                wrapped = seal(wrapping, root.secret, place=ROOT_PLACE)
                db.execute("INSERT INTO root_key VALUES (?, ?, ?)", (name, wrapped, is_next))

    def opens_with(self, master_key: bytes) -> bool:
        """Return whether `rotate_master` added this master key."""
        self._identify()
        with self._open() as db:
            named = (_master_of(master_key)[0],)
            return _has_table(db, "root_key") and (
                db.execute("SELECT 1 FROM root_key WHERE master = ?", named).fetchone() is not None
            )

    def drop_masters(self) -> int:
        """Let the former master key open the file no more; how many could.

        Raises KeyUnavailable; Conflict where this process has the former one.
        """
        self._identify()
        with self._transaction() as db:
            if not _has_table(db, "root_key"):
                return 0
            if db.execute("SELECT master FROM root_key WHERE is_next").fetchone() != (self._master[0],):
                raise Conflict(FORMER_MASTER)
            return db.execute("DELETE FROM root_key WHERE NOT is_next").rowcount

    def rotate_tenant(self, tenant_id: UUID) -> int:
        """Give a tenant a new key, and new data keys for what is sealed from now on; how many were retired.

        A retired key opens what it sealed. The keys of STABLE_SCOPES stay. Raises KeyUnavailable.
        """
        retired = 0
        with self._rotation() as db:
            row = self._row(db, tenant_id, TENANT_SCOPE)
            if row is None:
                raise KeyUnavailable(KEY_MISSING)
            root, place = self._root(db), _place(tenant_id, TENANT_SCOPE)
            before = DataKey(id=UUID(bytes=row[0]), secret=unseal(root, row[2], place=place))
            after = DataKey(id=uuid7(), secret=new_secret())
            others = "SELECT id, scope, wrapped FROM data_key WHERE tenant = ? AND scope <> ?"
            for key_id, scope, wrapped in db.execute(others, (tenant_id.bytes, TENANT_SCOPE)).fetchall():
                is_retired = scope not in STABLE_SCOPES and RETIRED not in scope
                name = f"{scope}{RETIRED}{key_id.hex()}" if is_retired else scope
                secret = unseal(before, wrapped, place=_place(tenant_id, scope))
                again = seal(after, secret, place=_place(tenant_id, name))
                db.execute("UPDATE data_key SET scope = ?, wrapped = ? WHERE id = ?", (name, again, key_id))
                retired += is_retired
            wrapped = seal(root, after.secret, place=place)
            db.execute("UPDATE data_key SET id = ?, wrapped = ? WHERE id = ?", (after.id.bytes, wrapped, row[0]))
        return retired

    def _by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        cache = self._cache
        cached = _cached(cache, tenant_id, key_id)
        if cached:
            return cached
        with self._open() as db:
            row = db.execute(
                "SELECT id, scope, wrapped FROM data_key WHERE tenant = ? AND id = ?", (tenant_id.bytes, key_id.bytes)
            ).fetchone()
            if row is None and not _is_destroyed(db, key_id):
                raise KeyUnavailable(KEY_MISSING)
        return _remember(cache, tenant_id, key_id, self._unwrap(tenant_id, row)) if row else None

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
        self._cache = {}

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
            try:
                self._identify_anew(mark)
            except KeyUnavailable:
                now = self._file_mark()
                if now == mark:
                    raise
                self._identify_anew(now)  # another process made or rotated it in between

    def _identify_anew(self, mark: FileMark | None) -> None:
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
        """Make the file of a database that has neither a key store nor a tenant. The first one made counts."""
        if self._registered or self._registry.registered() or self._registry.tenants():
            if self._file_mark() is not None:  # another process made it meanwhile
                return
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
            self._wrapping = self._root(db)
            store_id = self._identity(db)
            if self._registered is None:
                self._registered = self._registry.registered() or self._register(db, store_id)
            if self._identity(db) != self._registered:
                raise KeyUnavailable(FOREIGN)
            self._refuse_older(_rotations(db))

    def _refuse_older(self, rotations: frozenset[UUID]) -> None:
        """Raises KeyUnavailable for a copy from before a rotation: it would seal under keys that were given up.

        The file has each rotation first, so that a killed one leaves a file that is newer than the note, never older.
        """
        if rotations == self._rotations:
            return
        noted = self._registry.rotations()
        if noted - rotations:
            raise KeyUnavailable(OLDER)
        if rotations - noted:
            self._registry.note_rotations(rotations - noted)
        self._rotations = rotations

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
            meanwhile = self._registry.registered()  # by another process, which has made keys since
            if meanwhile is None:
                raise KeyUnavailable(FOREIGN)
            return meanwhile
        for tenant_id in shared:
            self._unwrap(tenant_id, keys[tenant_id])
        return self._registry.register(store_id or self._write_identity(db))

    # Keys

    def _find_or_make(self, tenant_id: UUID, scope: str, make_secret: Callable[[], bytes]) -> DataKey:
        with self._open() as db:
            row = self._row(db, tenant_id, scope)
            is_first = row is None and (scope in NEEDED or self._row(db, tenant_id, TENANT_SCOPE) is None)
        if is_first:
            self._refuse_lost([tenant_id])
        if row is None:
            row = self._make(tenant_id, scope, make_secret)
        return self._unwrap(tenant_id, row)

    def _make(self, tenant_id: UUID, scope: str, make_secret: Callable[[], bytes]) -> tuple[bytes, str, bytes] | None:
        """The row of a new key; of the one that another process made meanwhile, where one did."""
        with self._transaction() as db:
            row = self._row(db, tenant_id, scope)
            if row is None:
                _refuse_destroyed(db, tenant_id, scope)
                wrapping = self._wrapping_in(db, tenant_id, scope)
                _insert(db, wrapping, tenant_id, scope, DataKey(id=uuid7(), secret=make_secret()))
                row = self._row(db, tenant_id, scope)
        return row

    def _refuse_lost(self, tenant_ids: Collection[UUID]) -> None:
        """Raises KeyUnavailable where a tenant without its keys had them once: new ones would open nothing of it."""
        if tenant_ids and self._registry.has_memories(tenant_ids):
            raise KeyUnavailable(KEY_MISSING)

    def _wrapping_in(self, db: sqlite3.Connection, tenant_id: UUID, scope: str) -> DataKey:
        """Return the key that encrypts a new key now; a tenant without one gets one."""
        root = self._root(db)
        if scope == TENANT_SCOPE:
            return root
        row = self._row(db, tenant_id, TENANT_SCOPE)
        if row is not None:
            secret = unseal(root, row[2], place=_place(tenant_id, TENANT_SCOPE))
            return DataKey(id=UUID(bytes=row[0]), secret=secret)
        return _insert(db, root, tenant_id, TENANT_SCOPE, DataKey(id=uuid7(), secret=new_secret()))

    def _root(self, db: sqlite3.Connection) -> DataKey:
        """Return the key that encrypts the tenants' keys: the master key's own until the first rotation. Raises
        KeyUnavailable.
        """
        name, wrapping = self._master
        if not _has_table(db, "root_key"):
            return wrapping
        row = db.execute("SELECT wrapped FROM root_key WHERE master = ?", (name,)).fetchone()
        if row is None:
            raise KeyUnavailable(OTHER_MASTER)
        try:
            return DataKey(id=INSTALLATION, secret=unseal(wrapping, row[0], place=ROOT_PLACE))
        except SealBroken as error:
            raise KeyUnavailable(DAMAGED) from error

    def _again_if_changed(self, call: Callable[[], Answer]) -> Answer:
        """A rotation between two statements of a call leaves it with the former wrapping: it reads the file anew."""
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

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, also where the process is killed in between."""
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except SealBroken as error:
                raise KeyUnavailable(DAMAGED) from error
            db.execute("COMMIT")

    @contextmanager
    def _rotation(self) -> Iterator[sqlite3.Connection]:
        """A transaction that the database notes once it is done: no copy from before it is taken up after."""
        self._identify()
        with self._transaction() as db:
            db.execute(ROTATIONS)
            db.execute("INSERT INTO rotation VALUES (?)", (uuid7().bytes,))
            yield db
        self._mark_anew()
        self._identified = None
        self._identify()

    def _mark_anew(self) -> None:
        """Two changes within one tick of the file system's clock could leave the same mark."""
        try:
            status = self._path.stat()
            os.utime(self._path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        except OSError as error:
            raise KeyUnavailable(MISSING) from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(_connect(self._path)) as db:
                yield db
        except sqlite3.OperationalError as error:
            raise KeyUnavailable("The key store cannot be opened.") from error
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable(DAMAGED) from error


def _cached(cache: Cache, tenant_id: UUID, name: str | UUID) -> DataKey | None:
    found = cache.get((tenant_id, name))
    return found[1] if found and found[0] > time.monotonic() else None


def _remember(cache: Cache, tenant_id: UUID, name: str | UUID, key: DataKey) -> DataKey:
    """Into the cache of before the key was read: the one that replaces it after a change takes no older key."""
    if len(cache) > 10_000:
        cache.clear()
    cache[(tenant_id, name)] = (time.monotonic() + CACHE_SECONDS, key)
    return key


def _master_of(master_key: bytes) -> tuple[bytes, DataKey]:
    """A name that tells nothing of a master key, and what it wraps."""
    name = derive(master_key, "memos key store name")[:16]
    return name, DataKey(id=INSTALLATION, secret=derive(master_key, "memos key store"))


def _insert(db: sqlite3.Connection, wrapping: DataKey, tenant_id: UUID, scope: str, new: DataKey) -> DataKey:
    wrapped = seal(wrapping, new.secret, place=_place(tenant_id, scope))
    db.execute("INSERT INTO data_key VALUES (?, ?, ?, ?)", (new.id.bytes, tenant_id.bytes, scope, wrapped))
    return new


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file that is there, and make none. Closed to others, as is what SQLite writes beside it."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5, isolation_level=None)
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA journal_mode = TRUNCATE")
    db.execute("PRAGMA synchronous = EXTRA")
    return db


def _has_table(db: sqlite3.Connection, name: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)).fetchone() is not None


def _rotations(db: sqlite3.Connection) -> frozenset[UUID]:
    """The id of each rotation of keys that the file has been through."""
    rows = db.execute("SELECT id FROM rotation") if _has_table(db, "rotation") else ()
    return frozenset(UUID(bytes=row[0]) for row in rows)


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
