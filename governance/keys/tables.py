"""The tables of the key file, and statements on an open file. `governance.keys.store` decides when they run."""

import sqlite3
from pathlib import Path
from uuid import UUID

from governance.errors import KeyUnavailable
from governance.keys.rules import DataKey, seal

TENANT_SCOPE = "tenant"
TOKENS = "tokens"
NEEDED = (TENANT_SCOPE, TOKENS)  # by every tenant that has stored a memory
AUDIT_SIGNING = "audit-signing"
EXCHANGE = "exchange"  # files for a tenant are encrypted to its public half
EXPORT_SIGNING = "export-signing"  # a tenant signs its exported memory packs
OF_AUDIT = (TENANT_SCOPE, AUDIT_SIGNING)  # of a deleted tenant these stay: its audit log can be verified
ALL_SCOPES = "*"  # stands for every scope of a tenant whose keys were destroyed
SCHEMA = (
    "CREATE TABLE data_key (id BLOB PRIMARY KEY, tenant BLOB NOT NULL, scope TEXT NOT NULL, "
    "wrapped BLOB NOT NULL, UNIQUE (tenant, scope)) WITHOUT ROWID",
    "CREATE TABLE key_store (id BLOB PRIMARY KEY, proof BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE destroyed_key (id BLOB PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE destroyed_scope (tenant BLOB NOT NULL, scope TEXT NOT NULL, "
    "PRIMARY KEY (tenant, scope)) WITHOUT ROWID",
    "CREATE TABLE root_key (master BLOB PRIMARY KEY, wrapped BLOB NOT NULL, is_next INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE rotation (id BLOB PRIMARY KEY) WITHOUT ROWID",
)
ROOT_PLACE = b"root key"
RETIRED = "#"  # a key that was rotated: `scope#id`; it opens what it sealed, and seals nothing more
OF_SCOPE = f"tenant = ?1 AND (scope = ?2 OR scope LIKE ?2 || '{RETIRED}%')"


def key_row(db: sqlite3.Connection, tenant_id: UUID, scope: str) -> tuple[bytes, str, bytes] | None:
    row: tuple[bytes, str, bytes] | None = db.execute(
        "SELECT id, scope, wrapped FROM data_key WHERE tenant = ? AND scope = ?", (tenant_id.bytes, scope)
    ).fetchone()
    return row


def key_insert(db: sqlite3.Connection, wrapping: DataKey, tenant_id: UUID, scope: str, new: DataKey) -> DataKey:
    wrapped = seal(wrapping, new.secret, place=sealing_context(tenant_id, scope))
    db.execute("INSERT INTO data_key VALUES (?, ?, ?, ?)", (new.id.bytes, tenant_id.bytes, scope, wrapped))
    return new


def file_open(path: Path) -> sqlite3.Connection:
    """Open an existing file, which other users of the machine cannot read; never create one."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5, isolation_level=None)
    try:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA journal_mode = TRUNCATE")
        db.execute("PRAGMA synchronous = EXTRA")
    except sqlite3.Error:
        db.close()
        raise
    return db


def rotations_of(db: sqlite3.Connection) -> frozenset[UUID]:
    """Return the ids of the key rotations that this file contains."""
    return frozenset(UUID(bytes=row[0]) for row in db.execute("SELECT id FROM rotation"))


def complete_tenants(db: sqlite3.Connection) -> frozenset[UUID]:
    """Return the tenants that have all NEEDED keys, and those whose keys were destroyed."""
    rows = db.execute("SELECT tenant FROM data_key WHERE scope IN (?, ?) GROUP BY tenant HAVING count(*) = 2", NEEDED)
    complete = frozenset(UUID(bytes=row[0]) for row in rows)
    deleted = db.execute("SELECT tenant FROM destroyed_scope WHERE scope = ?", (ALL_SCOPES,))
    return complete | frozenset(UUID(bytes=row[0]) for row in deleted)


def is_destroyed(db: sqlite3.Connection, key_id: UUID) -> bool:
    return db.execute("SELECT 1 FROM destroyed_key WHERE id = ?", (key_id.bytes,)).fetchone() is not None


def refuse_destroyed_scope(db: sqlite3.Connection, tenant_id: UUID, scope: str) -> None:
    """Raise KeyUnavailable if the key of the scope was destroyed, so that no new key takes its place."""
    named = (tenant_id.bytes, scope, scope if scope in OF_AUDIT else ALL_SCOPES)
    if db.execute("SELECT 1 FROM destroyed_scope WHERE tenant = ? AND scope IN (?, ?)", named).fetchone():
        raise KeyUnavailable("The key was destroyed, and no other takes its place.")


def sealing_context(tenant_id: UUID, scope: str) -> bytes:
    return tenant_id.bytes + scope.encode()
