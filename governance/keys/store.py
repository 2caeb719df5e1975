"""The KeyStore: keys outside PostgreSQL and outside its backups. This one is a SQLite file with `secure_delete`.

Master key → tenant's key → data keys. A scope names what a data key is for: `general`, `tokens`, `member:<id>`,
`subject:<id>`. Destroying a row makes everything sealed under it unreadable, wherever copies of it lie.
"""

import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol
from uuid import UUID

from governance.errors import KeyUnavailable
from governance.ids import uuid7
from governance.keys.rules import KEY_BYTES, DataKey, SealBroken, derive, seal, unseal

CACHE_SECONDS = 30.0  # how long a process may go on using a key that another one destroyed
TENANT_SCOPE = "tenant"
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS data_key (id BLOB PRIMARY KEY, tenant BLOB NOT NULL, scope TEXT NOT NULL, "
    "wrapped BLOB NOT NULL, UNIQUE (tenant, scope)) WITHOUT ROWID"
)


class KeyStore(Protocol):
    """Where data keys live. Every method raises KeyUnavailable when the store cannot answer."""

    def key_for(self, tenant_id: UUID, scope: str) -> DataKey:
        """The key of `scope`, made on first use; durable before it is returned."""

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        """A key that a blob names, or None once it was destroyed."""

    def check(self) -> None:
        """Prove that the store answers, and that the master key is the one that it was made under."""


class SqliteKeyStore:
    """One file, safe between processes. The rollback journal is truncated, so destroyed keys leave no copy in a log."""

    def __init__(self, path: Path, master_key: bytes) -> None:
        self._path = path
        self._wrapping = DataKey(id=UUID(int=0), secret=derive(master_key, "memos key store"))
        self._cache: dict[tuple[UUID, str | UUID], tuple[float, DataKey]] = {}
        self._ready = False

    def key_for(self, tenant_id: UUID, scope: str) -> DataKey:
        return self._cached(tenant_id, scope) or self._remember(tenant_id, scope, self._find_or_make(tenant_id, scope))

    def key_by_id(self, tenant_id: UUID, key_id: UUID) -> DataKey | None:
        cached = self._cached(tenant_id, key_id)
        if cached:
            return cached
        with self._open() as db:
            row = db.execute(
                "SELECT id, scope, wrapped FROM data_key WHERE tenant = ? AND id = ?", (tenant_id.bytes, key_id.bytes)
            ).fetchone()
        return self._remember(tenant_id, key_id, self._unwrap(tenant_id, row)) if row else None

    def check(self) -> None:
        with self._open() as db:
            row = db.execute(
                "SELECT tenant, id, scope, wrapped FROM data_key WHERE scope = ? LIMIT 1", (TENANT_SCOPE,)
            ).fetchone()
        if row is not None:
            self._unwrap(UUID(bytes=row[0]), row[1:])

    def _find_or_make(self, tenant_id: UUID, scope: str) -> DataKey:
        wrapping = self._wrapping if scope == TENANT_SCOPE else self.key_for(tenant_id, TENANT_SCOPE)
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            row = self._row(db, tenant_id, scope)
            if row is None:
                new = DataKey(id=uuid7(), secret=secrets.token_bytes(KEY_BYTES))
                wrapped = seal(wrapping, new.secret, place=_place(tenant_id, scope))
                db.execute("INSERT INTO data_key VALUES (?, ?, ?, ?)", (new.id.bytes, tenant_id.bytes, scope, wrapped))
                row = self._row(db, tenant_id, scope)
            db.execute("COMMIT")
        return self._unwrap(tenant_id, row)

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
            raise KeyUnavailable("The key store was made under another master key.") from error
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
            with closing(self._connect()) as db:
                yield db
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable("The key store cannot be opened.") from error

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        db = sqlite3.connect(self._path, timeout=5, isolation_level=None)
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA journal_mode = TRUNCATE")
        db.execute("PRAGMA synchronous = EXTRA")
        if not self._ready:
            self._path.chmod(0o600)
            db.execute(SCHEMA)
            self._ready = True
        return db


def _place(tenant_id: UUID, scope: str) -> bytes:
    return tenant_id.bytes + scope.encode()
