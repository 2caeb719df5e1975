"""Freezes and legal holds: insert-only tables, and the triggers that let nothing held change (docs/decisions/0011)."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
import vault.vocabulary
from governance.tenancy_sql import CURRENT_TENANT, CURRENT_USER, append_only, tenant_table

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
CREATE FUNCTION vault_hold_stands(of_tenant uuid, of_hold uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM public.vault_hold AS hold WHERE hold.tenant_id = of_tenant AND hold.id = of_hold AND (
      SELECT count(DISTINCT approval.member_id) FROM public.vault_holdreleaseapproval AS approval
      WHERE approval.tenant_id = of_tenant AND approval.hold_id = of_hold
    ) < CASE hold.kind WHEN 'freeze' THEN 1 ELSE 2 END)
$$
"""

HELD = """
CREATE FUNCTION vault_cube_is_held(of_tenant uuid, of_cube uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM public.vault_holdcube AS covered
    WHERE covered.tenant_id = of_tenant AND covered.cube_id = of_cube
      AND public.vault_hold_stands(of_tenant, covered.hold_id));
END $$
"""

REFUSE = """
CREATE FUNCTION vault_refuse_held() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE held boolean;
BEGIN
  PERFORM public.vault_holds_known(OLD.tenant_id);
  IF TG_TABLE_NAME = 'vault_cube' THEN
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

FUNCTIONS = [
    ("vault_holds_known(uuid)", KNOWN),
    ("vault_hold_stands(uuid, uuid)", STANDS),
    ("vault_cube_is_held(uuid, uuid)", HELD),
    ("vault_refuse_held()", REFUSE),
    ("vault_versions_come_under_holds()", ADDED),
    ("vault_hold_is_made_alone()", ALONE),
    ("vault_approval_is_its_members_own()", APPROVAL),
]
TRIGGERS = [
    "CREATE TRIGGER cube_stays_while_held BEFORE UPDATE OR DELETE ON vault_cube "
    "FOR EACH ROW EXECUTE FUNCTION vault_refuse_held()",
    "CREATE TRIGGER version_stays_while_held BEFORE UPDATE OR DELETE ON vault_cubeversion "
    "FOR EACH ROW EXECUTE FUNCTION vault_refuse_held()",
    "CREATE TRIGGER subject_stays_while_held BEFORE UPDATE OR DELETE ON governance_datasubject "
    "FOR EACH ROW EXECUTE FUNCTION vault_refuse_held()",
    "CREATE TRIGGER versions_come_under_holds AFTER INSERT ON vault_cubeversion REFERENCING NEW TABLE AS added "
    "FOR EACH STATEMENT EXECUTE FUNCTION vault_versions_come_under_holds()",
    "CREATE TRIGGER hold_is_made_alone BEFORE INSERT ON vault_hold "
    "FOR EACH ROW EXECUTE FUNCTION vault_hold_is_made_alone()",
    "CREATE TRIGGER approval_is_its_members_own BEFORE INSERT ON vault_holdreleaseapproval "
    "FOR EACH ROW EXECUTE FUNCTION vault_approval_is_its_members_own()",
]


def _common() -> list[tuple[str, models.Field]]:  # type: ignore[type-arg]
    return [
        ("id", models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False)),
        ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
        (
            "tenant",
            models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="governance.tenant",
            ),
        ),
    ]


def _pointer(target: str) -> models.ForeignKey:  # type: ignore[type-arg]
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to=target,
    )


class Migration(migrations.Migration):
    dependencies = [("vault", "0006_pii"), ("governance", "0003_replies")]

    operations = [
        migrations.CreateModel(
            name="Hold",
            fields=[
                *_common(),
                (
                    "kind",
                    models.CharField(choices=[(kind, kind) for kind in vault.vocabulary.HoldKind], max_length=10),
                ),
                ("maker", _pointer("governance.member")),
                ("subject_id", models.UUIDField(null=True)),
                ("sealed", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="HoldCube",
            fields=[*_common(), ("hold", _pointer("vault.hold")), ("cube_id", models.UUIDField())],
        ),
        migrations.CreateModel(
            name="HoldReleaseApproval",
            fields=[
                *_common(),
                ("hold", _pointer("vault.hold")),
                ("member", _pointer("governance.member")),
                ("transaction", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.AddIndex("hold", models.Index(fields=["tenant", "kind"], name="hold_by_kind")),
        migrations.AddIndex(
            "hold",
            models.Index(
                condition=models.Q(("subject_id", None), _negated=True),
                fields=["tenant", "subject_id"],
                name="hold_by_subject",
            ),
        ),
        migrations.AddIndex("holdcube", models.Index(fields=["tenant", "hold"], name="cubes_of_hold")),
        migrations.AddConstraint(
            "holdcube",
            models.UniqueConstraint(fields=("tenant", "cube_id", "hold"), name="cube_is_under_a_hold_once"),
        ),
        migrations.AddConstraint(
            "holdreleaseapproval",
            models.UniqueConstraint(fields=("tenant", "hold", "member"), name="member_approves_a_release_once"),
        ),
        migrations.AddConstraint(
            "holdreleaseapproval",
            models.UniqueConstraint(
                fields=("tenant", "hold", "transaction"), name="transaction_approves_a_release_once"
            ),
        ),
        tenant_table("vault_hold", rights="SELECT, INSERT", references=[("maker_id", "governance_member")]),
        tenant_table("vault_holdcube", rights="SELECT, INSERT", references=[("hold_id", "vault_hold")]),
        tenant_table(
            "vault_holdreleaseapproval",
            rights="SELECT, INSERT",
            references=[("hold_id", "vault_hold"), ("member_id", "governance_member")],
        ),
        append_only("vault_hold"),
        append_only("vault_holdcube"),
        append_only("vault_holdreleaseapproval"),
        *(RunSQL(made, f"DROP FUNCTION {signature} CASCADE") for signature, made in FUNCTIONS),
        RunSQL([*TRIGGERS], RunSQL.noop),
    ]
