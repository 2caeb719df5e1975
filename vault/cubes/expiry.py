"""Application of the current retention policies to stored memories.

Only columns of the memory's row change: there is no new version, and neither ETag nor `updated_at` changes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.audit.services import Detail, record
from governance.database import acting
from governance.policies.active import policies_active
from governance.policies.rules import Expiry, Lifetime, Retention, Rule, expiry_under, lifetime_of
from governance.vocabulary import Verb
from vault.cubes.holds import apply_query_holds
from vault.cubes.retention import facts_of
from vault.models import Cube
from vault.models.cube import CubeQuerySet

LOOKED_AT = 2_000  # cubes in one step
SET_EXPIRY = """
UPDATE vault_cube AS cube SET expires_at = sent.expires_at, expiry_policy = sent.policy, retention_class = sent.class
FROM unnest(%s::uuid[], %s::timestamptz[], %s::uuid[], %s::text[]) AS sent (id, expires_at, policy, class)
WHERE cube.tenant_id = %s AND cube.id = sent.id
"""


@dataclass(frozen=True)
class Step:
    """The result of a step. changed: memories with a new expiry. after: the last memory examined; None at the end."""

    changed: int
    after: UUID | None


@dataclass(frozen=True)
class NewExpiry:
    """The new expiry of a memory. lifetime: the rules that gave it; None if no rule concerns the memory."""

    cube_id: UUID
    expiry: Expiry
    lifetime: Lifetime | None

    @property
    def retention_class(self) -> str:
        return self.lifetime.retention_class if self.lifetime else ""


def retention_apply_step(*, actor: Actor, after: UUID, looked_at: int = LOOKED_AT) -> Step:
    """Set the expiry of up to `looked_at` memories with ids above `after`. A second run changes nothing.

    Raises KeyUnavailable. Writes: Cube.expires_at, HoldCube …, AuditEntry.
    """
    with acting(actor):
        rules = policies_active(actor).retention
        reached = list(_reached_cubes(actor).filter(id__gt=after)[:looked_at])
        wanted = [new.cube_id for new in _find_new_expiries(rules, reached)]
        locked = list(_reached_cubes(actor).filter(id__in=wanted).select_for_update(of=("self",)))
        changes = list(_find_new_expiries(rules, locked))
        if changes:
            _write_expiries(actor, changes)
    return Step(len(changes), reached[-1].id if len(reached) == looked_at else None)


def find_retention_changes(*, actor: Actor) -> list[UUID]:
    """Return the ids of the memories whose expiry a run would set now. Reads every memory that may expire."""
    with acting(actor):
        rules = policies_active(actor).retention
        return [new.cube_id for new in _find_new_expiries(rules, _reached_cubes(actor).iterator(chunk_size=LOOKED_AT))]


def _reached_cubes(actor: Actor) -> CubeQuerySet:
    """Select the memories that retention applies to: neither expired nor deleted nor held."""
    rows = Cube.objects.stored().free().filter(tenant_id=actor.tenant_id)
    return rows.select_related("namespace").order_by("id")


def _find_new_expiries(rules: Sequence[Rule[Retention]], cubes: Iterable[Cube]) -> Iterator[NewExpiry]:
    """Yield the new expiry of each of `cubes` whose expiry changes under these rules."""
    for cube in cubes:
        lifetime = lifetime_of(rules, facts_of(cube))
        present = Expiry(cube.expires_at, cube.expiry_policy)
        expiry = expiry_under(lifetime, born=cube.created_at, present=present)
        if expiry.at != present.at:
            yield NewExpiry(cube.id, expiry, lifetime)


def _write_expiries(actor: Actor, changes: Sequence[NewExpiry]) -> None:
    ids = [new.cube_id for new in changes]
    ends, policies = [new.expiry.at for new in changes], [new.expiry.policy_id for new in changes]
    with connection.cursor() as cursor:
        cursor.execute(SET_EXPIRY, [ids, ends, policies, [new.retention_class for new in changes], actor.tenant_id])
    apply_query_holds(actor, ids)
    rules = sorted({new.lifetime.rule if new.lifetime else "policy:none" for new in changes})
    detail: Detail = {"cubes": len(ids), "rules": ",".join(rules)}
    record(actor=actor, verb=Verb.RETENTION_APPLIED, object_type="memory", object_ids=ids, detail=detail)
