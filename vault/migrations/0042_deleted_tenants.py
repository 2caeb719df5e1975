"""The function that deletes the rows of a tenant, in parts."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import CURRENT_TENANT

# It runs as the owner of the tables, whom row-level security binds as everybody: other tenants' rows are not there.
# A table is taken once no other one that has rows refers to it. What stays: the tenant, its audit log, the job itself.
ERASE = f"""
CREATE FUNCTION vault_tenant_erase(most integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  of_tenant uuid := {CURRENT_TENANT};
  job uuid;
  remaining oid[];
  next oid;
  is_whole boolean;
  persons uuid[];
  person uuid;
  removed bigint;
BEGIN
  SELECT deletion_job INTO job FROM public.governance_tenant
    WHERE id = of_tenant AND erasing_since IS NOT NULL AND erased_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the tenant is not being deleted' USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF EXISTS (SELECT 1 FROM public.vault_hold AS hold
      WHERE hold.tenant_id = of_tenant AND public.vault_hold_stands(of_tenant, hold.id)) THEN
    RAISE EXCEPTION 'a hold keeps this tenant as it is' USING ERRCODE = 'MH423';
  END IF;
  remaining := ARRAY(
    SELECT class.oid FROM pg_class AS class
      JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attname = 'tenant_id'
    WHERE class.relnamespace = 'public'::regnamespace AND class.relkind = 'r'
      AND class.relname NOT IN (
        'governance_auditentry', 'governance_auditseal', 'governance_auditcheckpoint', 'governance_auditunsealed'));
  WHILE cardinality(remaining) > 0 LOOP
    SELECT one INTO next FROM unnest(remaining) AS one
      WHERE NOT EXISTS (SELECT 1 FROM pg_constraint AS tie
        WHERE tie.contype = 'f' AND tie.confrelid = one AND tie.conrelid <> one AND tie.conrelid = ANY (remaining))
      ORDER BY one IN ('public.vault_holdcube'::regclass, 'public.vault_holdreleaseapproval'::regclass), one LIMIT 1;
    IF next IS NULL THEN
      RAISE EXCEPTION 'tables refer to each other in a circle';
    END IF;
    -- A hold whose approvals are gone would stand again: they go together, after all that it could keep.
    IF next IN ('public.vault_holdcube'::regclass, 'public.vault_holdreleaseapproval'::regclass) THEN
      DELETE FROM public.vault_holdcube WHERE tenant_id = of_tenant;
      DELETE FROM public.vault_holdreleaseapproval WHERE tenant_id = of_tenant;
      DELETE FROM public.vault_hold WHERE tenant_id = of_tenant;
      remaining := array_remove(array_remove(array_remove(remaining, 'public.vault_holdcube'::regclass::oid),
        'public.vault_holdreleaseapproval'::regclass::oid), 'public.vault_hold'::regclass::oid);
      CONTINUE;
    END IF;
    is_whole := EXISTS (SELECT 1 FROM pg_constraint WHERE contype = 'f' AND confrelid = next AND conrelid = next);
    IF next = 'public.governance_member'::regclass THEN
      persons := ARRAY(SELECT user_id FROM public.governance_member WHERE tenant_id = of_tenant);
      is_whole := true;
    END IF;
    EXECUTE format(
      'DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE tenant_id = $1 %s LIMIT $3))',
      next::regclass, next::regclass,
      CASE WHEN next IN ('public.governance_job'::regclass, 'public.governance_outboxevent'::regclass)
        THEN 'AND id IS DISTINCT FROM $2' ELSE 'AND $2 IS NOT DISTINCT FROM $2' END)
      USING of_tenant, job, CASE WHEN NOT is_whole THEN most END;
    GET DIAGNOSTICS removed = ROW_COUNT;
    IF cardinality(persons) > 0 THEN
      SET CONSTRAINTS ALL IMMEDIATE;
    END IF;
    -- An account goes with the last membership: a foreign key of another tenant's member refuses.
    FOREACH person IN ARRAY coalesce(persons, '{{}}') LOOP
      PERFORM set_config('app.user', person::text, true);
      BEGIN
        DELETE FROM public.governance_browsersession WHERE user_id = person;
        DELETE FROM public.governance_passwordreset WHERE user_id = person;
        DELETE FROM public.mfa_authenticator WHERE user_id = person;
        DELETE FROM public.governance_user WHERE id = person AND NOT is_operator;
        IF NOT FOUND THEN
          RAISE foreign_key_violation;
        END IF;
      EXCEPTION WHEN foreign_key_violation THEN
        NULL;
      END;
      PERFORM set_config('app.user', '', true);
    END LOOP;
    persons := NULL;
    IF removed > 0 THEN
      RETURN removed;
    END IF;
    remaining := array_remove(remaining, next);
  END LOOP;
  RETURN 0;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("vault", "0041_model_endpoints"), ("governance", "0020_deleted_tenants")]

    operations = [
        RunSQL(
            [
                ERASE,
                "REVOKE ALL ON FUNCTION vault_tenant_erase(integer) FROM PUBLIC",
                "GRANT EXECUTE ON FUNCTION vault_tenant_erase(integer) TO memos_app",
            ],
            "DROP FUNCTION vault_tenant_erase(integer)",
        ),
    ]
