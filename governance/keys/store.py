"""The key store, in a place outside the database and its backups (`governance.keys.places`).

Master key → tenant's key → data keys. A scope names what a data key is for: `general`, `tokens`, `member:<id>`,
`subject:<id>`. Destroying a key makes everything sealed under it unreadable, in all copies.

The store has an id, which the database stores when the store is created. If it is missing, empty, damaged, made by
another master key or for another database, it is never replaced: every call raises KeyUnavailable. The database also
stores the id of each rotation of keys, so that a copy of the store from before a rotation is refused. A store that was
moved names its new place (`governance.keys.moving`), and is followed there.
"""

import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar
from uuid import UUID

from governance.errors import KeyUnavailable
from governance.ids import uuid7
from governance.keys.places import Mark, Place, is_moved, place_at
from governance.keys.registry import Registry
from governance.keys.rules import KEY_BYTES, DataKey, SealBroken, derive, seal, unseal
from governance.keys.tables import (
    ALL_SCOPES,
    COMING,
    MOVED,
    NEEDED,
    OF_AUDIT,
    OF_SCOPE,
    ROOT_PLACE,
    TENANT_SCOPE,
    Session,
    complete_tenants,
    is_destroyed,
    key_insert,
    key_row,
    refuse_destroyed_scope,
    rotations_of,
    scope_rows,
    sealing_context,
)

CACHE_SECONDS = 30.0  # how long a key is used before it is read again
TRIES = 4  # of a call during which the file changes
INSTALLATION = UUID(int=0)  # in place of the tenant, for keys that belong to no tenant
FOREIGN = "The key store belongs to another database: restore the key store of this database."
OTHER_MASTER = (
    "The key store was made under another master key, or is a copy from before a rotation of it: "
    "set the master key of this installation, or restore a newer copy."
)
KEY_MISSING = "The key store lacks a key of this database: restore a newer copy of the key store."
SAME_DATABASE = "The key store is in the database of the data: give it a database of its own."
ARRIVING = "The key store is being moved here: run keystore_move again with the former MEMOS_KEY_STORE_URL."
MOVE_PLACE = b"moved to"  # before the id of the store
MOST_MOVES = 8  # that are followed in a row
OLDER = "The key store is a copy from before a rotation of keys: restore a newer copy of the key store."
Answer = TypeVar("Answer")
Cache = dict[tuple[UUID, str | UUID], tuple[float, DataKey]]


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


