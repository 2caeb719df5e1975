"""Past states of the memories in some namespaces, and the writes that restore such a state.

A memory that changed since gets a new version equal to the former one; a memory that was deleted since is restored; a
memory that was stored later, or that was deleted then and restored later, is deleted. Held memories stay as they are,
and purged memories cannot be restored.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from governance.access.decisions.rules import sees_private
from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import DomainError, Forbidden, Unavailable
from governance.ids import uuid7_floor
from governance.models import AuditEntry
from governance.vocabulary import Permission, Verb
from vault.content.drafts import UNSET, CubeChanges
from vault.content.words import NO_WORDS, words_open
from vault.cubes.lookup import cube_target
from vault.cubes.services import Succession, amounts_take, cube_restore, cubes_hide, versions_write
from vault.cubes.versions import present_versions, readable_versions
from vault.cubes.visibility import name_parameters
from vault.cubes.writer.builder import CLEAR_FIELDS, BuiltCube, Resolver, build_version
from vault.models import Cube, CubeVersion, Namespace
from vault.namespaces.services import namespace_target
from vault.screening.findings import findings_by_version
from vault.vocabulary import PastChange

MOST_NAMED = 100  # ids of a summary

# The memories that lie in the namespaces now, or lay there then, and that the actor may know of, each with its last
# version of then. {reach}: a statement for their ids.
PAST = """
WITH candidates AS (
  SELECT cube.id FROM vault_cube AS cube
  WHERE cube.tenant_id = %(tenant)s AND cube.namespace_id = ANY(%(namespaces)s) AND cube.id > %(after)s
  UNION
  SELECT version.cube_id FROM vault_cubeversion AS version
  WHERE version.tenant_id = %(tenant)s AND version.namespace_id = ANY(%(namespaces)s)
    AND version.created_at <= %(as_of)s AND version.cube_id > %(after)s
), wanted AS (SELECT id FROM candidates WHERE id IN ({reach}) ORDER BY id LIMIT %(limit)s),
compared AS (
  SELECT cube.id, cube.version AS present, past.id AS past_id, past.number,
    CASE
      WHEN was_deleted AND cube.deleted_at IS NULL AND cube.namespace_id = ANY(%(namespaces)s) THEN 'restored'
      WHEN was_deleted THEN 'unchanged'
      WHEN past.number IS NULL THEN CASE WHEN cube.deleted_at IS NULL THEN 'added' ELSE 'unchanged' END
      WHEN NOT past.inside AND cube.deleted_at IS NOT NULL THEN 'unchanged'
      WHEN NOT past.inside AND cube.namespace_id <> ALL(%(namespaces)s) THEN 'unchanged'
      WHEN cube.deleted_at IS NOT NULL THEN 'deleted'
      WHEN past.number = cube.version THEN 'unchanged'
      ELSE 'changed'
    END AS change,
    past.number IS NOT NULL AND past.inside AND NOT was_deleted
      AND (past.expires_at IS NULL OR past.expires_at > %(as_of)s OR was_held)
      AND (cube.expires_at IS NULL OR cube.expires_at > %(as_of)s OR was_held) AS was_inside,
    was_held,
    CASE
      WHEN vault_cube_is_held(cube.tenant_id, cube.id) THEN 'held'
      WHEN cube.expires_at <= transaction_timestamp() THEN 'expired'
      WHEN past.number < cube.version AND past.sealed = '' THEN 'redacted'
      WHEN cube.deleted_at < %(earliest)s THEN 'not_found'
      ELSE ''
    END AS obstacle
  FROM wanted JOIN vault_cube AS cube ON cube.tenant_id = %(tenant)s AND cube.id = wanted.id
  CROSS JOIN LATERAL (SELECT
    cube.deleted_at IS NOT NULL AND cube.deleted_at <= %(as_of)s OR EXISTS (
      SELECT 1 FROM vault_pastdeletion AS past WHERE past.tenant_id = cube.tenant_id AND past.cube_id = cube.id
        AND past.deleted_at <= %(as_of)s AND past.created_at > %(as_of)s) AS was_deleted,
    vault_cube_is_held(cube.tenant_id, cube.id, %(as_of)s) AS was_held
  ) AS state
  LEFT JOIN LATERAL (
    SELECT version.id, version.number, version.sealed, version.expires_at,
      version.namespace_id = ANY(%(namespaces)s) AS inside
    FROM vault_cubeversion AS version
    WHERE version.tenant_id = cube.tenant_id AND version.cube_id = cube.id AND version.created_at <= %(as_of)s
    ORDER BY version.number DESC LIMIT 1
  ) AS past ON true
)
"""
ROWS = f"{PAST} SELECT id, present, past_id, number, change, was_inside, was_held, obstacle FROM compared ORDER BY id"
COUNTS = f"""{PAST}
SELECT change, CASE WHEN change = 'unchanged' THEN '' ELSE obstacle END, count(*),
  (array_agg(id ORDER BY id) FILTER (WHERE obstacle = 'held'))[:{MOST_NAMED}]
