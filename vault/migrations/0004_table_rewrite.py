"""Functions that write a table anew beside itself, while it is read and written.

A deleted row stays in its page; only a new file is without it. VACUUM (FULL) locks the table for as long as it works.
These work in steps, each a transaction of its own: triggers note the keys of changed rows (begin), all rows are copied
into a table of the schema `maintenance` with the same name (fill), what was changed meanwhile is copied again
(follow), and the copy takes the place of the table under a short lock (finish). They run as the owner of the tables,
whom row-level security binds as everybody: rows are copied tenant by tenant. Nothing is returned of any row.
"""

from django.db import migrations

from governance.tenancy_sql import router_function, run

DEFINER = "SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp"
HELPER = "SET search_path = pg_catalog, public, pg_temp"

# The columns that tell the rows of a table apart; NULL where a copy would lack something: rows that the owner does not
# see, or what `fill` and `finish` do not make again.
KEYS = f"""
CREATE FUNCTION vault_rewrite_keys(name text) RETURNS text LANGUAGE sql STABLE {HELPER} AS $$
  SELECT string_agg(DISTINCT quote_ident(attname), ', ')
  FROM pg_class AS class
    JOIN pg_index ON indrelid = class.oid AND indisprimary
    JOIN pg_attribute AS attribute ON attrelid = class.oid
      AND (attname = 'tenant_id' OR attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1]))
  WHERE class.oid = to_regclass('public.' || quote_ident(name)) AND relkind = 'r' AND relname !~ '^governance_audit'
    AND EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = class.oid AND polpermissive AND polcmd = '*'
      AND polroles = '{{0}}' AND pg_get_expr(polqual, polrelid) = pg_get_expr(polwithcheck, polrelid)
      AND pg_get_expr(polqual, polrelid)
        = '(tenant_id = (NULLIF(current_setting(''app.tenant''::text, true), ''''::text))::uuid)')
    AND NOT EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = class.oid AND NOT polpermissive)
    AND NOT EXISTS (SELECT 1 FROM pg_policy JOIN pg_depend ON classid = 'pg_policy'::regclass AND objid = pg_policy.oid
      WHERE refclassid = 'pg_class'::regclass AND refobjid = class.oid AND polrelid <> class.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = class.oid AND NOT tgisinternal AND tgenabled <> 'O')
    AND NOT EXISTS (SELECT 1 FROM pg_statistic_ext WHERE stxrelid = class.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = class.oid AND attoptions IS NOT NULL)
  GROUP BY class.oid
$$
"""

# All but those that a row makes of the others.
COLUMNS = f"""
CREATE FUNCTION vault_rewrite_columns(name text) RETURNS text LANGUAGE sql STABLE {HELPER} AS $$
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
  WHERE attrelid = to_regclass('public.' || quote_ident(name)) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
$$
"""

NOTE = f"""
CREATE FUNCTION vault_rewrite_note() RETURNS trigger LANGUAGE plpgsql {DEFINER} AS $$
BEGIN
  EXECUTE format('INSERT INTO maintenance.%I SELECT %s FROM changed', TG_TABLE_NAME || '_changes', TG_ARGV[0]);
  IF TG_OP = 'UPDATE' THEN
    EXECUTE format('INSERT INTO maintenance.%I SELECT %s FROM former', TG_TABLE_NAME || '_changes', TG_ARGV[0]);
  END IF;
  RETURN NULL;
END $$
"""

