"""Open events by topic, for the metrics of each queue."""

from django.db import migrations

from governance.tenancy_sql import router_function, run

# What a worker has taken does not wait; its age counts, so that work that never ends is seen.
TOPICS = """
  SELECT topic::text, count(*),
    max(extract(epoch FROM clock_timestamp() - created_at))::double precision,
    coalesce(max(extract(epoch FROM clock_timestamp() - created_at))
      FILTER (WHERE lease IS NULL OR available_at <= clock_timestamp()), 0)::double precision
  FROM public.governance_outboxevent WHERE done_at IS NULL AND parked_at IS NULL AND created_at <= clock_timestamp()
  GROUP BY topic
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0007_examination_policies")]

    operations = [
        run(
            router_function(
                "governance_outbox_topics()",
                "TABLE (topic text, due bigint, oldest_seconds double precision, waiting_seconds double precision)",
                TOPICS,
            )
        ),
    ]
