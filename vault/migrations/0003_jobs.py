"""Jobs: the context of their request, and an end of what they keep."""

from django.db import migrations, models

from governance.tenancy_sql import router_access, router_function

TIDY = """
  WITH blanked AS (
    UPDATE public.vault_job SET sealed_request = ''::bytea, kept_until = NULL
    WHERE kept_until < clock_timestamp() RETURNING 1
  )
  SELECT count(*) FROM blanked
"""


class Migration(migrations.Migration):
    dependencies = [("vault", "0002_law")]

    operations = [
        migrations.AddField(model_name="job", name="context", field=models.JSONField(default=dict)),
        migrations.AddField(model_name="job", name="kept_until", field=models.DateTimeField(null=True)),
        router_access("vault_job", columns="kept_until"),
        router_access("vault_job", columns="sealed_request, kept_until", right="UPDATE"),
        router_function("vault_jobs_tidy()", "bigint", TIDY, volatility="VOLATILE"),
    ]
