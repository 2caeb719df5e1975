"""One job engine: leases, fair claims, and the table of jobs, which takes in the exports of the audit log."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
from governance.tenancy_sql import router_access, router_function, tenant_table

STATUSES = ("pending", "running", "cancelling", "cancelled", "succeeded", "failed")

# One claim at a time; pairs of topic and tenant are found by hops over the index, however many events wait.
CLAIM = """
  SELECT pg_advisory_xact_lock(hashtextextended('governance_outbox_claim', 0));
  WITH RECURSIVE pairs (topic, batch, tenant_id) AS (
    SELECT wanted.topic, wanted.batch, (
      SELECT event.tenant_id FROM public.governance_outboxevent AS event
      WHERE event.topic = wanted.topic AND event.done_at IS NULL AND event.parked_at IS NULL
      ORDER BY event.tenant_id LIMIT 1)
    FROM unnest(topics, batches) AS wanted (topic, batch)
    UNION ALL
    SELECT pairs.topic, pairs.batch, (
      SELECT event.tenant_id FROM public.governance_outboxevent AS event
      WHERE event.topic = pairs.topic AND event.tenant_id > pairs.tenant_id
        AND event.done_at IS NULL AND event.parked_at IS NULL
      ORDER BY event.tenant_id LIMIT 1)
    FROM pairs WHERE pairs.tenant_id IS NOT NULL
  ), running AS (
    SELECT event.tenant_id, count(DISTINCT event.lease) AS tasks
    FROM public.governance_outboxevent AS event
    WHERE event.lease IS NOT NULL AND event.topic = ANY (topics) AND event.available_at > clock_timestamp()
    GROUP BY event.tenant_id
  ), due AS (
    SELECT pairs.topic, pairs.batch, pairs.tenant_id, coalesce(running.tasks, 0) AS tasks
    FROM pairs LEFT JOIN running USING (tenant_id) CROSS JOIN LATERAL (
      SELECT event.available_at FROM public.governance_outboxevent AS event
      WHERE event.topic = pairs.topic AND event.tenant_id = pairs.tenant_id
        AND event.done_at IS NULL AND event.parked_at IS NULL AND event.available_at <= clock_timestamp()
      ORDER BY event.available_at LIMIT 1) AS oldest
    WHERE coalesce(running.tasks, 0) < tenant_slots
    ORDER BY tasks, random() LIMIT slots  -- by age, who has a long backlog would come first each time
  ), events AS (
    SELECT due.topic, due.tenant_id, due.tasks, event.id, event.available_at,
      CASE WHEN event.attempts > 0 OR due.batch = 1
        THEN row_number() OVER (PARTITION BY due.topic, due.tenant_id ORDER BY event.available_at, event.id)
        ELSE 0 END AS place
    FROM due CROSS JOIN LATERAL (
      SELECT one.id, one.available_at, one.attempts FROM public.governance_outboxevent AS one
      WHERE one.topic = due.topic AND one.tenant_id = due.tenant_id
        AND one.done_at IS NULL AND one.parked_at IS NULL AND one.available_at <= clock_timestamp()
      ORDER BY one.available_at LIMIT greatest(due.batch, tenant_slots)) AS event
  ), tasks AS (
    SELECT events.topic, events.tenant_id, events.place, min(events.available_at) AS since,
      events.tasks + row_number() OVER (PARTITION BY events.tenant_id ORDER BY min(events.available_at)) AS turn,
      gen_random_uuid() AS lease
    FROM events GROUP BY events.topic, events.tenant_id, events.tasks, events.place
  ), chosen AS MATERIALIZED (
    SELECT tasks.* FROM tasks WHERE tasks.turn <= tenant_slots ORDER BY tasks.turn, random()
    LIMIT greatest(slots - (SELECT coalesce(sum(running.tasks), 0) FROM running), 0)
  ), free AS MATERIALIZED (
    SELECT event.id, chosen.lease FROM chosen
      JOIN events USING (topic, tenant_id, place) JOIN public.governance_outboxevent AS event ON event.id = events.id
    WHERE event.done_at IS NULL AND event.parked_at IS NULL AND event.available_at <= clock_timestamp()
    FOR UPDATE OF event SKIP LOCKED
  )
  UPDATE public.governance_outboxevent AS event
  SET lease = free.lease, available_at = clock_timestamp() + least(lasting, interval '10 minutes')
  FROM free WHERE event.id = free.id
  RETURNING event.lease, event.id, event.tenant_id, event.topic::text, event.attempts
"""
PARK_UNROUTED = """
  WITH RECURSIVE waiting (topic) AS (
    (SELECT event.topic FROM public.governance_outboxevent AS event
     WHERE event.done_at IS NULL AND event.parked_at IS NULL ORDER BY event.topic LIMIT 1)
    UNION ALL
    SELECT (SELECT event.topic FROM public.governance_outboxevent AS event
      WHERE event.topic > waiting.topic AND event.done_at IS NULL AND event.parked_at IS NULL
      ORDER BY event.topic LIMIT 1)
    FROM waiting WHERE waiting.topic IS NOT NULL
  ), parked AS (
    UPDATE public.governance_outboxevent AS event
    SET parked_at = clock_timestamp(), lease = NULL,
      last_error = 'NoHandler: This release has no handler for the topic ' || event.topic || '.'
    WHERE event.topic IN (SELECT waiting.topic FROM waiting WHERE waiting.topic <> ALL (topics))
      AND event.done_at IS NULL AND event.parked_at IS NULL
    RETURNING 1
  )
  SELECT count(*) FROM parked
