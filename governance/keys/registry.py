"""The database's record of its key store. Free of Django, because the program that starts the product uses it too."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import psycopg

from governance.errors import KeyUnavailable
from governance.vocabulary import Verb

NOTED = "SELECT store_id FROM governance_keystorenote WHERE id = 1"
NOTE = "INSERT INTO governance_keystorenote (id, store_id) VALUES (1, %s) ON CONFLICT (id) DO NOTHING"
ROTATIONS = "SELECT store_id FROM governance_keystorenote WHERE id > 1"
NOTE_ROTATION = "INSERT INTO governance_keystorenote (id, store_id) SELECT max(id) + 1, %s FROM governance_keystorenote"
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('governance_keystorenote'))"
DATABASE = "SELECT pg_postmaster_start_time(), current_database()"
STORED = "SELECT EXISTS (SELECT 1 FROM governance_auditentry WHERE tenant_id = %s AND verb = %s)"


class Registry(Protocol):
    """The stored ids of key store and rotations. Every method raises KeyUnavailable if the database does not answer."""

    def find_store_id(self) -> UUID | None:
        """Return the id of the database's key store, or None if none is stored yet."""

    def database(self) -> object | None:
        """Return which PostgreSQL database this is; None where there is none."""

    def register(self, store_id: UUID) -> UUID:
        """Store the id of the key store if none is stored, and return the stored id. It is never changed."""

    def tenants(self) -> frozenset[UUID]:
        """Return the ids of all tenants."""

    def rotations(self) -> frozenset[UUID]:
        """Return the ids of all stored key rotations."""

    def note_rotations(self, ids: Collection[UUID]) -> None:
        """Store the ids of key rotations that are not stored yet. They are never deleted."""

    def has_memories(self, tenant_ids: Collection[UUID]) -> bool:
        """Return whether any of these tenants ever stored a memory, which needs keys."""


@dataclass(frozen=True)
class DatabaseRegistry:
    """The record in PostgreSQL. It uses connections of its own, so that a rollback of the caller cannot undo it."""

    connect: Callable[[], psycopg.Connection[Any]]

    def find_store_id(self) -> UUID | None:
        with self._cursor() as cursor:
            row = cursor.execute(NOTED).fetchone()
        return row[0] if row else None

    def database(self) -> object | None:
        with self._cursor() as cursor:
            return cursor.execute(DATABASE).fetchone()

    def register(self, store_id: UUID) -> UUID:
        with self._cursor() as cursor:
            cursor.execute(NOTE, [store_id])
            row = cursor.execute(NOTED).fetchone()
        noted: UUID = row[0] if row else store_id
        return noted

    def tenants(self) -> frozenset[UUID]:
        with self._cursor() as cursor:
            return frozenset(row[0] for row in cursor.execute("SELECT id FROM governance_tenant_ids()"))

    def rotations(self) -> frozenset[UUID]:
        with self._cursor() as cursor:
            return frozenset(row[0] for row in cursor.execute(ROTATIONS))

    def note_rotations(self, ids: Collection[UUID]) -> None:
        with self._cursor() as cursor:
            cursor.execute(ONE_AT_A_TIME)
            noted = {row[0] for row in cursor.execute(ROTATIONS)}
            for rotation_id in sorted(set(ids) - noted):
                cursor.execute(NOTE_ROTATION, [rotation_id])

    def has_memories(self, tenant_ids: Collection[UUID]) -> bool:
        return any(self._has_memories(tenant_id) for tenant_id in tenant_ids)

    def _has_memories(self, tenant_id: UUID) -> bool:
        with self._cursor() as cursor:
            cursor.execute("SELECT set_config('app.tenant', %s, true)", [str(tenant_id)])
            row = cursor.execute(STORED, [tenant_id, Verb.MEMORY_CREATED]).fetchone()
        return bool(row and row[0])

    @contextmanager
    def _cursor(self) -> Iterator[psycopg.Cursor[Any]]:
        try:
            with self.connect() as connection, connection.cursor() as cursor:
                yield cursor
        except psycopg.Error as error:
            raise KeyUnavailable("The database does not say which key store belongs to it.") from error
