"""The key store that the database belongs to, and when the parts of the product were last at work."""

import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import append_only, grant, router_function

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


class Migration(migrations.Migration):
    dependencies = [("governance", "0010_job_engine")]

    operations = [
        migrations.CreateModel(
            name="KeyStoreNote",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("store_id", models.UUIDField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="database_has_one_key_store")
                ],
            },
        ),
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("part", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        append_only("governance_keystorenote"),
        RunSQL("GRANT SELECT (created_at) ON governance_auditseal TO memos_router", RunSQL.noop),
        RunSQL("GRANT SELECT (id, created_at) ON governance_auditunsealed TO memos_router", RunSQL.noop),
        router_function(
            "governance_audit_health()",
            "TABLE (unsealed_seconds double precision, unsigned_seconds double precision)",
            AUDIT_HEALTH,
            volatility="VOLATILE",
        ),
        grant("SELECT, INSERT", ["governance_keystorenote"]),
        grant("SELECT, INSERT, UPDATE", ["governance_heartbeat"]),
    ]
