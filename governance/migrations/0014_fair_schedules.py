"""Due schedules are taken from each tenant in turn, so that one tenant's many do not hold up another's."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import router_function

SIGNATURE = "governance_schedules_due(most integer)"
DUE = """
  SELECT due.id, due.tenant_id FROM (
    SELECT schedule.id, schedule.tenant_id, schedule.next_run_at,
      row_number() OVER (PARTITION BY schedule.tenant_id ORDER BY schedule.next_run_at) AS turn
    FROM public.governance_schedule AS schedule
    WHERE schedule.enabled AND schedule.next_run_at <= clock_timestamp()
  ) AS due
  ORDER BY due.turn, due.next_run_at LIMIT least(most, 1000)
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0013_operators")]

    operations = [
        RunSQL(["SET ROLE memos_router", "DROP FUNCTION governance_schedules_due(integer)", "RESET ROLE"], RunSQL.noop),
        router_function(SIGNATURE, "TABLE (id uuid, tenant_id uuid)", DUE),
    ]