class SealedKeyStore:
    """Keys that are sealed under the master key, in a place that many processes may share."""

    def __init__(self, place: Place, master_key: bytes, registry: Registry) -> None:
        self._place = place
        self._master = master_of(master_key)
        self._wrapping = self._master[1]  # until the store says which root key the master key opens
        self._registry = registry
        self._cache: Cache = {}
        self._registered: UUID | None = None
        self._rotations: frozenset[UUID] | None = None
        self._identified: Mark | None = None
        self._checked: Mark | None = None
        self._is_followed = False  # whether the former place named this one
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

        found = self._retry_after_change(read)
        if found is None:  # or the store was moved a moment ago
            self._identify(is_fresh=True)
            found = self._retry_after_change(read)
        return found

    def _find_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        cache = self._cache
        cached = _find_cached(cache, tenant_id, key_id)
        if cached:
            return cached
        with self._open() as db:
            row = db.execute(
                "SELECT id, scope, wrapped FROM data_key WHERE tenant = %s AND id = %s", (tenant_id.bytes, key_id.bytes)
            ).fetchone()
            if row is None and not is_destroyed(db, key_id):
                raise KeyUnavailable(KEY_MISSING)
        return _remember(cache, tenant_id, key_id, self._unwrap(tenant_id, row)) if row else None

    def destroy(self, tenant_id: UUID, scope: str) -> None:
        of_scope = scope_rows(tenant_id, scope)
        with self._destruction(tenant_id, scope) as db:
            db.execute(f"INSERT INTO destroyed_key SELECT id FROM data_key WHERE {OF_SCOPE}", of_scope)
            db.execute(f"DELETE FROM data_key WHERE {OF_SCOPE}", of_scope)

    def destroy_tenant(self, tenant_id: UUID) -> None:
        destroyed = "FROM data_key WHERE tenant = %s AND scope NOT IN (%s, %s)"
        of_tenant = (tenant_id.bytes, *OF_AUDIT)
        with self._destruction(tenant_id, ALL_SCOPES) as db:
            db.execute(f"INSERT INTO destroyed_key SELECT id {destroyed}", of_tenant)
            db.execute(f"DELETE {destroyed}", of_tenant)

    @contextmanager
    def _destruction(self, tenant_id: UUID, scope: str) -> Iterator[Session]:
        """Open a transaction that destroys keys; the place then removes their bytes."""
        with self._transaction() as db:
            named = (tenant_id.bytes, scope)
            db.execute("INSERT INTO destroyed_scope VALUES (%s, %s) ON CONFLICT DO NOTHING", named)
            yield db
        self._cache = {}
        self._place.purge()

    def destroyed_scopes(self) -> list[tuple[UUID, str]]:
        self._identify(is_fresh=True)
        with self._open() as db:
            rows = db.execute("SELECT tenant, scope FROM destroyed_scope ORDER BY tenant, scope").fetchall()
        return [(UUID(bytes=tenant), scope) for tenant, scope in rows]

    def check(self) -> None:
        self._retry_after_change(self._check)

    def _check(self) -> None:
        if self._checked == self._identified:
            return
        place = self._place
        with place.open() as db:
            place.verify(db)
            self._refuse_missing_keys(self._registry.tenants() - complete_tenants(db))
        self._checked = self._identified

    # Identity of the store

    @property
    def place(self) -> Place:
        """Return where the keys are, after each move that this process has followed."""
        return self._place

    def _identify(self, *, is_fresh: bool = False) -> None:
        """Detect whether the store was removed, replaced or changed since the last call. If so, empty the cache.

        is_fresh: ask a place that is asked rarely, too.
        """
        mark = self._place.mark(is_fresh=is_fresh)
        if mark is not None and mark == self._identified:
            return
        with self._lock:
            for _ in range(MOST_MOVES):
                place = self._place
                self._identify_place()
                if self._place is place:
                    return
            raise KeyUnavailable(ARRIVING)

    def _identify_place(self) -> None:
        mark = self._place.mark()
        try:
            self._refresh_identity(mark)
        except KeyUnavailable:
            now = self._place.mark(is_fresh=True)
            if now == mark:
                raise
            self._refresh_identity(now)  # another process made or rotated it in between

    def _refresh_identity(self, mark: Mark | None) -> None:
        own = self._place.database()
        if own is not None and own == self._registry.database():
            raise KeyUnavailable(SAME_DATABASE)
        if mark is None:
            self._make_if_new()
            mark = self._place.mark(is_fresh=True)
        following = self._refuse_stranger()
        self._cache = {}
        self._identified = None if following else mark
        self._is_followed = following is not None
        self._place = following or self._place

    def _make_if_new(self) -> None:
        """Create the store if the database has neither a key store nor a tenant. The first process wins."""
        if self._registered or self._registry.find_store_id() or self._registry.tenants():
            if self._place.mark(is_fresh=True) is not None:  # another process made it meanwhile
                return
            raise KeyUnavailable(self._place.missing)
        self._place.make(self._write_identity)

    def _write_identity(self, db: Session) -> None:
        store_id = uuid7()
        proof = seal(self._wrapping, b"", place=store_id.bytes)
        db.execute("INSERT INTO key_store VALUES (%s, %s)", (store_id.bytes, proof))

    def _refuse_stranger(self) -> Place | None:
        """Return where the store was moved to, or None.

        Raises KeyUnavailable if the database names another store, or another master key made the store.
        """
        with self._open() as db:
            tables = db.tables()
            if "key_store" not in tables:
                raise KeyUnavailable(self._place.damaged)
            self._wrapping = self._root(db)
            store_id = self._identity(db)
            if self._registered is None:
                self._registered = self._registry.find_store_id() or self._register(db, store_id)
            if store_id != self._registered:
                raise KeyUnavailable(FOREIGN)
            moves = dict(db.execute("SELECT state, address FROM move")) if "move" in tables else {}
            if MOVED in moves:
                return self._open_address(store_id, moves[MOVED])
            self._refuse_older(rotations_of(db))
        if COMING in moves:
            self._arrive()
        return None

    def _open_address(self, store_id: UUID, address: bytes) -> Place:
        try:
            return place_at(unseal(self._wrapping, address, place=MOVE_PLACE + store_id.bytes).decode())
        except SealBroken as error:
            raise KeyUnavailable(self._place.damaged) from error

    def _arrive(self) -> None:
        """Complete a move that was interrupted after its last copy, as only its former place tells."""
        if not self._is_followed:
            raise KeyUnavailable(ARRIVING)
        with self._place.transaction() as db:
            db.execute("DELETE FROM move WHERE state = %s", (COMING,))

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

    def _identity(self, db: Session) -> UUID:
        """Return the id of the file. Raises KeyUnavailable where another master key made it."""
        row = db.execute("SELECT id, proof FROM key_store").fetchone()
        if row is None:
            raise KeyUnavailable(self._place.damaged)
        try:
            unseal(self._wrapping, row[1], place=row[0])
        except SealBroken as error:
            raise KeyUnavailable(OTHER_MASTER) from error
        return UUID(bytes=row[0])

    def _register(self, db: Session, store_id: UUID) -> UUID:
        """Store the id of the file in a database that has none: both are new. Raises KeyUnavailable."""
        of_tenants = "SELECT 1 FROM data_key WHERE scope = %s AND tenant <> %s"
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

    def _ensure_wrapping_key(self, db: Session, tenant_id: UUID, scope: str) -> DataKey:
        """Return the key that encrypts a new key of `scope`. Creates the tenant's key if there is none."""
        root = self._root(db)
        if scope == TENANT_SCOPE:
            return root
        row = key_row(db, tenant_id, TENANT_SCOPE)
        if row is not None:
            secret = unseal(root, row[2], place=sealing_context(tenant_id, TENANT_SCOPE))
            return DataKey(id=UUID(bytes=row[0]), secret=secret)
        return key_insert(db, root, tenant_id, TENANT_SCOPE, DataKey(id=uuid7(), secret=new_secret()))

    def _root(self, db: Session) -> DataKey:
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
            raise KeyUnavailable(self._place.damaged) from error

    def _retry_after_change(self, call: Callable[[], Answer]) -> Answer:
        """Run `call` again if the store changed meanwhile: during a rotation it may have read keys from before and
        after.
        """
        for _ in range(TRIES - 1):
            self._identify()
            mark, place = self._identified, self._place
            try:
                return call()
            except KeyUnavailable:
                self._identify(is_fresh=True)
                if self._place is place and self._identified == mark:
                    raise
        return call()

    def _unwrap(self, tenant_id: UUID, row: tuple[bytes, str, bytes] | None) -> DataKey:
        if row is None:
            raise KeyUnavailable("The key store lost a key while it was being made.")
        key_id, scope, wrapped = row
        wrapping = self._wrapping if scope == TENANT_SCOPE else self.key_for(tenant_id, TENANT_SCOPE)
        try:
            secret = unseal(wrapping, wrapped, place=sealing_context(tenant_id, scope))
        except SealBroken as error:
            raise KeyUnavailable(OTHER_MASTER if scope == TENANT_SCOPE else self._place.damaged) from error
        return DataKey(id=UUID(bytes=key_id), secret=secret)

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        """Open the store in one write transaction, which is rolled back if the process is killed.

        A store that was moved in the meantime is written in its new place.
        """
        self._identify()
        while True:
            with self._place.transaction() as db:
                if not is_moved(db):
                    try:
                        yield db
                    except SealBroken as error:
                        raise KeyUnavailable(self._place.damaged) from error
                    return
            self._identify(is_fresh=True)

    def _open(self) -> AbstractContextManager[Session]:
        return self._place.open()


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
