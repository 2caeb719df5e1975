"""The tables of a key store, and statements on an open one. `governance.keys.store` decides when they run.

The statements are those that SQLite and PostgreSQL share.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol
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
    "wrapped BLOB NOT NULL, UNIQUE (tenant, scope))",
    "CREATE TABLE key_store (id BLOB PRIMARY KEY, proof BLOB NOT NULL)",
    "CREATE TABLE destroyed_key (id BLOB PRIMARY KEY)",
    "CREATE TABLE destroyed_scope (tenant BLOB NOT NULL, scope TEXT NOT NULL, PRIMARY KEY (tenant, scope))",
    "CREATE TABLE root_key (master BLOB PRIMARY KEY, wrapped BLOB NOT NULL, is_next INTEGER NOT NULL)",
    "CREATE TABLE rotation (id BLOB PRIMARY KEY)",
    "CREATE TABLE move (state TEXT PRIMARY KEY, address BLOB NOT NULL)",
)
MOVED, COMING = "to", "coming"  # the states of a move: in the former place, and in the new one
FORMER = "from "  # before the fingerprint of a former place
ROOT_PLACE = b"root key"
RETIRED = "#"  # a key that was rotated: `scope#id`; it opens what it sealed, and seals nothing more
OF_SCOPE = "tenant = %s AND (scope = %s OR scope LIKE %s)"


class Rows(Protocol):
    """The answer to a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Session(Protocol):
    """An open key store. Parameters are `%s`, as in psycopg."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Rows: ...
    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None: ...
    def tables(self) -> frozenset[str]: ...


def scope_rows(tenant_id: UUID, scope: str) -> tuple[bytes, str, str]:
    """Return the parameters of OF_SCOPE: the key of a scope, and those that were rotated."""
    return tenant_id.bytes, scope, f"{scope}{RETIRED}%"


def key_row(db: Session, tenant_id: UUID, scope: str) -> tuple[bytes, str, bytes] | None:
    row: tuple[bytes, str, bytes] | None = db.execute(
        "SELECT id, scope, wrapped FROM data_key WHERE tenant = %s AND scope = %s", (tenant_id.bytes, scope)
    ).fetchone()
    return row


def key_insert(db: Session, wrapping: DataKey, tenant_id: UUID, scope: str, new: DataKey) -> DataKey:
    wrapped = seal(wrapping, new.secret, place=sealing_context(tenant_id, scope))
    db.execute("INSERT INTO data_key VALUES (%s, %s, %s, %s)", (new.id.bytes, tenant_id.bytes, scope, wrapped))
    return new


def rotations_of(db: Session) -> frozenset[UUID]:
    """Return the ids of the key rotations that this file contains."""
    return frozenset(UUID(bytes=row[0]) for row in db.execute("SELECT id FROM rotation"))


def complete_tenants(db: Session) -> frozenset[UUID]:
    """Return the tenants that have all NEEDED keys, and those whose keys were destroyed."""
    rows = db.execute("SELECT tenant FROM data_key WHERE scope IN (%s, %s) GROUP BY tenant HAVING count(*) = 2", NEEDED)
    complete = frozenset(UUID(bytes=row[0]) for row in rows)
    deleted = db.execute("SELECT tenant FROM destroyed_scope WHERE scope = %s", (ALL_SCOPES,))
    return complete | frozenset(UUID(bytes=row[0]) for row in deleted)


def is_destroyed(db: Session, key_id: UUID) -> bool:
    return db.execute("SELECT 1 FROM destroyed_key WHERE id = %s", (key_id.bytes,)).fetchone() is not None


def refuse_destroyed_scope(db: Session, tenant_id: UUID, scope: str) -> None:
    """Raise KeyUnavailable if the key of the scope was destroyed, so that no new key takes its place."""
    named = (tenant_id.bytes, scope, scope if scope in OF_AUDIT else ALL_SCOPES)
    if db.execute("SELECT 1 FROM destroyed_scope WHERE tenant = %s AND scope IN (%s, %s)", named).fetchone():
        raise KeyUnavailable("The key was destroyed, and no other takes its place.")


def sealing_context(tenant_id: UUID, scope: str) -> bytes:
    return tenant_id.bytes + scope.encode()
