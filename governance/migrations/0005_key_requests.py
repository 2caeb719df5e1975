"""The request log of API keys, and their requests by day."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from governance.tables import tenant_key, tenant_model
from governance.tenancy_sql import router_access, router_deletion, router_function, run, tenant_table

KEY = {"key_id": "governance_apikey"}
TIDY = """
  WITH requests AS (
    DELETE FROM public.governance_apikeyrequest
    WHERE at < clock_timestamp() - greatest(requests_kept, interval '1 day') RETURNING 1
  ), days AS (
    DELETE FROM public.governance_apikeyday
    WHERE day < (clock_timestamp() - greatest(days_kept, interval '1 day'))::date RETURNING 1
  )
  SELECT (SELECT count(*) FROM requests) + (SELECT count(*) FROM days)
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0004_functions")]

    operations = [
        tenant_model(
            "ApiKeyRequest",
            {"indexes": [models.Index(fields=["tenant", "key", "-id"], name="key_request_newest_first")]},
            key=tenant_key("governance.apikey"),
            at=models.DateTimeField(),
            method=models.CharField(max_length=8),
            route=models.CharField(max_length=200),
            status=models.PositiveSmallIntegerField(),
            milliseconds=models.PositiveIntegerField(),
        ),
        tenant_model(
            "ApiKeyDay",
            {"constraints": [models.UniqueConstraint(fields=["tenant", "key", "day"], name="key_day_is_unique")]},
            key=tenant_key("governance.apikey"),
            day=models.DateField(),
            errors=models.PositiveIntegerField(),
            buckets=ArrayField(models.PositiveIntegerField()),
        ),
        run(
            tenant_table("governance_apikeyrequest", "SELECT, INSERT, DELETE", KEY),
            tenant_table("governance_apikeyday", references=KEY),
            router_access("governance_apikeyrequest", "at"),
            router_deletion("governance_apikeyrequest"),
            router_access("governance_apikeyday", "day"),
            router_deletion("governance_apikeyday"),
            router_function(
                "governance_key_requests_tidy(requests_kept interval, days_kept interval)", "bigint", TIDY, "VOLATILE"
            ),
        ),
    ]
