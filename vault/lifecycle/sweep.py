"""The sweep of a tenant marks expired memories, archives forgotten ones, and purges those past their grace period.

Readers never see expired or deleted memories, even before a sweep. Held memories are never changed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Q
from pydantic import Field, TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import DomainError, Unavailable
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.policies.active import ActivePolicies, policies_active
from governance.policies.rules import lifetime_of
from governance.vocabulary import Permission, Topic
from vault.cubes.retention import facts_of
from vault.cubes.services import cube_purge
from vault.cubes.writer.prepared_texts import provide_texts, read_stored_texts
from vault.lifecycle.attempts import ids_to_retry, plan_next_step
from vault.lifecycle.forgetting_policies import POLICIES, Forgetting, Use, reason_to_archive
from vault.lifecycle.steps import PlannedStep, steps_write
from vault.models import Cube, CubeUse, StateTransition
from vault.models.cube import CubeQuerySet
from vault.vocabulary import Layer, State

FIRST = UUID(int=0)
MOST_CHANGED = 2_000  # memories that one step changes
MOST_PREVIEWED = 10_000  # memories that a preview looks at
MOST_NAMED = 100  # ids in a preview or a result
FORGETTABLE = (State.GENERATED, State.ACTIVATED)
ROUNDING = 1e-9  # the database and Python may round a score differently
# Memories that are expired, past their grace period, or forgotten by their counted uses. `_make_plans` checks again.
DUE = """
SELECT cube.id, is_forgotten FROM vault_cube AS cube
  LEFT JOIN vault_cubeuse AS used ON used.tenant_id = cube.tenant_id AND used.cube_id = cube.id
  CROSS JOIN LATERAL (SELECT
    %(archive)s AND cube.deleted_at IS NULL AND cube.state = ANY(%(states)s) AND cube.layer = %(layer)s
    AND cube.created_at < transaction_timestamp() - make_interval(days => %(youngest)s)
    AND (SELECT {score} FROM (SELECT
      extract(epoch FROM transaction_timestamp() - greatest(cube.created_at, cube.updated_at, used.last_accessed_at)
        )::float8 AS idle,
      coalesce(used.access_count, 0)::float8 AS uses, cube.importance AS importance, cube.priority AS priority
    ) AS use) < %(limit)s AS is_forgotten
  ) AS judged
