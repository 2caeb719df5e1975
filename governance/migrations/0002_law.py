"""Row-level security, composite keys, rights and the router's functions of the governance tables."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import (
    CURRENT_TENANT,
    CURRENT_USER,
    append_only,
    grant,
    router_access,
    router_function,
    tenant_table,
)

REFUSE_CHANGE = """
CREATE FUNCTION governance_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$
"""

CLAIM = """
  UPDATE public.governance_outboxevent AS event
  SET available_at = clock_timestamp() + least(lease, interval '10 minutes'), attempts = attempts + 1,
    -- A job whose every run kills its worker is never told of by the runner.
    parked_at = CASE WHEN attempts >= 20 THEN clock_timestamp() END
  WHERE event.id IN (
    SELECT due.id FROM public.governance_outboxevent AS due
    WHERE due.done_at IS NULL AND due.parked_at IS NULL AND due.available_at <= clock_timestamp()
    ORDER BY due.available_at LIMIT least(most, 1000) FOR UPDATE SKIP LOCKED)
  RETURNING event.id, event.tenant_id, event.topic::text, event.attempts
"""

TIDY = """
  WITH events AS (
    DELETE FROM public.governance_outboxevent
    WHERE done_at < clock_timestamp() - greatest(kept, interval '1 day') RETURNING 1
  ), keys AS (
    DELETE FROM public.governance_idempotencykey
    WHERE created_at < clock_timestamp() - greatest(keys_kept, interval '1 hour') RETURNING 1
  )
  SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM keys)
"""

HEALTH = """
  SELECT count(*) FILTER (WHERE parked_at IS NULL),
         coalesce(extract(epoch FROM clock_timestamp() - min(created_at) FILTER (WHERE parked_at IS NULL)),
                  0)::double precision,
         count(*) FILTER (WHERE parked_at IS NOT NULL)
  FROM public.governance_outboxevent WHERE done_at IS NULL
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0001_initial"),
        ("sessions", "0001_initial"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        RunSQL(REFUSE_CHANGE, "DROP FUNCTION governance_refuse_change() CASCADE"),
        RunSQL(
            [
                "ALTER TABLE governance_tenant ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE governance_tenant FORCE ROW LEVEL SECURITY",
                f"CREATE POLICY tenant_only ON governance_tenant USING (id = {CURRENT_TENANT}) "
                f"WITH CHECK (id = {CURRENT_TENANT})",
                "GRANT SELECT, INSERT, UPDATE ON governance_tenant TO memos_app",
            ],
            RunSQL.noop,
        ),
        tenant_table("governance_role", rights="SELECT, INSERT"),
        tenant_table("governance_member", references=[("role_id", "governance_role")]),
        RunSQL(
            [
                "ALTER TABLE governance_user ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE governance_user FORCE ROW LEVEL SECURITY",
                "CREATE POLICY members_and_oneself ON governance_user USING (id = "
                f"{CURRENT_USER} OR EXISTS (SELECT 1 FROM governance_member m WHERE m.user_id = governance_user.id)) "
                f"WITH CHECK (id = {CURRENT_USER})",
                "GRANT SELECT, INSERT ON governance_user TO memos_app",
            ],
            RunSQL.noop,
        ),
        tenant_table("governance_apikey", references=[("member_id", "governance_member")]),
        tenant_table("governance_signinlink", references=[("member_id", "governance_member")]),
        tenant_table("governance_persona", references=[("member_id", "governance_member")]),
        tenant_table("governance_datasubject", rights="SELECT, INSERT, UPDATE, DELETE"),
        tenant_table("governance_auditentry", rights="SELECT, INSERT"),
        append_only("governance_auditentry"),
        RunSQL(
            [
                "GRANT SELECT ON governance_auditentry TO memos_auditor",
                "CREATE POLICY auditor_reads ON governance_auditentry FOR SELECT TO memos_auditor USING (true)",
            ],
            RunSQL.noop,
        ),
        tenant_table("governance_outboxevent", rights="SELECT, INSERT, UPDATE, DELETE"),
        tenant_table("governance_idempotencykey", rights="SELECT, INSERT, DELETE"),
        grant("SELECT, INSERT, UPDATE, DELETE", ["django_session"]),
        grant("SELECT", ["django_content_type", "auth_permission", "django_migrations"]),
        router_access("governance_tenant", columns="id, slug"),
        router_access("governance_user", columns="id, email"),
        router_access("governance_apikey", columns="id, tenant_id, prefix"),
        router_access("governance_signinlink", columns="id, tenant_id, token_hash"),
        router_access(
            "governance_outboxevent",
            columns="id, tenant_id, topic, created_at, available_at, attempts, done_at, parked_at",
        ),
        router_access("governance_outboxevent", columns="available_at, attempts, parked_at", right="UPDATE"),
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
            "governance_link_by_hash(wanted bytea)",
            "TABLE (id uuid, tenant_id uuid)",
            "SELECT link.id, link.tenant_id FROM public.governance_signinlink AS link WHERE link.token_hash = wanted",
        ),
        router_function(
            "governance_outbox_claim(most integer, lease interval)",
            "TABLE (id uuid, tenant_id uuid, topic text, attempts integer)",
            CLAIM,
            volatility="VOLATILE",
        ),
        RunSQL(
            [
                "GRANT DELETE ON governance_outboxevent, governance_idempotencykey TO memos_router",
                "GRANT SELECT (created_at) ON governance_idempotencykey TO memos_router",
                "CREATE POLICY router_delete ON governance_outboxevent FOR DELETE TO memos_router "
                "USING (done_at IS NOT NULL)",
                "CREATE POLICY router_delete ON governance_idempotencykey FOR DELETE TO memos_router USING (true)",
                "CREATE POLICY router_select ON governance_idempotencykey FOR SELECT TO memos_router USING (true)",
            ],
            RunSQL.noop,
        ),
        router_function("governance_tidy(kept interval, keys_kept interval)", "bigint", TIDY, volatility="VOLATILE"),
        router_function(
            "governance_outbox_health()",
            "TABLE (due bigint, oldest_seconds double precision, parked bigint)",
            HEALTH,
        ),
    ]