"""
TIDY = """
  WITH blanked AS (
    UPDATE public.governance_job SET sealed_request = ''::bytea, kept_until = NULL
    WHERE kept_until < clock_timestamp() RETURNING 1
  )
  SELECT count(*) FROM blanked
"""
UNBOUND = ("governance_outboxevent", "governance_job", "governance_auditexport")
# Exports become jobs with the same id; so do their events, and the steps of a move to another embedding model.
MOVE = [
    *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in UNBOUND),
    """
    INSERT INTO governance_job (id, tenant_id, created_at, kind, status, done, total, attempts, dead_letter, member_id,
      principal_kind, principal_id, context, settings, state, sealed_request, error, finished_at)
    SELECT id, tenant_id, created_at, 'audit.export', status, round(progress * 100), 100, 0, false, member_id,
      principal_kind, principal_id, context,
      jsonb_build_object('format', format, 'filters', filters, 'rows', rows, 'size', size), '{}', '',
      CASE WHEN error <> '' THEN jsonb_build_object('code', 'unavailable', 'detail', error) END, finished_at
    FROM governance_auditexport
    """,
    """
    UPDATE governance_outboxevent
    SET id = (payload->>'export')::uuid, topic = 'audit.export', payload = jsonb_build_object('job', payload->'export')
    WHERE topic = 'audit.export_requested' AND done_at IS NULL
    """,
    """
    INSERT INTO governance_job (id, tenant_id, kind, status, done, attempts, dead_letter, principal_kind, principal_id,
      context, settings, state, sealed_request)
    SELECT id, tenant_id, 'cubes.reembed', 'pending', 0, 0, false, 'system', '00000000-0000-0000-0000-000000000000',
      '{}', jsonb_build_object('model', payload->'model'), payload - 'model', ''
    FROM governance_outboxevent WHERE topic = 'cubes.reembed' AND done_at IS NULL
    """,
    """
    UPDATE governance_outboxevent SET payload = jsonb_build_object('job', id::text)
    WHERE topic = 'cubes.reembed' AND done_at IS NULL
    """,
    "SET CONSTRAINTS ALL IMMEDIATE",
    *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in UNBOUND),
]


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0009_proved_addresses"),
    ]

    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("kind", models.CharField(max_length=40)),
                ("status", models.CharField(choices=[(one, one) for one in STATUSES], max_length=10)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("dead_letter", models.BooleanField(default=False)),
                ("principal_kind", models.CharField(max_length=10)),
                ("principal_id", models.UUIDField()),
                ("context", models.JSONField(default=dict)),
                ("settings", models.JSONField(default=dict)),
                ("state", models.JSONField(default=dict)),
                ("sealed_request", models.BinaryField(default=b"")),
                ("sealed_result", models.BinaryField(null=True)),
                ("error", models.JSONField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("undo_until", models.DateTimeField(null=True)),
                ("kept_until", models.DateTimeField(null=True)),
            ],
        ),
        migrations.RemoveIndex(
            model_name="outboxevent",
            name="outbox_due",
        ),
        migrations.AddField(
            model_name="outboxevent",
            name="lease",
            field=models.UUIDField(null=True),
        ),
        migrations.AddIndex(
            model_name="outboxevent",
            index=models.Index(
                condition=models.Q(("done_at__isnull", True), ("parked_at__isnull", True)),
                fields=["topic", "tenant", "available_at"],
                name="outbox_open",
            ),
        ),
        migrations.AddIndex(
            model_name="outboxevent",
            index=models.Index(condition=models.Q(("lease__isnull", False)), fields=["lease"], name="outbox_leased"),
        ),
        migrations.AddField(
            model_name="job",
            name="member",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="governance.member",
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="tenant",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name="+", to="governance.tenant"
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["tenant", "-id"], name="governance_job_newest_first"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("status__in", ["pending", "running", "cancelling"])),
                fields=["tenant", "kind"],
                name="governance_job_open",
            ),
        ),
        tenant_table("governance_job", references=[("member_id", "governance_member")]),
        RunSQL([*MOVE], RunSQL.noop),
        migrations.DeleteModel(name="AuditExport"),
        RunSQL("DROP FUNCTION governance_outbox_claim(integer, interval)", RunSQL.noop),
        RunSQL(
            [
                "GRANT SELECT (lease) ON governance_outboxevent TO memos_router",
                "GRANT UPDATE (lease, last_error) ON governance_outboxevent TO memos_router",
            ],
            RunSQL.noop,
        ),
        router_function(
            "governance_outbox_claim("
            "topics text[], batches integer[], slots integer, tenant_slots integer, lasting interval)",
            "TABLE (lease uuid, id uuid, tenant_id uuid, topic text, attempts integer)",
            CLAIM,
            volatility="VOLATILE",
        ),
        router_function(
            "governance_outbox_park_unrouted(topics text[])", "bigint", PARK_UNROUTED, volatility="VOLATILE"
        ),
        router_access("governance_job", columns="kept_until"),
        router_access("governance_job", columns="sealed_request, kept_until", right="UPDATE"),
        router_function("governance_jobs_tidy()", "bigint", TIDY, volatility="VOLATILE"),
    ]