WHERE cube.tenant_id = %(tenant)s AND cube.id > %(after)s AND (
  (cube.deleted_at IS NULL AND cube.state <> 'expired' AND cube.expires_at <= transaction_timestamp())
  OR (%(purge)s AND cube.deleted_at < transaction_timestamp())
  OR (%(purge)s AND cube.state = 'expired'
    AND cube.expires_at < transaction_timestamp() - make_interval(days => %(grace)s))
  OR is_forgotten
)
ORDER BY cube.id LIMIT %(most)s
"""


@dataclass(frozen=True)
class SweepSettings:
    """Settings of a sweep. forgetting: the policy that archives; limit: archive below this score, null: the policy's
    own.

    youngest_days: younger memories are never archived. archive, purge: false skips that action.
    """

    forgetting: Forgetting = Forgetting.KEEP
    limit: Annotated[float, Field(ge=0, le=1_000)] | None = None
    youngest_days: Annotated[int, Field(ge=0, le=3_650)] = 30
    archive: bool = True
    purge: bool = True


class Deed(StrEnum):
    EXPIRED = "expired"
    ARCHIVED = "archived"
    PURGED = "purged"


@dataclass(frozen=True)
class Plan:
    """The planned action for one memory, with its reason."""

    cube: Cube
    deed: Deed
    reason: str = ""


SETTINGS = TypeAdapter(SweepSettings)


def sweep_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the memories that a run would change now, among the first MOST_PREVIEWED candidates. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    settings = SETTINGS.validate_python(dict(chosen))
    with acting(actor):
        due = _find_due(actor, settings, FIRST, MOST_PREVIEWED)
        plans = _make_plans(actor, settings, [cube_id for cube_id, _ in due])
    counts = Counter(str(plan.deed) for plan in plans)
    return Preview(len(plans), tuple(plan.cube.id for plan in plans[:MOST_NAMED]), counts)


@handler(Topic.LIFECYCLE_SWEEP, settings=SweepSettings, preview=sweep_preview, default_cron="0 3 * * *")
def lifecycle_sweep(run: JobRun) -> Callable[[], Step]:
    """Change the next MOST_CHANGED due memories, as the system actor. done: memories that were due.

    Failed memories are retried after all others, and reported after the last attempt (vault/lifecycle/attempts.py).
    Repeated or concurrent runs take each step once.
    Writes: Cube …, StateTransition …, Posting …, AuditEntry ….
    """
    chosen = SETTINGS.validate_python(dict(run.settings))
    again = ids_to_retry(run.state)
    with acting(run.system):
        if again is None:
            due = _find_due(run.system, chosen, UUID(run.state.get("after", str(FIRST))), MOST_CHANGED)
        else:
            due = [(cube_id, True) for cube_id in again]
        total = _count_due(run.system, chosen) if run.total is None and len(due) == MOST_CHANGED else len(due)
    texts = read_stored_texts(actor=run.system, cube_ids=[cube_id for cube_id, is_forgotten in due if is_forgotten])

    def write() -> Step:
        ids = [cube_id for cube_id, _ in due]
        with provide_texts(texts), acting(run.system):
            plans = _make_plans(run.system, chosen, ids, lock=True)
            failed = _apply_plans(run, plans)
        return _compose_step(run, plans, failed, ids, total)

    return write


def _compose_step(
    run: JobRun, plans: Sequence[Plan], failed: Mapping[UUID, str], ids: Sequence[UUID], total: int
) -> Step:
    """Return the progress with counts by action. codes, skipped: memories that failed in their last attempt."""
    is_again = ids_to_retry(run.state) is not None
    done = Counter(plan.deed for plan in plans if plan.cube.id not in failed)
    counts = {str(deed): run.result.get(deed, 0) + done[deed] for deed in Deed}
    before = {} if is_again else run.result
    named = [{"id": str(cube_id), "code": code} for cube_id, code in failed.items()]
    result = {
        **counts,
        "changed": sum(counts.values()),
        "codes": dict(Counter(before.get("codes", {})) + Counter(failed.values())),
        "skipped": [*before.get("skipped", ()), *named][:MOST_NAMED],
    }
    after = ids[-1] if len(ids) == MOST_CHANGED else None
    state, parked = plan_next_step(run.state, after, failed)
    looked_at = run.done + (0 if is_again else len(ids))
    return Step(state=state, done=looked_at, total=max(run.total or total, looked_at), result=result, parked=parked)


def _apply_plans(run: JobRun, plans: Sequence[Plan]) -> dict[UUID, str]:
    """Apply all plans in one transaction; if one fails, each in its own. Returns memory id → error code."""
    try:
        with transaction.atomic():
            _write_plans(run, plans)
            return {}
    except Unavailable:
        raise
    except DomainError:
        return {plan.cube.id: code for plan in plans if (code := _apply_plan(run, plan))}


def _apply_plan(run: JobRun, plan: Plan) -> str:
    """Apply one plan, and return the error code, empty after success."""
    state = Cube.objects.filter(id=plan.cube.id).values_list("state", flat=True).first()
    if state is None:  # purged with the memory that it came from
        return ""
    plan.cube.state = state
    try:
        with transaction.atomic():
            _write_plans(run, [plan])
    except Unavailable:
        raise
    except DomainError as failure:
        return failure.code
    return ""


def _write_plans(run: JobRun, plans: Sequence[Plan]) -> None:
    states = {Deed.EXPIRED: State.EXPIRED, Deed.ARCHIVED: State.ARCHIVED}
    steps = [PlannedStep(plan.cube, states[plan.deed], plan.reason) for plan in plans if plan.deed in states]
    steps_write(run.system, steps, run.job_id)
    for plan in plans:
        # A memory may have been purged with the memory that it came from.
        if plan.deed is Deed.PURGED and Cube.objects.filter(id=plan.cube.id).exists():
            cube_purge(actor=run.system, cube_id=plan.cube.id)


def _find_due(actor: Actor, chosen: SweepSettings, after: UUID, most: int) -> list[tuple[UUID, bool]]:
    """Return the next memories that may be due: (id, True if forgotten). One query.

    The database scores all memories; `_make_plans` checks these few again, with their last transitions and policies.
    """
    policy = POLICIES[chosen.forgetting]
    with connection.cursor() as cursor:
        cursor.execute(DUE.format(score=policy.sql), _query_values(actor, chosen, after) | {"most": most})
        return [(cube_id, bool(is_forgotten)) for cube_id, is_forgotten in cursor.fetchall()]


def _count_due(actor: Actor, chosen: SweepSettings) -> int:
    with connection.cursor() as cursor:
        counting = f"SELECT count(*) FROM ({DUE.format(score=POLICIES[chosen.forgetting].sql)}) AS due"
        cursor.execute(counting, _query_values(actor, chosen, FIRST) | {"most": None})
        count: int = cursor.fetchone()[0]
    return count


def _query_values(actor: Actor, chosen: SweepSettings, after: UUID) -> dict[str, Any]:
    limit = POLICIES[chosen.forgetting].limit if chosen.limit is None else chosen.limit
    return {
        "tenant": actor.tenant_id,
        "after": after,
        "purge": chosen.purge,
        "grace": settings.DELETED_GRACE_DAYS,
        "archive": chosen.archive,
        "states": [str(state) for state in FORGETTABLE],
        "layer": Layer.LONG_TERM,
        "youngest": chosen.youngest_days,
        "limit": limit + ROUNDING,
    }


def _make_plans(actor: Actor, chosen: SweepSettings, ids: Sequence[UUID], *, lock: bool = False) -> list[Plan]:
    """Return the plans for those of these memories that are due now and not held."""
    rows = _select_candidates(actor, chosen).filter(id__in=ids).select_related("namespace").order_by("id")
    cubes = list(rows.select_for_update(of=("self",)) if lock else rows)
    uses = _load_uses([cube.id for cube in cubes])
    now, policies = database_now(), policies_active(actor)
    plans = [plan for cube in cubes if (plan := _make_plan(cube, chosen, policies, uses, now))]
    free = _find_free_ids([plan.cube.id for plan in plans])  # after planning, since holds are looked up per memory
    return [plan for plan in plans if plan.cube.id in free]


def _select_candidates(actor: Actor, chosen: SweepSettings) -> CubeQuerySet:
    """Return the memories that a sweep may change, before their use and holds are checked."""
    now = database_now()
    due = Q(deleted_at=None, expires_at__lte=now) & ~Q(state=State.EXPIRED)
    if chosen.archive:
        youngest = now - timedelta(days=chosen.youngest_days)
        due |= Q(deleted_at=None, state__in=FORGETTABLE, layer=Layer.LONG_TERM, created_at__lt=youngest)
    if chosen.purge:
        due |= Q(deleted_at__lt=now) | Q(state=State.EXPIRED)
    return Cube.objects.filter(due, tenant_id=actor.tenant_id)


def _find_free_ids(cube_ids: Sequence[UUID]) -> set[UUID]:
    """Return the ids of those memories that no hold covers."""
    return set(Cube.objects.free().filter(id__in=cube_ids).values_list("id", flat=True))


def _make_plan(
    cube: Cube, chosen: SweepSettings, policies: ActivePolicies, uses: Mapping[UUID, "Used"], now: datetime
) -> Plan | None:
    if cube.deleted_at is not None or cube.state == State.EXPIRED:
        over = _grace_end(cube, policies)
        return Plan(cube, Deed.PURGED) if chosen.purge and over is not None and over < now else None
    deed = _choose_action(cube, chosen, uses, now)
    return Plan(cube, *deed) if deed else None


def _choose_action(
    cube: Cube, chosen: SweepSettings, uses: Mapping[UUID, "Used"], now: datetime
) -> tuple[Deed, str] | None:
    """Return the due action for a memory and its reason, or None. The memory is neither deleted nor expired."""
    if cube.expires_at is not None and cube.expires_at <= now:
        return Deed.EXPIRED, f"Expired because its time ended on {cube.expires_at:%Y-%m-%d}."
    if cube.state not in FORGETTABLE:
        return None
    used = uses.get(cube.id, Used())
    times = [time for time in (cube.created_at, cube.updated_at, used.at, used.stepped_at) if time is not None]
    use = Use(now - max(times), used.recalls, cube.importance, cube.priority)
    reason = reason_to_archive(chosen.forgetting, use, chosen.limit)
    return (Deed.ARCHIVED, reason) if reason else None


def _grace_end(cube: Cube, policies: ActivePolicies) -> datetime | None:
    """Return the end of the grace period of a deleted or expired memory; a policy may shorten it for deleted ones."""
    begins = cube.deleted_at or cube.expires_at
    if begins is None:
        return None
    lifetime = lifetime_of(policies.retention, facts_of(cube)) if cube.deleted_at else None
    grace = lifetime.grace if lifetime else None
    longest = timedelta(days=settings.DELETED_GRACE_DAYS)
    return begins + (longest if grace is None else min(grace, longest))


@dataclass(frozen=True)
class Used:
    """The last uses of a memory. at: last reading; stepped_at: last state transition, such as a recall."""

    at: datetime | None = None
    recalls: int = 0
    stepped_at: datetime | None = None


def _load_uses(cube_ids: Sequence[UUID]) -> dict[UUID, Used]:
    """Load the last uses of memories in two queries."""
    read = {
        cube_id: (at, count)
        for cube_id, at, count in CubeUse.objects.filter(cube_id__in=cube_ids).values_list(
            "cube_id", "last_accessed_at", "access_count"
        )
    }
    steps = StateTransition.objects.filter(cube_id__in=cube_ids).order_by().values("cube_id")
    stepped = dict(steps.annotate(at=Max("created_at")).values_list("cube_id", "at"))
    return {cube_id: Used(*read.get(cube_id, (None, 0)), stepped.get(cube_id)) for cube_id in {*read, *stepped}}
