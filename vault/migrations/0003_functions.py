"""Functions, triggers and the view of the vault."""

from django.db import migrations

from governance.tenancy_sql import CURRENT_TENANT, CURRENT_USER, append_only, router_function, run

# A format byte, the SHA-256 of the bytes and their length (vault/content/blobs.py).
REFERENCE = """
CREATE FUNCTION vault_blob_reference(sealed bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT '\\x02'::bytea || sha256(sealed) || int4send(octet_length(sealed))
$$
"""
LENGTH = """
CREATE FUNCTION vault_sealed_length(sealed bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(sealed) = 37 AND get_byte(sealed, 0) = 2
    THEN ('x' || encode(substr(sealed, 34, 4), 'hex'))::bit(32)::bigint ELSE octet_length(sealed) END
$$
"""
# A version may be deleted with its cube, have its words and tags blanked by a redaction, or its words, as they are, go
# to the blob store and come back; nothing else of it changes.
VERSION_IS_IMMUTABLE = """
CREATE FUNCTION vault_version_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.sealed <> ''::bytea AND NEW.sealed <> ''::bytea
     AND (NEW.sealed = public.vault_blob_reference(OLD.sealed) OR OLD.sealed = public.vault_blob_reference(NEW.sealed))
     AND to_jsonb(NEW) - 'sealed' IS NOT DISTINCT FROM to_jsonb(OLD) - 'sealed' THEN
    RETURN NEW;
  END IF;
  IF NEW.sealed <> ''::bytea OR NEW.terms <> '{}' OR NEW.tags NOT IN ('{}', OLD.tags)
     OR to_jsonb(NEW) - 'sealed' - 'terms' - 'tags' IS DISTINCT FROM to_jsonb(OLD) - 'sealed' - 'terms' - 'tags' THEN
    RAISE EXCEPTION 'a version never changes' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$
"""
LOCK = "4711, hashtext(of_tenant::text)"  # of a tenant: writers share it, a hold is made alone
# Who writes rows that may be held waits for holds that are being made, and sees those that were made.
KNOWN = f"""
CREATE FUNCTION vault_holds_known(of_tenant uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- An older snapshot would not see a hold that was made since.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'rows that may be held are written in READ COMMITTED' USING ERRCODE = 'insufficient_privilege';
  END IF;
  -- Whom policies bind, and who has not said which tenant it acts for, would see no hold either.
  IF row_security_active('public.vault_holdcube') AND of_tenant IS DISTINCT FROM {CURRENT_TENANT} THEN
    RAISE EXCEPTION 'rows that may be held are written as their tenant' USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM pg_advisory_xact_lock_shared({LOCK});
END $$
"""
STANDS = """
CREATE FUNCTION vault_hold_stands(of_tenant uuid, of_hold uuid, moment timestamptz DEFAULT 'infinity')
RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM public.vault_hold AS hold
    WHERE hold.tenant_id = of_tenant AND hold.id = of_hold AND hold.created_at <= moment AND (
      SELECT count(DISTINCT approval.member_id) FROM public.vault_holdreleaseapproval AS approval
      WHERE approval.tenant_id = of_tenant AND approval.hold_id = of_hold AND approval.created_at <= moment
    ) < CASE hold.kind WHEN 'freeze' THEN 1 ELSE 2 END)
$$
"""
HELD = """
CREATE FUNCTION vault_cube_is_held(of_tenant uuid, of_cube uuid, moment timestamptz DEFAULT 'infinity')
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM public.vault_holdcube AS covered
    WHERE covered.tenant_id = of_tenant AND covered.cube_id = of_cube AND covered.created_at <= moment
      AND public.vault_hold_stands(of_tenant, covered.hold_id, moment));
END $$
"""
REFUSE = """
CREATE FUNCTION vault_refuse_held() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  held boolean;
  suspended record;
BEGIN
  PERFORM public.vault_holds_known(OLD.tenant_id);
  IF TG_TABLE_NAME = 'vault_cube' THEN
    IF TG_OP = 'UPDATE' THEN
      suspended := OLD;
      suspended.suspended_expiry := OLD.expires_at;
      suspended.expires_at := NULL;
      IF OLD.expires_at IS NOT NULL AND NEW IS NOT DISTINCT FROM suspended THEN
        RETURN NEW;
      END IF;
    END IF;
    held := public.vault_cube_is_held(OLD.tenant_id, OLD.id);
  ELSIF TG_TABLE_NAME = 'vault_cubeversion' THEN
    held := public.vault_cube_is_held(OLD.tenant_id, OLD.cube_id);
  ELSE
    held := EXISTS (SELECT 1 FROM public.vault_hold AS hold
      WHERE hold.tenant_id = OLD.tenant_id AND hold.subject_id = OLD.id
        AND public.vault_hold_stands(hold.tenant_id, hold.id));
  END IF;
  IF held THEN
    RAISE EXCEPTION 'a hold keeps this row as it is' USING ERRCODE = 'MH423';
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $$
"""
# A held cube does not expire: its expiry waits beside it until no hold is left, so that no reader asks about holds.
SUSPEND = """
CREATE FUNCTION vault_holds_suspend_expiry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.vault_cube AS cube SET suspended_expiry = cube.expires_at, expires_at = NULL
  FROM added
  WHERE cube.tenant_id = added.tenant_id AND cube.id = added.cube_id AND cube.expires_at > transaction_timestamp();
  RETURN NULL;
END $$
"""
RESUME = """
CREATE FUNCTION vault_release_resumes_expiry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT public.vault_hold_stands(NEW.tenant_id, NEW.hold_id) THEN
    UPDATE public.vault_cube AS cube SET expires_at = cube.suspended_expiry, suspended_expiry = NULL
    FROM public.vault_holdcube AS covered
    WHERE covered.tenant_id = NEW.tenant_id AND covered.hold_id = NEW.hold_id
      AND cube.tenant_id = covered.tenant_id AND cube.id = covered.cube_id AND cube.suspended_expiry IS NOT NULL
      AND NOT public.vault_cube_is_held(cube.tenant_id, cube.id);
  END IF;
  RETURN NULL;
END $$
"""
# A deletion that is taken back has been one: what was there at a time is told by all of them.
RESTORED = """
CREATE FUNCTION vault_deletion_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.vault_pastdeletion (id, tenant_id, cube_id, deleted_at)
  VALUES (uuidv7(), OLD.tenant_id, OLD.id, OLD.deleted_at);
  RETURN NULL;
END $$
"""
# A version makes its cube what it is: none is added to a held one, and what is about a held subject comes under it.
ADDED = """
CREATE FUNCTION vault_versions_come_under_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM public.vault_holds_known(one.tenant_id) FROM (SELECT DISTINCT tenant_id FROM added) AS one;
  IF EXISTS (SELECT 1 FROM added JOIN public.vault_holdcube AS covered
      ON covered.tenant_id = added.tenant_id AND covered.cube_id = added.cube_id
      WHERE public.vault_hold_stands(covered.tenant_id, covered.hold_id)) THEN
    RAISE EXCEPTION 'a hold keeps this row as it is' USING ERRCODE = 'MH423';
  END IF;
  INSERT INTO public.vault_holdcube (id, tenant_id, hold_id, cube_id)
    SELECT DISTINCT ON (hold.id, added.cube_id) uuidv7(), added.tenant_id, hold.id, added.cube_id
    FROM added JOIN public.vault_hold AS hold
      ON hold.tenant_id = added.tenant_id AND hold.subject_id = added.subject_id
    WHERE public.vault_hold_stands(hold.tenant_id, hold.id)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$
"""
ALONE = f"""
CREATE FUNCTION vault_hold_is_made_alone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock({LOCK.replace("of_tenant", "NEW.tenant_id")});
  RETURN NEW;
END $$
"""
# What the database can know of an approval: whom the transaction acts for, and that each came from one of its own.
APPROVAL = f"""
CREATE FUNCTION vault_approval_is_its_members_own() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.governance_member AS member
      WHERE member.tenant_id = NEW.tenant_id AND member.id = NEW.member_id AND member.removed_at IS NULL
        AND member.user_id = {CURRENT_USER}) THEN
    RAISE EXCEPTION 'only a member approves, for themselves' USING ERRCODE = 'insufficient_privilege';
  END IF;
  NEW.transaction := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$
"""
# What a search never asks of a cube changes no size.
COUNTED = "tenant_id, id, namespace_id, term_count, expires_at, created_at"
BEFORE, AFTER = (
    f"SELECT {COUNTED} FROM {rows} WHERE deleted_at IS NULL AND is_indexed" for rows in ("former", "present")
)
CHANGED = f"""
    SELECT -1 AS sign, one.* FROM ({BEFORE} EXCEPT {AFTER}) AS one
    UNION ALL SELECT 1, one.* FROM ({AFTER} EXCEPT {BEFORE}) AS one"""