# Locks the table against writers for a moment.
BEGIN = f"""
CREATE FUNCTION vault_rewrite_begin(name text) RETURNS void LANGUAGE plpgsql {DEFINER} AS $$
DECLARE
  keys text := vault_rewrite_keys(name);
  event text;
BEGIN
  IF keys IS NULL THEN
    RAISE EXCEPTION '% cannot be copied', name USING ERRCODE = 'feature_not_supported';
  END IF;
  EXECUTE format('CREATE UNLOGGED TABLE maintenance.%I AS SELECT %s FROM public.%I WITH NO DATA',
    name || '_changes', keys, name);
  FOREACH event IN ARRAY ARRAY['INSERT', 'UPDATE', 'DELETE'] LOOP
    EXECUTE format('CREATE TRIGGER %I AFTER %s ON public.%I REFERENCING %s FOR EACH STATEMENT '
      'EXECUTE FUNCTION vault_rewrite_note(%L)', 'rewrite_notes_' || lower(event), event, name,
      CASE event WHEN 'INSERT' THEN 'NEW TABLE AS changed' WHEN 'DELETE' THEN 'OLD TABLE AS changed'
        ELSE 'OLD TABLE AS former NEW TABLE AS changed' END, keys);
  END LOOP;
END $$
"""

# Locks nothing that a reader or a writer of rows needs.
FILL = f"""
CREATE FUNCTION vault_rewrite_fill(name text) RETURNS void LANGUAGE plpgsql {DEFINER} AS $$
DECLARE
  source regclass := to_regclass('public.' || quote_ident(name));
  tenant uuid;
  statement text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'rows of an earlier moment would be copied';
  END IF;
  IF to_regclass(format('maintenance.%I', name || '_changes')) IS NULL THEN
    RAISE EXCEPTION 'the changes of % are not noted', name;
  END IF;
  EXECUTE format('CREATE TABLE maintenance.%1$I (LIKE public.%1$I '
    'INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING IDENTITY INCLUDING STORAGE '
    'INCLUDING COMPRESSION INCLUDING COMMENTS)', name);
  FOR tenant IN SELECT id FROM vault_rewrite_tenants() LOOP
    PERFORM set_config('app.tenant', tenant::text, true);
    EXECUTE format('INSERT INTO maintenance.%1$I (%2$s) SELECT %2$s FROM public.%1$I WHERE tenant_id = $1', name,
      vault_rewrite_columns(name)) USING tenant;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
  FOR statement IN
    SELECT format('ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint
      WHERE conrelid = source AND contype IN ('p', 'u', 'x')
    UNION ALL SELECT format('ALTER COLUMN %I SET STATISTICS %s', attname, attstattarget) FROM pg_attribute
      WHERE attrelid = source AND attnum > 0 AND attstattarget IS NOT NULL AND NOT attisdropped
    UNION ALL SELECT format('SET (%s)', array_to_string(reloptions, ', ')) FROM pg_class
      WHERE oid = source AND reloptions IS NOT NULL
    UNION ALL SELECT 'ENABLE ROW LEVEL SECURITY' FROM pg_class WHERE oid = source AND relrowsecurity
    UNION ALL SELECT 'FORCE ROW LEVEL SECURITY' FROM pg_class WHERE oid = source AND relforcerowsecurity
  LOOP
    EXECUTE format('ALTER TABLE maintenance.%I %s', name, statement);
  END LOOP;
  FOR statement IN
    SELECT regexp_replace(pg_get_indexdef(indexrelid), ' ON public\\.', ' ON maintenance.') FROM pg_index
      WHERE indrelid = source AND NOT EXISTS (
        SELECT 1 FROM pg_constraint WHERE conrelid = source AND conindid = indexrelid AND contype IN ('p', 'u', 'x'))
    UNION ALL SELECT format('CREATE POLICY %I ON maintenance.%I AS %s FOR %s TO %s', policyname, name, permissive, cmd,
        array_to_string(roles, ', ')) || coalesce(' USING (' || qual || ')', '')
        || coalesce(' WITH CHECK (' || with_check || ')', '') FROM pg_policies
      WHERE schemaname = 'public' AND tablename = name
    UNION ALL SELECT format('GRANT %s ON maintenance.%I TO %s', privilege_type, name,
        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) FROM pg_class, aclexplode(relacl)
      WHERE oid = source AND grantee <> relowner
    UNION ALL SELECT format('GRANT %s (%I) ON maintenance.%I TO %s', privilege_type, attname, name,
        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) FROM pg_attribute, aclexplode(attacl)
      WHERE attrelid = source AND NOT attisdropped
  LOOP
    EXECUTE statement;
  END LOOP;
  EXECUTE format('ANALYZE maintenance.%I', name);
END $$
"""

