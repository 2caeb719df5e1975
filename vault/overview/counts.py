"""Daily counts for the overview, made by a job: memories, searches, jobs, usage, and the verified part of the audit
log.

A count covers what every reader of a namespace sees; private memories are counted by member. A derived memory is
counted if all its sources are in the same namespace. Days before the first count show the memories that existed then
and still exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from governance.actor import Actor, system_actor
from governance.audit.checkpoints import checkpoints_outside
from governance.audit.verification import Verification, log_verify
from governance.audit.verifier import Unreadable
from governance.database import acting, database_now
from governance.ids import uuid7, uuid7_floor
from governance.models import AuditEntry, Member
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit, is_asked
from governance.policies.rules import QuotaTarget
from governance.replica import reading
from governance.tenants.selectors import tenant_ids
from governance.vocabulary import Channel, Measure, QuotaTargetKind, Topic, Verb
from vault.cubes.usage import usage_by_member, usage_count
from vault.models import DailyCount
from vault.providers.ports import BlobStoreUnavailable
from vault.vocabulary import AccessLevel, Counted, NamespaceKind, SourceKind, State, Tier

STORED_DAYS = 400
HISTORY_DAYS = 90  # before the first count
EXPIRY_DAYS = 14  # ahead
VERIFIED_AT_ONCE = 20_000  # seals of one run; each day begins anew with the first
VERIFIED, FAULT = "verified", "fault"
ANSWERED, EMPTY = "answered", "empty"
MEASURES = (Measure.MEMORIES, Measure.BYTES, Measure.MODEL_TOKENS)

INSERT = "INSERT INTO vault_dailycount (id, tenant_id, day, name, value, namespace_id, member_id, count) "
STANDING = f"""
standing AS MATERIALIZED (
  SELECT cube.namespace_id, cube.layer, cube.state, cube.semantic_type, cube.expires_at, cube.created_at,
    CASE WHEN cube.access_level = '{AccessLevel.PRIVATE}'
      AND NOT (place.kind = '{NamespaceKind.PRIVATE}' AND place.owner_id = cube.owner_id)
      THEN cube.owner_id END AS member_id
  FROM vault_cube AS cube JOIN vault_namespace AS place ON place.id = cube.namespace_id
  WHERE cube.tenant_id = %(tenant)s AND cube.deleted_at IS NULL
    AND (cube.expires_at IS NULL OR cube.expires_at > transaction_timestamp())
    AND NOT cube.is_quarantined AND NOT (cube.access_level = '{AccessLevel.PRIVATE}' AND cube.owner_id IS NULL)
    AND NOT (cube.has_sources AND EXISTS (
      SELECT 1 FROM vault_cubesource AS source LEFT JOIN vault_cube AS origin
        ON origin.id = source.source_id AND origin.deleted_at IS NULL AND NOT origin.is_quarantined
        AND origin.namespace_id = cube.namespace_id
        AND (origin.expires_at IS NULL OR origin.expires_at > transaction_timestamp())
        AND (origin.access_level <> '{AccessLevel.PRIVATE}' OR origin.owner_id = cube.owner_id)
      WHERE source.tenant_id = cube.tenant_id AND source.cube_id = cube.id AND source.kind <> '{SourceKind.QUOTE}'
        AND origin.id IS NULL))
)"""
SHOWN = f"('{State.GENERATED}', '{State.ACTIVATED}')"
VALUES = f"""
  CROSS JOIN LATERAL (VALUES
    ('{Counted.LAYER}', CASE WHEN state IN {SHOWN} THEN layer WHEN state = '{State.ARCHIVED}' THEN state END),
    ('{Counted.STATE}', state),
    ('{Counted.SEMANTIC_TYPE}', CASE WHEN state IN {SHOWN} THEN semantic_type END)
  ) AS counted (name, value)"""
MEMORIES = f"""
{INSERT} WITH {STANDING}
SELECT gen_random_uuid(), %(tenant)s, %(today)s, name, value, namespace_id, member_id, count(*)
FROM standing {VALUES} WHERE value IS NOT NULL GROUP BY name, value, namespace_id, member_id
UNION ALL
SELECT gen_random_uuid(), %(tenant)s, %(today)s, '{Counted.EXPIRY}', (expires_at AT TIME ZONE 'UTC')::date::text,
  namespace_id, member_id, count(*)
