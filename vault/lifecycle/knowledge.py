"""Compares statements of a pack with the organisation's own memories, and applies accepted ones."""

from datetime import datetime
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.vocabulary import Permission, Verb
from vault.cubes.lookup import cube_target, locate
from vault.graph.rules import agree, contradict
from vault.lifecycle.contradictions import validity_end, validity_start
from vault.models import Cube
from vault.vocabulary import ReviewKind

KNOWLEDGE = (ReviewKind.PACK_SUPERSEDES, ReviewKind.PACK_CONTRADICTS, ReviewKind.PACK_CONFIRMS)
PACK_HOLDS = "A person decided that the statement of a pack holds."


def find_relation(official: str, own: str, *, is_newer: bool) -> ReviewKind | None:
    """Return the relation of a pack's statement to an organisation's statement; None if they state different things.

    is_newer: the pack's statement holds from a later time than the other one.
    """
    if contradict(official, own):
        return ReviewKind.PACK_SUPERSEDES if is_newer else ReviewKind.PACK_CONTRADICTS
    return ReviewKind.PACK_CONFIRMS if agree(official, own) else None


def knowledge_settle(*, actor: Actor, kind: ReviewKind, cube_id: UUID, official_id: UUID) -> None:
    """Apply a pack's statement to an own memory: end the memory's validity, or raise its trust if the pack confirms it.

    Raises NotFound; Forbidden; Held; Conflict if the validity ended before.
    Writes: Cube, CubeVersion?, AuditEntry, OutboxEvent?.
    """
    with acting(actor):
        cube, official = locate(actor, cube_id, lock=True), locate(actor, official_id)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
        if kind is ReviewKind.PACK_CONFIRMS:
            Cube.objects.filter(id=cube.id).update(trust=max(cube.trust, official.trust))
            record(actor=actor, verb=Verb.MEMORY_UPDATED, object_type="memory", object_ids=[cube.id])
        else:
            until = _find_end(cube, official)
            validity_end(actor=actor, cube=cube, successor=official, until=until, reason=PACK_HOLDS)


def _find_end(cube: Cube, official: Cube) -> datetime:
    """Return the time from which the pack's statement holds, if it states one after the own memory's start; else
    now."""
    stated = official.valid_from or official.event_time
    return stated if stated is not None and stated > validity_start(cube) else database_now()