APPLY = f"""
CREATE FUNCTION vault_rewrite_apply(name text) RETURNS bigint LANGUAGE plpgsql {HELPER} AS $$
DECLARE
  keys text := vault_rewrite_keys(name);
  tenant uuid;
  applied bigint;
BEGIN
  FOR tenant IN EXECUTE format('SELECT DISTINCT tenant_id FROM maintenance.%I', name || '_changes') LOOP
    PERFORM set_config('app.tenant', tenant::text, true);
    EXECUTE format('DELETE FROM maintenance.%1$I WHERE tenant_id = $1 AND (%3$s) IN '
      '(SELECT %3$s FROM maintenance.%2$I WHERE tenant_id = $1)', name, name || '_changes', keys) USING tenant;
    EXECUTE format('INSERT INTO maintenance.%1$I (%4$s) SELECT %4$s FROM public.%1$I '
      'WHERE tenant_id = $1 AND (%3$s) IN '
      '(SELECT %3$s FROM maintenance.%2$I WHERE tenant_id = $1)', name, name || '_changes', keys,
      vault_rewrite_columns(name)) USING tenant;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
  EXECUTE format('DELETE FROM maintenance.%I', name || '_changes');
  GET DIAGNOSTICS applied = ROW_COUNT;
  RETURN applied;
END $$
"""

# What is noted and what is copied must be seen at the same moment, and then both tables have the same rows.
FOLLOW = f"""
CREATE FUNCTION vault_rewrite_follow(name text) RETURNS bigint LANGUAGE plpgsql {DEFINER} AS $$
DECLARE
  tenant uuid;
  applied bigint;
  is_equal boolean;
BEGIN
  IF current_setting('transaction_isolation') <> 'repeatable read' THEN
    RAISE EXCEPTION 'a copy follows its table in a transaction that sees one moment';
  END IF;
  EXECUTE format('ANALYZE maintenance.%I', name || '_changes');
  applied := vault_rewrite_apply(name);
  FOR tenant IN SELECT id FROM vault_rewrite_tenants() LOOP
    PERFORM set_config('app.tenant', tenant::text, true);
    EXECUTE format('SELECT (SELECT count(*) FROM public.%1$I WHERE tenant_id = $1) '
      '= (SELECT count(*) FROM maintenance.%1$I WHERE tenant_id = $1)', name) INTO is_equal USING tenant;
    IF NOT is_equal THEN
      RAISE EXCEPTION 'the copy of % has other rows than the table', name USING ERRCODE = 'data_corrupted';
    END IF;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
  RETURN applied;
END $$
"""