FROM compared GROUP BY 1, 2
"""
FIRST = UUID(int=0)
EVERY = 2**31 - 1


@dataclass(frozen=True)
class PastRow:
    """A memory now and at the past time. past_id, number: its version at that time; None: it was stored later.

    was_inside: it was readable in the namespaces at that time. was_held: a hold kept it then. obstacle: code of the
    reason against a restore; empty: none.
    """

    cube_id: UUID
    present: int
    past_id: UUID | None
    number: int | None
    change: PastChange
    was_inside: bool
    was_held: bool
    obstacle: str


@dataclass(frozen=True)
class Purge:
    """A memory that was purged from a namespace."""

    cube_id: UUID
    namespace_id: UUID
    at: datetime


@dataclass(frozen=True)
class PastSummary:
    """Numbers of memories by change. obstacles: numbers of changed memories that cannot be restored, by code.

    held: the first MOST_NAMED ids; purges: the first MOST_NAMED memories that were purged since.
    """

    counts: Mapping[PastChange, int]
    obstacles: Mapping[str, int]
    held: tuple[UUID, ...]
    purges: tuple[Purge, ...]

    @property
    def purged(self) -> tuple[UUID, ...]:
        return tuple(purge.cube_id for purge in self.purges)

    @property
    def differing(self) -> int:
        return sum(count for change, count in self.counts.items() if change is not PastChange.UNCHANGED)

    @property
    def restorable(self) -> int:
        return self.differing - sum(self.obstacles.values())


def past_rows(
    actor: Actor, namespaces: Collection[UUID], as_of: datetime, *, after: UUID = FIRST, limit: int
) -> list[PastRow]:
    """Return the next `limit` memories in reach of the actor by id, deleted or not. Use inside `acting`. One query."""
    with connection.cursor() as cursor:
        _execute(cursor, ROWS, actor, _parameters(actor, namespaces, as_of, after=after, limit=limit))
        return [
            PastRow(cube_id, present, past_id, number, PastChange(change), was_inside, was_held, obstacle)
            for cube_id, present, past_id, number, change, was_inside, was_held, obstacle in cursor.fetchall()
        ]


def past_summary(actor: Actor, namespaces: Collection[UUID], as_of: datetime) -> PastSummary:
    """Count what a restore would change, of memories in reach of the actor. Use inside `acting`. Two queries.

    Of purged memories nobody knows who might read them: the ids are told to who purged them, and to who reads all.
    """
    counts: dict[PastChange, int] = dict.fromkeys(PastChange, 0)
    obstacles: dict[str, int] = {}
    held: list[UUID] = []
    with connection.cursor() as cursor:
        _execute(cursor, COUNTS, actor, _parameters(actor, namespaces, as_of, limit=EVERY))
        for change, obstacle, count, ids in cursor.fetchall():
            counts[PastChange(change)] += count
            if obstacle:
                obstacles[obstacle] = obstacles.get(obstacle, 0) + count
                held += ids or []
    purged = AuditEntry.objects.filter(tenant_id=actor.tenant_id, verb=Verb.MEMORY_PURGED, at__gt=as_of)
    purged = purged if sees_private(actor) else purged.filter(member_id=actor.member_id)
    inside = purged.filter(
        id__gte=uuid7_floor(as_of), detail__namespace__in=[str(namespace_id) for namespace_id in namespaces]
    )
    purges = [
        Purge(cube_id, UUID(entry.detail["namespace"]), entry.at)
        for entry in inside.order_by("id")[:MOST_NAMED]
        for cube_id in entry.object_ids
    ]
    return PastSummary(counts, obstacles, tuple(held[:MOST_NAMED]), tuple(purges[:MOST_NAMED]))


def past_restore(
    *, actor: Actor, rows: Sequence[PastRow], as_of: datetime
) -> tuple[list[UUID], list[tuple[UUID, str]]]:
    """Restore memories to their past state; return the changed ids, and the skipped ids with the code of the reason.

    The caller prepares the texts of the versions with `read_version_texts`. Raises Forbidden; Unavailable.
    Writes: Cube …, CubeVersion …, Posting …, PiiFinding …, Review …, AuditEntry …, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    authorize(actor, Permission.MEMORY_DELETE)
    with acting(actor):
        differing = [row for row in rows if row.change is not PastChange.UNCHANGED]
        skipped = [(row.cube_id, row.obstacle) for row in differing if row.obstacle]
        free = [row for row in differing if not row.obstacle]
        restored, failed = _undelete(actor, [row for row in free if row.change is PastChange.DELETED])
        later = {row.cube_id for row in free if row.change in {PastChange.ADDED, PastChange.RESTORED}}
        older = {
            row.cube_id: row
            for row in free
            if row.change is PastChange.CHANGED or (row.cube_id in restored and row.number != row.present)
        }
        cubes = _lock_cubes(actor, {*later, *older})
        hidden, refused = _hide(actor, [cube for cube in cubes if cube.id in later])
        equal, others = _write_past_versions(actor, [cube for cube in cubes if cube.id in older], older, as_of)
        changed = dict.fromkeys([*restored, *hidden, *equal])
        return list(changed), [*skipped, *failed, *refused, *others]


