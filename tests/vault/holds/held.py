"""State of a held memory: every byte, for comparison before and after."""

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from governance.database import acting
from governance.models import DataSubject
from tests.factories import World
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.services import cube_delete, cube_update, cubes_add
from vault.holds.services import HoldDraft, cube_freeze, hold_create
from vault.models import Cube

Superuser = Callable[[], psycopg.Connection]
COVERED = "SELECT DISTINCT cube_id FROM vault_holdcube"
WHOLE = {  # each row of these tables that is held, or that holds, with all its columns
    "vault_cube": f"id IN ({COVERED})",
    "vault_cubeversion": f"cube_id IN ({COVERED})",
    "governance_datasubject": "id IN (SELECT subject_id FROM vault_hold)",
    "vault_hold": "true",
    "vault_holdcube": "true",
}


@dataclass(frozen=True)
class Holding:
    """Memories under each kind of hold, and one that is free. Each held one has two versions."""

    frozen: UUID
    single: UUID
    matched: UUID
    about: UUID
    deleted: UUID
    expiring: UUID
    free: UUID
    subject: UUID
    legal: tuple[UUID, ...]

    @property
    def held(self) -> tuple[UUID, ...]:
        return (self.frozen, self.single, self.matched, self.about, self.deleted, self.expiring)


def holding(world: World) -> Holding:
    """All of alice's, frozen by alice, held by olivia."""
    alice, olivia = world.alice.actor, world.olivia.actor
    frozen, single, deleted, expiring, free = (
        _two_versions(world, CubeDraft(content=f"The {name} one.", namespace="/team"))
        for name in ("frozen", "single", "deleted", "expiring", "free")
    )
    matched = _two_versions(world, CubeDraft(content="The matched one.", namespace="/team", tags=("held",)))
    about = _two_versions(world, CubeDraft(content="The subject's one.", namespace="/team", subject="carla"))
    cube_delete(actor=alice, cube_id=deleted)
    with acting(alice):
        Cube.objects.filter(id=expiring).update(expires_at=Cube.objects.get(id=expiring).created_at)
    cube_freeze(actor=alice, cube_id=frozen, reason="Mine.")
    drafts = [
        *(HoldDraft(reason="Case 17.", memory_id=item) for item in (single, deleted, expiring)),
        HoldDraft(reason="Case 18.", filters={"tags": "held"}),
        HoldDraft(reason="Case 19.", subject="carla"),
    ]
    legal = tuple(hold_create(actor=olivia, draft=draft).id for draft in drafts)
    with acting(alice):
        subject = DataSubject.objects.get().id
    return Holding(frozen, single, matched, about, deleted, expiring, free, subject, legal)


def _two_versions(world: World, draft: CubeDraft) -> UUID:
    cube = cubes_add(actor=world.alice.actor, drafts=[draft])[0].cube
    changes = CubeChanges(title="Second")
    cube_update(actor=world.alice.actor, cube_id=cube.id, expected_versions=[1], changes=changes)
    return cube.id


def digests(superuser: psycopg.Connection, keys: Path) -> dict[tuple[str, str], str]:
    """SHA-256 of every row that is held or holds, all columns; and of every key that could open one."""
    found: dict[tuple[str, str], str] = {}
    for table, condition in WHOLE.items():
        rows = superuser.execute(f"SELECT id, t::text FROM {table} AS t WHERE {condition}".encode())
        found |= {(table, str(row_id)): _digest(text.encode()) for row_id, text in rows}
    return found | {("key", name): _digest(wrapped) for name, wrapped in _keys(keys)}


def find_changes(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]) -> list[tuple[str, str]]:
    """The rows of `before` that are gone or differ."""
    return [name for name, digest in before.items() if after.get(name) != digest]


def _keys(path: Path) -> list[tuple[str, Any]]:
    store = sqlite3.connect(path)
    try:
        return [(key.hex(), wrapped) for key, wrapped in store.execute("SELECT id, wrapped FROM data_key")]
    finally:
        store.close()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