LOST = "SELECT -1 AS sign, former.* FROM former WHERE former.deleted_at IS NULL AND former.is_indexed"
# Sizes are held in one order, before it is asked when they were counted; that there is none yet is held, too. A change
# is written even where it comes to nothing: by it is seen that what is hidden of a size may be another.
FOLLOW = """
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NOT EXISTS ({changed}) THEN
    RETURN NULL;
  END IF;
  INSERT INTO vault_namespacesize (tenant_id, namespace_id, cubes, words, refreshed_at)
  SELECT DISTINCT changed.tenant_id, changed.namespace_id, 0, 0, timestamptz 'epoch' FROM ({changed}) AS changed
  ORDER BY changed.tenant_id, changed.namespace_id
  ON CONFLICT (tenant_id, namespace_id) DO UPDATE SET cubes = vault_namespacesize.cubes WHERE false;
  UPDATE vault_namespacesize AS size
  SET cubes = greatest(0, size.cubes + change.cubes), words = greatest(0, size.words + change.words)
  FROM (
    SELECT cube.tenant_id, cube.namespace_id, sum(cube.sign) AS cubes, sum(cube.sign * cube.term_count) AS words
    FROM ({changed}) AS cube JOIN vault_namespacesize AS size
      ON size.tenant_id = cube.tenant_id AND size.namespace_id = cube.namespace_id
    WHERE cube.created_at < size.refreshed_at AND (cube.expires_at IS NULL OR cube.expires_at > size.refreshed_at)
    GROUP BY cube.tenant_id, cube.namespace_id) AS change
  WHERE size.tenant_id = change.tenant_id AND size.namespace_id = change.namespace_id;
  RETURN NULL;
END $$
"""
# A page goes with either of its memories: what was made of it is made anew from the pages that are left.
PAGE_LEAVES = """
CREATE FUNCTION vault_page_leaves() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE vault_segment SET vector = NULL, keywords = '{}', pages = greatest(pages - 1, 0),
    unpromoted = greatest(unpromoted - (OLD.promoted_at IS NULL)::integer, 0)
  WHERE tenant_id = OLD.tenant_id AND id = OLD.segment_id;
  RETURN NULL;
END $$
"""
ORIGIN = """
CREATE VIEW vault_cubeorigin WITH (security_invoker = true) AS
SELECT cube.id, cube.tenant_id, source.cube_id AS derived, cube.namespace_id, cube.persona_id, cube.subject_id,
  cube.owner_id, cube.access_level, cube.semantic_type, cube.sensitivity, cube.tags, cube.importance, cube.priority,
  cube.event_time, cube.valid_from, cube.valid_to, cube.expires_at, cube.type,
  NOT cube.is_quarantined AND cube.deleted_at IS NULL
    AND (cube.expires_at IS NULL OR cube.expires_at > statement_timestamp()) AND EXISTS (
    SELECT 1 FROM public.vault_cubeversion AS version
    WHERE version.tenant_id = source.tenant_id AND version.cube_id = source.source_id
      AND version.number = source.version AND octet_length(version.sealed) > 0
  ) AS stands
FROM public.vault_cubesource AS source JOIN public.vault_cube AS cube
  ON cube.tenant_id = source.tenant_id AND cube.id = source.source_id
"""
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
REPORTS = """
  SELECT tenant_id, id FROM public.vault_packreport WHERE (decided_at IS NOT NULL) = decided ORDER BY id DESC LIMIT most
"""
FUNCTIONS = [
    REFERENCE,
    LENGTH,
    VERSION_IS_IMMUTABLE,
    KNOWN,
    STANDS,
    HELD,
    REFUSE,
    SUSPEND,
    RESUME,
    RESTORED,
    ADDED,
    ALONE,
    APPROVAL,
    FOLLOW.format(name="vault_sizes_follow_a_change", changed=CHANGED),
    FOLLOW.format(name="vault_sizes_follow_a_loss", changed=LOST),
    PAGE_LEAVES,
]
ROW_TRIGGERS = {  # name: (event, table, function)
    "version_is_immutable": ("BEFORE UPDATE", "vault_cubeversion", "vault_version_is_immutable"),
    "cube_stays_while_held": ("BEFORE UPDATE OR DELETE", "vault_cube", "vault_refuse_held"),
    "version_stays_while_held": ("BEFORE UPDATE OR DELETE", "vault_cubeversion", "vault_refuse_held"),
    "subject_stays_while_held": ("BEFORE UPDATE OR DELETE", "governance_datasubject", "vault_refuse_held"),
    "hold_is_made_alone": ("BEFORE INSERT", "vault_hold", "vault_hold_is_made_alone"),
    "approval_is_its_members_own": (
        "BEFORE INSERT",
        "vault_holdreleaseapproval",
        "vault_approval_is_its_members_own",
    ),
    "release_resumes_expiry": ("AFTER INSERT", "vault_holdreleaseapproval", "vault_release_resumes_expiry"),
    "page_leaves_its_segment": ("AFTER DELETE", "vault_page", "vault_page_leaves"),
}
STATEMENT_TRIGGERS = {  # name: (event, table, rows, function)
    "versions_come_under_holds": (
        "INSERT",
        "vault_cubeversion",
        "NEW TABLE AS added",
        "vault_versions_come_under_holds",
    ),
    "holds_suspend_expiry": ("INSERT", "vault_holdcube", "NEW TABLE AS added", "vault_holds_suspend_expiry"),
    "sizes_follow_a_change": (
        "UPDATE",
        "vault_cube",
        "OLD TABLE AS former NEW TABLE AS present",
        "vault_sizes_follow_a_change",
    ),
    "sizes_follow_a_loss": ("DELETE", "vault_cube", "OLD TABLE AS former", "vault_sizes_follow_a_loss"),
}