FROM standing WHERE state IN {SHOWN} AND expires_at < transaction_timestamp() + make_interval(days => {EXPIRY_DAYS})
GROUP BY (expires_at AT TIME ZONE 'UTC')::date, namespace_id, member_id
"""
HISTORY = f"""
{INSERT} WITH {STANDING}, births AS (
  SELECT greatest((created_at AT TIME ZONE 'UTC')::date, %(today)s::date - {HISTORY_DAYS}) AS day, name, value,
    namespace_id, member_id, count(*) AS count
  FROM standing {VALUES} WHERE value IS NOT NULL GROUP BY 1, 2, 3, 4, 5
)
SELECT gen_random_uuid(), %(tenant)s, days.day::date, name, value, namespace_id, member_id, sum(births.count)
FROM generate_series(%(today)s::date - {HISTORY_DAYS}, %(today)s::date - 1, interval '1 day') AS days (day)
JOIN births ON births.day <= days.day GROUP BY days.day, name, value, namespace_id, member_id
"""
SEARCHES = f"""
{INSERT}
SELECT gen_random_uuid(), %(tenant)s, (at AT TIME ZONE 'UTC')::date, '{Counted.SEARCH}',
  CASE WHEN cardinality(object_ids) > 0 THEN '{ANSWERED}' ELSE '{EMPTY}' END, NULL, member_id, count(*)
FROM governance_auditentry
WHERE tenant_id = %(tenant)s AND id >= %(floor)s AND (at AT TIME ZONE 'UTC')::date >= %(since)s
  AND verb = '{Verb.MEMORY_SEARCHED}' AND context->>'channel' <> '{Channel.WEB}'
GROUP BY 3, 5, member_id
"""
JOBS = f"""
{INSERT}
SELECT gen_random_uuid(), %(tenant)s, (created_at AT TIME ZONE 'UTC')::date, '{Counted.JOB}', status, NULL, member_id,
  count(*)
FROM governance_job
WHERE tenant_id = %(tenant)s AND id >= %(floor)s AND (created_at AT TIME ZONE 'UTC')::date >= %(since)s
GROUP BY 3, status, member_id
"""

# All memories with their versions; those in the trash take up storage too.
TIERS = f"""
SELECT CASE WHEN cube.state = '{State.ARCHIVED}' THEN '{Tier.ARCHIVE}' WHEN cube.is_cold THEN '{Tier.COLD}'
    ELSE '{Tier.HOT}' END AS tier,
  count(DISTINCT cube.id), coalesce(sum(vault_sealed_length(version.sealed)), 0)
FROM vault_cube AS cube JOIN vault_cubeversion AS version
  ON version.tenant_id = cube.tenant_id AND version.cube_id = cube.id