def _parameters(
    actor: Actor, namespaces: Collection[UUID], as_of: datetime, *, after: UUID = FIRST, limit: int
) -> dict[str, Any]:
    return {
        "tenant": actor.tenant_id,
        "namespaces": list(namespaces),
        "as_of": as_of,
        "after": after,
        "limit": limit,
        "earliest": database_now() - timedelta(days=settings.DELETED_GRACE_DAYS),
    }


def _execute(cursor: CursorWrapper, statement: str, actor: Actor, parameters: Mapping[str, Any]) -> None:
    """Execute a statement on the memories in reach of the actor."""
    reach, values = name_parameters(Cube.objects.in_reach_of(actor).values("id"), "reach")
    cursor.execute(statement.replace("{reach}", reach), {**parameters, **values})


def _lock_cubes(actor: Actor, ids: Collection[UUID]) -> list[Cube]:
    """Lock the cubes in order of ids, to prevent deadlocks."""
    rows = Cube.objects.filter(tenant_id=actor.tenant_id, id__in=ids, deleted_at=None).order_by("id")
    return list(rows.select_for_update(of=("self",)).select_related("namespace", "persona"))


def _undelete(actor: Actor, rows: Sequence[PastRow]) -> tuple[set[UUID], list[tuple[UUID, str]]]:
    done: set[UUID] = set()
    failed: list[tuple[UUID, str]] = []
    for row in rows:
        try:
            with transaction.atomic():
                cube_restore(actor=actor, cube_id=row.cube_id)
            done.add(row.cube_id)
        except Unavailable:
            raise
        except DomainError as failure:
            failed.append((row.cube_id, failure.code))
    return done, failed


