"""A claim looks at one topic of each tenant before a second one of any: no slot stays free while a tenant waits."""

from importlib import import_module

from django.db import migrations
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import router_function

TYPES = "text[], integer[], integer, integer, interval"
BEFORE = "ORDER BY tasks, random() LIMIT slots"
AFTER = "ORDER BY tasks, row_number() OVER (PARTITION BY pairs.tenant_id ORDER BY random()), random() LIMIT slots"
CLAIM = import_module("governance.migrations.0010_job_engine").CLAIM.replace(BEFORE, AFTER)


class Migration(migrations.Migration):
    dependencies = [("governance", "0020_deleted_tenants")]

    operations = [
        RunSQL(f"DROP FUNCTION governance_outbox_claim({TYPES})", RunSQL.noop),
        router_function(
            "governance_outbox_claim("
            "topics text[], batches integer[], slots integer, tenant_slots integer, lasting interval)",
            "TABLE (lease uuid, id uuid, tenant_id uuid, topic text, attempts integer)",
            CLAIM,
            volatility="VOLATILE",
        ),
    ]
