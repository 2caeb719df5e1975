"""Key stores that no database notes."""

import sqlite3
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from governance.keys.rotation import RotatingKeyStore


@dataclass
class MemoryRegistry:
    """A registry of the database, in memory."""

    noted: UUID | None = None
    ids: frozenset[UUID] = field(default_factory=frozenset)
    with_memories: frozenset[UUID] = field(default_factory=frozenset)
    rotated: set[UUID] = field(default_factory=set)

    def find_store_id(self) -> UUID | None:
        return self.noted

    def register(self, store_id: UUID) -> UUID:
        self.noted = self.noted or store_id
        return self.noted

    def tenants(self) -> frozenset[UUID]:
        return self.ids

    def rotations(self) -> frozenset[UUID]:
        return frozenset(self.rotated)

    def note_rotations(self, ids: Collection[UUID]) -> None:
        self.rotated.update(ids)

    def has_memories(self, tenant_ids: Collection[UUID]) -> bool:
        return not self.with_memories.isdisjoint(tenant_ids)


def store_at(path: Path, master_key: bytes, registry: MemoryRegistry | None = None) -> RotatingKeyStore:
    """As a process opens it that starts now. registry: by default of a database that notes whatever is there."""
    return RotatingKeyStore(path, master_key, registry or MemoryRegistry(noted=store_id_at(path)))


def store_id_at(path: Path) -> UUID | None:
    """The id of the store in the file; None where there is none."""
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        with closing(sqlite3.connect(path)) as db:
            row = db.execute("SELECT id FROM key_store").fetchone()
    except sqlite3.Error:
        return None
    return UUID(bytes=row[0]) if row else None
