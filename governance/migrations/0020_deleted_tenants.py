"""The deletion of a tenant: when it was asked for, its receipt, and the rows that may then be deleted."""

from django.db import migrations, models
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import router_function

# Rows that stay as they are leave with their tenant alone, by the function that deletes it; the audit log never does.
REFUSE_CHANGE = """
CREATE OR REPLACE FUNCTION governance_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
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


class Migration(migrations.Migration):
    dependencies = [("governance", "0019_webhooks")]

    operations = [
        migrations.AddField("tenant", "deletion_job", models.UUIDField(editable=False, null=True)),
        migrations.AddField("tenant", "deletion_at", models.DateTimeField(editable=False, null=True)),
        migrations.AddField("tenant", "erasing_since", models.DateTimeField(editable=False, null=True)),
        migrations.AddField("tenant", "erased_at", models.DateTimeField(editable=False, null=True)),
        migrations.AddField("tenant", "receipt", models.JSONField(editable=False, null=True)),
        RunSQL(REFUSE_CHANGE, RunSQL.noop),
        RunSQL(
            [
                "GRANT SELECT (erased_at) ON governance_tenant TO memos_router",
                "SET ROLE memos_router",
                "DROP FUNCTION governance_tenant_ids()",
                "RESET ROLE",
            ],
            RunSQL.noop,
        ),
        router_function(
            "governance_tenant_ids()",
            "TABLE (id uuid)",
            "SELECT id FROM public.governance_tenant WHERE erased_at IS NULL",
        ),
    ]