class Migration(migrations.Migration):
    dependencies = [("governance", "0004_functions"), ("vault", "0002_row_security")]

    operations = [
        run(
            FUNCTIONS,
            (
                f"CREATE TRIGGER {name} {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()"
                for name, (event, table, function) in ROW_TRIGGERS.items()
            ),
            (
                f"CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {rows} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
                for name, (event, table, rows, function) in STATEMENT_TRIGGERS.items()
            ),
            [
                "CREATE TRIGGER deletion_ends AFTER UPDATE OF deleted_at ON vault_cube FOR EACH ROW "
                "WHEN (OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS NULL) EXECUTE FUNCTION vault_deletion_ends()"
            ],
            append_only("vault_hold", "vault_holdcube", "vault_holdreleaseapproval"),
            [ORIGIN, "REVOKE ALL ON vault_cubeorigin FROM PUBLIC", "GRANT SELECT ON vault_cubeorigin TO memos_app"],
            [
                ERASE,
                "REVOKE ALL ON FUNCTION vault_tenant_erase(integer) FROM PUBLIC",
                "GRANT EXECUTE ON FUNCTION vault_tenant_erase(integer) TO memos_app",
            ],
            router_function(
                "vault_tenants_to_reembed(wanted text)",
                "SETOF uuid",
                "SELECT tenant_id FROM vault_embeddingmodel WHERE model <> wanted ORDER BY tenant_id",
            ),
            router_function(
                "vault_pack_reports(decided boolean, most integer)", "TABLE (tenant_id uuid, id uuid)", REPORTS
            ),
        )
    ]
