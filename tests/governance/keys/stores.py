"""Key stores that no database notes."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from governance.errors import KeyUnavailable
from governance.keys.moving import Contents, RelocatableKeyStore, contents_of
from governance.keys.places import place_at


@dataclass
class MemoryRegistry:
    """A registry of the database, in memory."""

    noted: UUID | None = None
    ids: frozenset[UUID] = field(default_factory=frozenset)
    with_memories: frozenset[UUID] = field(default_factory=frozenset)
    rotated: set[UUID] = field(default_factory=set)
    of_data: object | None = None

    def find_store_id(self) -> UUID | None:
        return self.noted

    def database(self) -> object | None:
        return self.of_data

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


def store_at(place: Path | str, master_key: bytes, registry: MemoryRegistry | None = None) -> RelocatableKeyStore:
    """As a process opens it that starts now. registry: by default of a database that notes whatever is there."""
    return RelocatableKeyStore(place_at(place), master_key, registry or MemoryRegistry(noted=store_id_at(place)))


def store_id_at(place: Path | str) -> UUID | None:
    """The id of the store in a place; None where there is none."""
    try:
        with place_at(place).open() as db:
            row = db.execute("SELECT id FROM key_store").fetchone()
    except KeyUnavailable:
        return None
    return UUID(bytes=row[0]) if row else None


def rows_of(place: Path | str) -> Contents:
    with place_at(place).open() as db:
        return contents_of(db)