def _hide(actor: Actor, cubes: Sequence[Cube]) -> tuple[list[UUID], list[tuple[UUID, str]]]:
    allowed = [cube for cube in cubes if is_allowed(actor, Permission.MEMORY_DELETE, cube_target(cube))]
    if allowed:
        cubes_hide(actor=actor, cubes=allowed)
    ids = {cube.id for cube in allowed}
    return list(ids), [(cube.id, Forbidden.code) for cube in cubes if cube.id not in ids]


def _write_past_versions(
    actor: Actor, cubes: Sequence[Cube], rows: Mapping[UUID, PastRow], as_of: datetime
) -> tuple[list[UUID], list[tuple[UUID, str]]]:
    """Give each cube a new version equal to its past one; return the changed ids, and the skipped ids with codes."""
    if not cubes:
        return [], []
    open_versions = readable_versions(actor).filter(id__in=[rows[cube.id].past_id for cube in cubes])
    past = {version.cube_id: version for version in open_versions}
    present = {version.cube_id: version for version in present_versions(cubes)}
    places = Namespace.objects.in_bulk({version.namespace_id for version in past.values()})
    writable = {namespace.id for namespace in places.values() if _may_write(actor, namespace)}
    reason = f"Restored as of {as_of.isoformat(timespec='seconds')}"
    resolver = Resolver(actor, Permission.MEMORY_CREATE)
    resolver.findings = findings_by_version([version.id for version in present.values()])
    built: list[Succession] = []
    skipped: list[tuple[UUID, str]] = []
    for cube in cubes:
        then = past.get(cube.id)
        allowed = then is not None and then.namespace_id in writable
        if then is None or not (allowed and is_allowed(actor, Permission.MEMORY_UPDATE, cube_target(cube))):
            skipped.append((cube.id, Forbidden.code))
            continue
        try:
            version = _build_past_version(resolver, cube, present[cube.id], then, places[then.namespace_id], reason)
        except Unavailable:
            raise
        except DomainError as failure:
            skipped.append((cube.id, failure.code))
            continue
        if version is None:
            skipped.append((cube.id, "redacted"))
        else:
            built.append((version, present[cube.id]))
    if built:
        amounts_take(actor, built)
        versions_write(actor=actor, built=built)
    return [version.cube.id for version, _ in built], skipped


def _may_write(actor: Actor, namespace: Namespace) -> bool:
    return is_allowed(actor, Permission.MEMORY_CREATE, namespace_target(namespace))


def _build_past_version(
    resolver: Resolver, cube: Cube, before: CubeVersion, then: CubeVersion, namespace: Namespace, reason: str
) -> BuiltCube | None:
    """Build the new version; None if the words of the past version were redacted or erased."""
    words = words_open(tenant_id=cube.tenant_id, cube_id=cube.id, number=then.number, blob=then.sealed)
    if words == NO_WORDS:
        return None
    for name in CLEAR_FIELDS:
        setattr(cube, name, getattr(then, name))
    cube.namespace = namespace
    was = words_open(tenant_id=cube.tenant_id, cube_id=cube.id, number=before.number, blob=before.sealed)
    changes = CubeChanges(
        content=words.content if words.content != was.content else UNSET,
        title=words.title if words.title != was.title else UNSET,
        metadata=words.metadata if words.metadata != was.metadata else UNSET,
        tags=tuple(then.tags) if then.tags != before.tags else UNSET,
        speaker=words.speaker if words.speaker != was.speaker else UNSET,
    )
    actor = resolver.actor
    return build_version(actor=actor, cube=cube, before=before, changes=changes, reason=reason, resolver=resolver)
