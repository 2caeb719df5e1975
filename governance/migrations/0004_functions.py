"""Functions and triggers of governance: what stays as it is written, and what is looked up across tenants."""

from django.db import migrations

from governance.tenancy_sql import append_only, router_function, run

# Rows that stay as they are leave with their tenant alone, by the function that deletes it; the audit log never does.
REFUSE_CHANGE = """
CREATE FUNCTION governance_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_user = 'memos_owner'
      AND TG_TABLE_NAME IN ('governance_policyversion', 'vault_hold', 'vault_holdcube', 'vault_holdreleaseapproval')
  THEN
    IF EXISTS (SELECT 1 FROM public.governance_tenant AS tenant
        WHERE tenant.id = OLD.tenant_id AND tenant.erasing_since IS NOT NULL) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$
"""
# With the rights of its caller: row-level security shows it the tenant that it has just set, and no other.
ENTER = """
CREATE FUNCTION governance_enter(wanted uuid) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', wanted::text, true);
  RETURN coalesce((SELECT policy_epoch FROM public.governance_tenant WHERE id = wanted), 0);
END $$
"""
ENQUEUE = """
CREATE FUNCTION governance_audit_enqueue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.governance_auditunsealed (id, tenant_id) VALUES (NEW.id, NEW.tenant_id);
  RETURN NULL;
END $$
"""
QUEUED = """
CREATE TRIGGER governance_auditentry_is_queued AFTER INSERT ON governance_auditentry
FOR EACH ROW EXECUTE FUNCTION governance_audit_enqueue()
"""
ANNOUNCE = """
CREATE FUNCTION governance_webhooks_announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  hook uuid;
  delivery uuid;
BEGIN
  FOR hook IN SELECT one.id FROM public.governance_webhook AS one
    WHERE one.tenant_id = NEW.tenant_id AND one.removed_at IS NULL AND one.enabled AND NEW.verb = ANY (one.events)
  LOOP
    delivery := uuidv7();
    INSERT INTO public.governance_webhookdelivery
      (id, tenant_id, webhook_id, entry_id, event, object_type, object_ids, version, at)
      VALUES (delivery, NEW.tenant_id, hook, NEW.id, NEW.verb, NEW.object_type, NEW.object_ids, NEW.version, NEW.at);
    INSERT INTO public.governance_outboxevent (id, tenant_id, topic, payload, request_id)
      VALUES (uuidv7(), NEW.tenant_id, 'webhook.deliver', jsonb_build_object('delivery', delivery), NEW.request_id);
    PERFORM pg_notify('memos_outbox', '');
  END LOOP;
  RETURN NULL;
END $$
"""
ANNOUNCED = """
CREATE TRIGGER governance_auditentry_is_announced AFTER INSERT ON governance_auditentry
FOR EACH ROW WHEN (NEW.outcome = 'done') EXECUTE FUNCTION governance_webhooks_announce()
"""
MEMBERSHIPS = """
  SELECT member.id, member.tenant_id FROM public.governance_member AS member
  WHERE member.user_id = wanted AND member.removed_at IS NULL ORDER BY member.id
"""
CHECKPOINTS_DUE = """
  SELECT tenant.id FROM public.governance_tenant AS tenant
    CROSS JOIN LATERAL (
      SELECT seal.seq FROM public.governance_auditseal AS seal
      WHERE seal.tenant_id = tenant.id ORDER BY seal.seq DESC LIMIT 1) AS sealed
    LEFT JOIN LATERAL (
      SELECT one.seq, one.created_at FROM public.governance_auditcheckpoint AS one
      WHERE one.tenant_id = tenant.id ORDER BY one.seq DESC LIMIT 1) AS signed ON true
  WHERE sealed.seq > coalesce(signed.seq, 0) AND (signed.seq IS NULL OR sealed.seq - signed.seq >= seals
    OR signed.created_at <= clock_timestamp() - every)
"""
SINKS_DUE = """
  SELECT sink.id, sink.tenant_id FROM public.governance_auditsink AS sink
  WHERE sink.removed_at IS NULL AND sink.next_at <= clock_timestamp() AND sink.delivered_seq < (
    SELECT max(seal.seq) FROM public.governance_auditseal AS seal WHERE seal.tenant_id = sink.tenant_id)
  ORDER BY sink.next_at LIMIT least(most, 1000)
"""
SCHEDULES_DUE = """
  SELECT due.id, due.tenant_id FROM (
    SELECT schedule.id, schedule.tenant_id, schedule.next_run_at,
      row_number() OVER (PARTITION BY schedule.tenant_id ORDER BY schedule.next_run_at) AS turn
    FROM public.governance_schedule AS schedule
    WHERE schedule.enabled AND schedule.next_run_at <= clock_timestamp()
  ) AS due
  ORDER BY due.turn, due.next_run_at LIMIT least(most, 1000)
"""
AUDIT_HEALTH = """
  SELECT
    coalesce((SELECT extract(epoch FROM clock_timestamp() - queued.created_at)
      FROM public.governance_auditunsealed AS queued ORDER BY queued.id LIMIT 1), 0)::float8,
    coalesce((SELECT max(extract(epoch FROM clock_timestamp() - waiting.created_at))
      FROM public.governance_tenant AS tenant
        LEFT JOIN LATERAL (
          SELECT one.seq FROM public.governance_auditcheckpoint AS one
          WHERE one.tenant_id = tenant.id ORDER BY one.seq DESC LIMIT 1) AS signed ON true
        JOIN LATERAL (
          SELECT seal.created_at FROM public.governance_auditseal AS seal
          WHERE seal.tenant_id = tenant.id AND seal.seq = coalesce(signed.seq, 0) + 1) AS waiting ON true), 0)::float8
"""
# What is planned for later (created_at is then the time that it is planned for) is not due.
OUTBOX_HEALTH = """
  SELECT count(*) FILTER (WHERE parked_at IS NULL),
         coalesce(extract(epoch FROM clock_timestamp() - min(created_at) FILTER (WHERE parked_at IS NULL)),
                  0)::double precision,
         count(*) FILTER (WHERE parked_at IS NOT NULL)
  FROM public.governance_outboxevent WHERE done_at IS NULL AND created_at <= clock_timestamp()
"""
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
    -- By age, who has a long backlog would come first each time. One topic of each tenant comes before a second one.
    ORDER BY tasks, row_number() OVER (PARTITION BY pairs.tenant_id ORDER BY random()), random() LIMIT slots
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
TIDY_EVENTS = """
  WITH events AS (
    DELETE FROM public.governance_outboxevent
    WHERE done_at < clock_timestamp() - greatest(kept, interval '1 day') RETURNING 1
  ), keys AS (
    DELETE FROM public.governance_idempotencykey
    WHERE created_at < clock_timestamp() - greatest(keys_kept, interval '1 hour') RETURNING 1
  )
  SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM keys)
"""
TIDY_JOBS = """
  WITH blanked AS (
    UPDATE public.governance_job SET sealed_request = ''::bytea, kept_until = NULL
    WHERE kept_until < clock_timestamp() RETURNING 1
  )
  SELECT count(*) FROM blanked
"""
TIDY_ACCOUNTS = """
  WITH sessions AS (
    DELETE FROM public.governance_browsersession WHERE expires_at < clock_timestamp() - interval '30 days' RETURNING 1
  ), resets AS (
    DELETE FROM public.governance_passwordreset WHERE expires_at < clock_timestamp() - interval '30 days' RETURNING 1
  )
  SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM resets)
"""
LOOK_UPS = [
    router_function(
        "governance_tenant_by_slug(wanted text)",
        "uuid",
        "SELECT id FROM public.governance_tenant WHERE slug = wanted",
    ),
    router_function(
        "governance_user_by_email(wanted text)",
        "uuid",
        "SELECT id FROM public.governance_user WHERE lower(email) = lower(wanted)",
    ),
    router_function(
        "governance_key_by_prefix(wanted text)",
        "TABLE (id uuid, tenant_id uuid)",
        "SELECT key.id, key.tenant_id FROM public.governance_apikey AS key WHERE key.prefix = wanted",
    ),
    router_function(
        "governance_key_by_hash(wanted bytea)",
        "TABLE (tenant_id uuid)",
        "SELECT key.tenant_id FROM public.governance_apikey AS key "
        "WHERE key.secret_hash = wanted OR key.previous_hash = wanted",
    ),
    router_function(
        "governance_link_by_hash(wanted bytea)",
        "TABLE (id uuid, tenant_id uuid)",
        "SELECT link.id, link.tenant_id FROM public.governance_signinlink AS link WHERE link.token_hash = wanted",
    ),
    router_function(
        "governance_invitation_by_hash(wanted bytea)",
        "TABLE (id uuid, tenant_id uuid)",
        "SELECT invitation.id, invitation.tenant_id FROM public.governance_invitation AS invitation "
        "WHERE invitation.token_hash = wanted OR invitation.mailed_token_hash = wanted",
    ),
    router_function(
        "governance_reset_by_hash(wanted bytea)",
        "TABLE (id uuid, user_id uuid)",
        "SELECT reset.id, reset.user_id FROM public.governance_passwordreset AS reset WHERE reset.token_hash = wanted",
    ),
    router_function("governance_memberships(wanted uuid)", "TABLE (member_id uuid, tenant_id uuid)", MEMBERSHIPS),
    router_function(
        "governance_tenant_ids()",
        "TABLE (id uuid)",
        "SELECT id FROM public.governance_tenant WHERE erased_at IS NULL",
    ),
]
DUE = [
    router_function(
        "governance_audit_unsealed(most integer)",
        "TABLE (tenant_id uuid)",
        "SELECT DISTINCT tenant_id FROM public.governance_auditunsealed LIMIT least(most, 1000)",
    ),
    router_function(
        "governance_audit_checkpoints_due(every interval, seals bigint)", "TABLE (tenant_id uuid)", CHECKPOINTS_DUE
    ),
    router_function("governance_audit_sinks_due(most integer)", "TABLE (id uuid, tenant_id uuid)", SINKS_DUE),
    router_function("governance_schedules_due(most integer)", "TABLE (id uuid, tenant_id uuid)", SCHEDULES_DUE),
    router_function(
        "governance_audit_health()",
        "TABLE (unsealed_seconds double precision, unsigned_seconds double precision)",
        AUDIT_HEALTH,
        "VOLATILE",
    ),
    router_function(
        "governance_outbox_health()",
        "TABLE (due bigint, oldest_seconds double precision, parked bigint)",
        OUTBOX_HEALTH,
    ),
]
WRITES = [
    router_function(
        "governance_outbox_claim("
        "topics text[], batches integer[], slots integer, tenant_slots integer, lasting interval)",
        "TABLE (lease uuid, id uuid, tenant_id uuid, topic text, attempts integer)",
        CLAIM,
        "VOLATILE",
    ),
    router_function("governance_outbox_park_unrouted(topics text[])", "bigint", PARK_UNROUTED, "VOLATILE"),
    router_function("governance_tidy(kept interval, keys_kept interval)", "bigint", TIDY_EVENTS, "VOLATILE"),
    router_function("governance_jobs_tidy()", "bigint", TIDY_JOBS, "VOLATILE"),
    router_function("governance_accounts_tidy()", "bigint", TIDY_ACCOUNTS, "VOLATILE"),
]


class Migration(migrations.Migration):
    dependencies = [("governance", "0003_row_security")]

    operations = [
        run(
            [REFUSE_CHANGE],
            append_only(
                "governance_auditentry",
                "governance_auditseal",
                "governance_auditcheckpoint",
                "governance_policyversion",
                "governance_keystorenote",
            ),
            [ENTER, ENQUEUE, QUEUED, ANNOUNCE, ANNOUNCED],
            *LOOK_UPS,
            *DUE,
            *WRITES,
        )
    ]