WHERE cube.tenant_id = %s GROUP BY tier
"""


@dataclass(frozen=True)
class Measured:
    """Counts of the tenant by name and value, and of its members by measure."""

    of_tenant: list[tuple[Counted, str, int]]
    of_members: dict[tuple[UUID, Measure], int]


def counts_ask() -> int:
    """Request the counts of every tenant with activity since its last counts; return the number of tenants."""
    asked = 0
    for tenant_id in tenant_ids():
        actor = system_actor(tenant_id=tenant_id, request_id=f"counts-{uuid7()}")
        with acting(actor):
            if _is_due(actor) and not is_asked(actor=actor, topic=Topic.COUNTS_DUE, seconds=0):
                emit(actor=actor, topic=Topic.COUNTS_DUE, payload={})
                asked += 1
    return asked


def counts_write(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Count the rows of the actor's tenant. Verifies the next part of the audit log outside any transaction.

    Writes: DailyCount … of today, of searches and jobs also of yesterday.
    """
    verified, measured = _verify_seals(actor), _measure(actor)

    def write() -> None:
        now = database_now()
        rows = DailyCount.objects.filter(tenant_id=actor.tenant_id)
        is_first = not rows.exists()
        today = now.date()
        since = today - timedelta(days=HISTORY_DAYS if is_first else 1)
        rows.filter(day=today).delete()
        rows.filter(name=Counted.USAGE).exclude(member=None).delete()  # no page looks at earlier ones
        rows.filter(day__gte=since, name__in=[Counted.SEARCH, Counted.JOB]).delete()
        rows.filter(day__lt=today - timedelta(days=STORED_DAYS)).delete()
        asked: dict[str, Any] = {
            "tenant": actor.tenant_id,
            "today": today,
            "since": since,
            "floor": uuid7_floor(now - timedelta(days=(today - since).days + 2)),
        }
        with connection.cursor() as cursor:
            for statement in [MEMORIES, *([HISTORY] if is_first else []), SEARCHES, JOBS]:
                cursor.execute(statement, asked)
        _measures_write(actor, verified, measured)

    return write


def _is_due(actor: Actor) -> bool:
    """Return whether to count: on a new day always, since the number of soon expiring memories changes with the day."""
    counted = DailyCount.objects.filter(tenant_id=actor.tenant_id, name=Counted.USAGE, day=database_now().date())
    last = counted.values_list("created_at", flat=True).first()
    newest = AuditEntry.objects.filter(tenant_id=actor.tenant_id).order_by("-id").values_list("at", flat=True).first()
    return last is None or (newest is not None and newest > last)


def _verify_seals(actor: Actor) -> dict[str, int]:
    """Verify seals from the first one; return the number of valid seals, and the first invalid one."""
    with acting(actor):
        day = database_now().date()
        rows = DailyCount.objects.filter(tenant_id=actor.tenant_id, name=Counted.AUDIT, day=day)
        before = dict(rows.values_list("value", "count"))
    if FAULT in before:
        return before
    try:
        found: Verification = log_verify(
            actor.tenant_id,
            checkpoints=checkpoints_outside(actor.tenant_id, newest_file=True),
            after=before.get(VERIFIED, 0),
            most=VERIFIED_AT_ONCE,
        )
    except Unreadable:
        return {VERIFIED: before.get(VERIFIED, 0), FAULT: 0}
    except BlobStoreUnavailable:  # the store of the checkpoints does not answer: verified at the next count
        return before
    fault = {FAULT: found.fault.seq or 0} if found.fault else {}
    return {VERIFIED: found.upto, **fault}


def _measure(actor: Actor) -> Measured:
    """Measure what takes a walk through all memories; on the replica if there is one."""
    with reading(actor):
        holder = QuotaTarget(QuotaTargetKind.TENANT, actor.tenant_id)
        counts = [(Counted.USAGE, str(measure), usage_count(holder, measure)) for measure in MEASURES]
        with connection.cursor() as cursor:
            cursor.execute(TIERS, [actor.tenant_id])
            for tier, memories, stored in cursor.fetchall():
                counts += [(Counted.TIER, tier, memories), (Counted.TIER_BYTES, tier, stored)]
        return Measured(counts, usage_by_member())


def _measures_write(actor: Actor, verified: dict[str, int], measured: Measured) -> None:
    counts = [*measured.of_tenant, *((Counted.AUDIT, value, count) for value, count in verified.items())]
    day = database_now().date()
    rows = [
        DailyCount(tenant_id=actor.tenant_id, day=day, name=name, value=value, count=count)
        for name, value, count in counts
    ]
    members = set(Member.objects.filter(tenant_id=actor.tenant_id).values_list("id", flat=True))
    rows += [
        DailyCount(
            tenant_id=actor.tenant_id, day=day, name=Counted.USAGE, value=measure, member_id=member_id, count=count
        )
        for (member_id, measure), count in measured.of_members.items()
        if member_id in members  # what the product stored itself is the tenant's alone
    ]
    DailyCount.objects.bulk_create(rows)
