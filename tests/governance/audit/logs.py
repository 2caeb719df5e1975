"""Sealed audit logs with checkpoints, and a superuser's connection that changes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import psycopg
from psycopg import sql

from governance.actor import Actor
from governance.audit.checkpoints import checkpoint_write, checkpoints_outside
from governance.audit.seals import entries_seal
from governance.audit.services import record
from governance.audit.verification import log_verify
from governance.audit.verifier import Chain, Checkpoint, Fault
from governance.database import acting
from governance.ids import uuid7
from governance.vocabulary import Verb

Superuser = Callable[[], psycopg.Connection]
TABLES = ("governance_auditentry", "governance_auditseal", "governance_auditcheckpoint", "governance_auditunsealed")
SIGNED_EVERY = 20


def entries_make(actor: Actor, count: int) -> None:
    with acting(actor):
        for number in range(count):
            record(
                actor=actor,
                verb=Verb.MEMORY_UPDATED,
                object_type="memory",
                object_ids=[uuid7() for _ in range(number % 3)],
                version=number % 4 or None,
                before_hash=bytes([number % 256]) * 32 if number % 2 else None,
                after_hash=bytes([number % 255]) * 32,
                detail={"count": number, "reason": 'a "quoted" \\ line\nbreak, 中文', "none": None},
            )


def seal_all(tenant_id: UUID) -> int:
    """Seal what there is, and sign where it ends."""
    sealed = 0
    while done := entries_seal(tenant_id):
        sealed += done
    checkpoint_write(tenant_id)
    return sealed


def log_make(actor: Actor, length: int) -> None:
    """A chain of at least `length` seals with a checkpoint at its end and, on the way, after every SIGNED_EVERY."""
    sealed = seal_all(actor.tenant_id)
    while sealed < length:
        entries_make(actor, min(SIGNED_EVERY, length - sealed))
        sealed += seal_all(actor.tenant_id)


def first_fault(tenant_id: UUID, kept: Sequence[Checkpoint], chain_of: Callable[..., Chain] = Chain) -> Fault | None:
    """Return the first fault of the database against the checkpoints outside."""
    return log_verify(tenant_id, checkpoints=kept, chain_of=chain_of).fault


@dataclass
class Bender:
    """The superuser, with triggers and foreign keys out of the way, and a copy of how all was."""

    connection: psycopg.Connection
    tenant_id: UUID

    def __post_init__(self) -> None:
        self.run("SET session_replication_role = replica")

    def run(self, statement: str, *parameters: object) -> list[tuple[object, ...]]:
        found = self.connection.execute(statement.encode(), parameters)
        return found.fetchall() if found.description else []

    def keep(self, name: str) -> None:
        """Copy the audit log, to go back to."""
        for table in TABLES:
            self.run(f"CREATE TABLE {name}_{table} AS SELECT * FROM {table} WHERE tenant_id = '{self.tenant_id}'")

    def back_to(self, name: str) -> None:
        """The audit log is again what it was when it was kept."""
        for table in TABLES:
            # Also rows that were moved to another tenant.
            self.run(
                f"DELETE FROM {table} WHERE tenant_id = %s OR id IN (SELECT id FROM {name}_{table})", self.tenant_id
            )
            self.run(f"INSERT INTO {table} SELECT * FROM {name}_{table}")

    def places(self) -> list[tuple[int, UUID]]:
        """Place and entry of every seal."""
        rows = self.run(
            "SELECT seq, entry_id FROM governance_auditseal WHERE tenant_id = %s ORDER BY 1", self.tenant_id
        )
        return [(int(str(seq)), UUID(str(entry))) for seq, entry in rows]

    def set(self, table: str, column: str, value: object, row_id: object) -> None:
        """Write one value into the row whose id (of a seal: whose place) is `row_id`."""
        key = "seq" if table == "governance_auditseal" else "id"
        self.connection.execute(
            sql.SQL("UPDATE {} SET {} = %s WHERE tenant_id = %s AND {} = %s").format(
                sql.Identifier(table), sql.Identifier(column), sql.Identifier(key)
            ),
            [value, self.tenant_id, row_id],
        )

    def outside(self) -> list[Checkpoint]:
        return checkpoints_outside(self.tenant_id)