# Locks the table and those that it refers to, or that refer to it: call it with a statement_timeout.
FINISH = f"""
CREATE FUNCTION vault_rewrite_finish(name text) RETURNS void LANGUAGE plpgsql {DEFINER} AS $$
DECLARE
  source regclass := to_regclass('public.' || quote_ident(name));
  before text[];
  after text[];
  statement text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'rows of an earlier moment would be copied';
  END IF;
  EXECUTE 'LOCK TABLE ' || (
    SELECT string_agg(id::regclass::text, ', ' ORDER BY id = source DESC, id) FROM (
      SELECT source::oid AS id
      UNION SELECT conrelid FROM pg_constraint WHERE contype = 'f' AND confrelid = source
      UNION SELECT confrelid FROM pg_constraint WHERE contype = 'f' AND conrelid = source) AS tables
  ) || ' IN ACCESS EXCLUSIVE MODE';
  PERFORM vault_rewrite_apply(name);
  before := ARRAY(
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
      WHERE contype = 'f' AND confrelid = source AND conrelid <> source
    UNION ALL SELECT DISTINCT format('DROP VIEW %s', ev_class::regclass) FROM pg_rewrite
      JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid
      WHERE refclassid = 'pg_class'::regclass AND refobjid = source AND ev_class <> source);
  after := ARRAY(
    SELECT pg_get_triggerdef(oid) FROM pg_trigger
      WHERE tgrelid = source AND NOT tgisinternal AND tgname !~ '^rewrite_notes_'
    UNION ALL SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', conrelid::regclass, conname,
        regexp_replace(pg_get_constraintdef(oid), ' NOT VALID$', '')) FROM pg_constraint
      WHERE contype = 'f' AND source IN (conrelid, confrelid));
  after := after || ARRAY(
    SELECT made FROM pg_class AS class, LATERAL (
      SELECT 0 AS place, format('CREATE VIEW public.%I%s AS %s', relname,
        ' WITH (' || array_to_string(reloptions, ', ') || ')', pg_get_viewdef(class.oid)) AS made
      UNION ALL SELECT 1, format('GRANT %s ON %s TO %s', privilege_type, class.oid::regclass,
          CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) FROM aclexplode(relacl)
        WHERE grantee <> relowner) AS statements
    WHERE format('DROP VIEW %s', class.oid::regclass) = ANY (before) ORDER BY class.oid, place);
  before := before || ARRAY[format('DROP TABLE %s', source),
    format('ALTER TABLE maintenance.%I SET SCHEMA public', name),
    format('DROP TABLE maintenance.%I', name || '_changes')];
  FOREACH statement IN ARRAY before || after LOOP
    EXECUTE statement;
  END LOOP;
END $$
"""

# Looks through the rows of one foreign key that `finish` made anew; true while there are more.
VALIDATE = f"""
CREATE FUNCTION vault_rewrite_validate() RETURNS boolean LANGUAGE plpgsql {DEFINER} AS $$
DECLARE
  statement text;
BEGIN
  SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I', conrelid::regclass, conname) INTO statement
    FROM pg_constraint WHERE contype = 'f' AND NOT convalidated AND connamespace = 'public'::regnamespace LIMIT 1;
  IF statement IS NULL THEN
    RETURN false;
  END IF;
  EXECUTE statement;
  RETURN true;
END $$
"""

CANCEL = f"""
CREATE FUNCTION vault_rewrite_cancel() RETURNS void LANGUAGE plpgsql {DEFINER} AS $$
DECLARE
  statement text;
BEGIN
  FOR statement IN
    SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) FROM pg_trigger
      WHERE NOT tgisinternal AND tgname ~ '^rewrite_notes_'
    UNION ALL SELECT format('DROP TABLE %s', oid::regclass) FROM pg_class
      WHERE relnamespace = 'maintenance'::regnamespace AND relkind = 'r'
  LOOP
    EXECUTE statement;
  END LOOP;
END $$
"""

CALLED = (  # by the worker
    "vault_rewrite_keys(text)",
    "vault_rewrite_begin(text)",
    "vault_rewrite_fill(text)",
    "vault_rewrite_follow(text)",
    "vault_rewrite_finish(text)",
    "vault_rewrite_validate()",
    "vault_rewrite_cancel()",
)
INNER = ("vault_rewrite_columns(text)", "vault_rewrite_note()", "vault_rewrite_apply(text)")


class Migration(migrations.Migration):
    dependencies = [("vault", "0003_functions")]

    operations = [
        run(
            ["CREATE SCHEMA maintenance"],
            router_function("vault_rewrite_tenants()", "TABLE (id uuid)", "SELECT id FROM public.governance_tenant"),
            [
                "SET ROLE memos_router",
                "GRANT EXECUTE ON FUNCTION vault_rewrite_tenants() TO memos_owner",
                "RESET ROLE",
            ],
            [KEYS, COLUMNS, NOTE, BEGIN, FILL, APPLY, FOLLOW, FINISH, VALIDATE, CANCEL],
            (f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC" for function in CALLED + INNER),
            (f"GRANT EXECUTE ON FUNCTION {function} TO memos_app" for function in CALLED),
        ),
    ]
