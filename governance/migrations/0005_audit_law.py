"""Rights on the tables of the audit log, triggers that keep its rows, and the queue of entries to seal."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import append_only, router_access, router_function, tenant_table

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
# What was written before there were seals is sealed too. The owner sees rows only while the table does not force it.
OLDER = [
    "ALTER TABLE governance_auditentry NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE governance_auditunsealed NO FORCE ROW LEVEL SECURITY",
    "INSERT INTO governance_auditunsealed (id, tenant_id) SELECT id, tenant_id FROM governance_auditentry",
    "SET CONSTRAINTS ALL IMMEDIATE",  # no table can be altered while a foreign key waits to be checked
    "ALTER TABLE governance_auditentry FORCE ROW LEVEL SECURITY",
    "ALTER TABLE governance_auditunsealed FORCE ROW LEVEL SECURITY",
]
UNSEALED = "SELECT DISTINCT tenant_id FROM public.governance_auditunsealed LIMIT least(most, 1000)"
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


def _for_the_auditor(table: str) -> RunSQL:
    return RunSQL(
        [
            f"GRANT SELECT ON {table} TO memos_auditor",
            f"CREATE POLICY auditor_reads ON {table} FOR SELECT TO memos_auditor USING (true)",
        ],
        RunSQL.noop,
    )


class Migration(migrations.Migration):
    dependencies = [("governance", "0004_audit")]

    operations = [
        tenant_table("governance_auditunsealed", rights="SELECT, INSERT, DELETE"),
        tenant_table(
            "governance_auditseal", rights="SELECT, INSERT", references=[("entry_id", "governance_auditentry")]
        ),
        append_only("governance_auditseal"),
        tenant_table("governance_auditcheckpoint", rights="SELECT, INSERT"),
        append_only("governance_auditcheckpoint"),
        tenant_table("governance_auditexport"),
        tenant_table("governance_auditsink"),
        _for_the_auditor("governance_auditseal"),
        _for_the_auditor("governance_auditcheckpoint"),
        RunSQL(ENQUEUE, "DROP FUNCTION governance_audit_enqueue() CASCADE"),
        RunSQL(QUEUED, RunSQL.noop),
        RunSQL([*OLDER], RunSQL.noop),
        router_access("governance_auditunsealed", columns="tenant_id"),
        router_access("governance_auditseal", columns="tenant_id, seq"),
        router_access("governance_auditcheckpoint", columns="tenant_id, seq, created_at"),
        router_access("governance_auditsink", columns="id, tenant_id, delivered_seq, next_at, removed_at"),
        router_function("governance_audit_unsealed(most integer)", "TABLE (tenant_id uuid)", UNSEALED),
        router_function(
            "governance_audit_checkpoints_due(every interval, seals bigint)", "TABLE (tenant_id uuid)", CHECKPOINTS_DUE
        ),
        router_function("governance_tenant_ids()", "TABLE (id uuid)", "SELECT id FROM public.governance_tenant"),
        router_function("governance_audit_sinks_due(most integer)", "TABLE (id uuid, tenant_id uuid)", SINKS_DUE),
    ]
