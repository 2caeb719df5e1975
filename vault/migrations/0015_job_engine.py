"""Jobs move to governance, whose exports are jobs too."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

UNBOUND = ("governance_outboxevent", "governance_job", "vault_job")
MOVE = [
    *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in UNBOUND),
    """
    INSERT INTO governance_job (id, tenant_id, created_at, kind, status, done, attempts, dead_letter, member_id,
      principal_kind, principal_id, context, settings, state, sealed_request, sealed_result, error, finished_at,
      kept_until)
    SELECT id, tenant_id, created_at, kind, status, 0, 0, false, member_id, principal_kind, principal_id, context, '{}',
      '{}', sealed_request, sealed_result, error, finished_at, kept_until
    FROM vault_job
    """,
    """
    UPDATE governance_outboxevent SET id = (payload->>'job')::uuid, topic = 'memories.add'
    WHERE topic = 'job.requested' AND done_at IS NULL
    """,
    "SET CONSTRAINTS ALL IMMEDIATE",
    *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in UNBOUND),
    "DROP FUNCTION vault_jobs_tidy()",
]


class Migration(migrations.Migration):
    dependencies = [("governance", "0010_job_engine"), ("vault", "0014_entities_of_cubes")]

    operations = [RunSQL([*MOVE], RunSQL.noop), migrations.DeleteModel(name="Job")]
