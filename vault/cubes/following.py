"""Memories follow the retention that holds now: their expiry changes in a version that names the policy.

Their words stay, so that tokens stay as they are and the vector only learns of the new number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import F

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.policies.active import policies_active
from governance.policies.rules import Expiry, Lifetime, Retention, Rule, expiry_under, lifetime_of
from governance.vocabulary import Verb
from vault.cubes.building import Built, build_version
from vault.cubes.drafts import CubeChanges
from vault.cubes.holding import come_under_queries
from vault.cubes.inserting import insert_rows
from vault.cubes.retention import facts_of
from vault.models import Cube, CubeVersion
from vault.models.cube import CubeQuerySet

LOOKED_AT = 2_000  # cubes in one step
CHANGED = 200  # of them, at most; the rest wait for the next step
MOVE = """
UPDATE vault_cube AS cube SET expires_at = sent.expires_at, expiry_policy = sent.policy, version = sent.version,
  retention_class = sent.class, updated_at = transaction_timestamp()
FROM unnest(%s::uuid[], %s::timestamptz[], %s::uuid[], %s::integer[], %s::text[])
  AS sent (id, expires_at, policy, version, class)
WHERE cube.id = sent.id
"""
MOVE_VECTORS = """
UPDATE vault_embedding AS embedding SET version = sent.version
FROM unnest(%s::uuid[], %s::integer[]) AS sent (id, version)
WHERE embedding.tenant_id = %s AND embedding.cube_id = sent.id AND embedding.version = sent.version - 1
"""


@dataclass(frozen=True)
class Step:
    """What one step did; `after`: the last cube that was looked at, None at the end."""

    changed: int
    after: UUID | None


@dataclass(frozen=True)
class Moved:
    """A cube whose expiry is not what the policies say."""

    cube: Cube
    expiry: Expiry
    lifetime: Lifetime | None


def followers(actor: Actor) -> CubeQuerySet:
    """The cubes that retention reaches: what has expired stays expired, what was deleted waits for its purge.

    What is held follows once it is released.
    """
    rows = Cube.objects.readable().free().filter(tenant_id=actor.tenant_id)
    return rows.select_related("namespace", "persona").order_by("id")


def moved_by(rules: Sequence[Rule[Retention]], cubes: Sequence[Cube]) -> Iterator[Moved]:
    """Those of the cubes whose expiry would be another one under these rules."""
    for cube in cubes:
        lifetime = lifetime_of(rules, facts_of(cube))
        present = Expiry(cube.expires_at, cube.expiry_policy)
        expiry = expiry_under(lifetime, born=cube.created_at, present=present)
        if expiry.at != present.at:
            yield Moved(cube, expiry, lifetime)


def cubes_follow(*, actor: Actor, after: UUID, looked_at: int = LOOKED_AT, most: int = CHANGED) -> Step:
    """One step over the cubes behind `after`: up to `looked_at` of them, of which `most` are changed.

    Safe to run twice: what has the right expiry already stays as it is.

    Raises KeyUnavailable. Writes: Cube …, CubeVersion …, Embedding …, AuditEntry.
    """
    with acting(actor):
        rules = policies_active(actor).retention
        seen = list(followers(actor).filter(id__gt=after)[:looked_at])
        wanted = [moved.cube.id for moved in moved_by(rules, seen)][:most]
        locked = list(followers(actor).filter(id__in=wanted).select_for_update(of=("self",)))
        moved = list(moved_by(rules, locked))
        if moved:
            _write(actor, moved)
    if len(wanted) == most:
        return Step(len(moved), wanted[-1])
    return Step(len(moved), seen[-1].id if len(seen) == looked_at else None)


def _write(actor: Actor, moved: Sequence[Moved]) -> None:
    built = _versions(actor, moved)
    ids, numbers = [one.cube.id for one in built], [one.cube.version for one in built]
    with connection.cursor() as cursor:
        cursor.execute(
            MOVE,
            [
                ids,
                [one.cube.expires_at for one in built],
                [one.cube.expiry_policy for one in built],
                numbers,
                [one.cube.retention_class for one in built],
            ],
        )
        insert_rows([one.version for one in built])  # after the cubes: from here on a hold may keep them
        cursor.execute(MOVE_VECTORS, [ids, numbers, actor.tenant_id])
    come_under_queries(actor, ids)
    detail = {"cubes": len(ids)}
    record(actor=actor, verb=Verb.RETENTION_APPLIED, object_type="memory", object_ids=ids, detail=detail)


def _versions(actor: Actor, moved: Sequence[Moved]) -> list[Built]:
    """`build_version` settles each expiry anew, by the rules that moved it."""
    newest = CubeVersion.objects.filter(cube_id__in=[one.cube.id for one in moved], number=F("cube__version"))
    before = {row.cube_id: row for row in newest}
    return [
        build_version(
            actor=actor,
            cube=one.cube,
            before=before[one.cube.id],
            changes=CubeChanges(),
            reason=one.lifetime.rule if one.lifetime else "policy:none",
        )
        for one in moved
    ]
