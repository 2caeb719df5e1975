"""Caches and adapters of memories."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from governance.tables import tenant_key, tenant_model
from governance.tenancy_sql import ALL, run, tenant_table

# Counters of use are no part of what a hold covers.
STAYS = """
CREATE FUNCTION vault_form_stays_while_held() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF public.vault_cube_is_held(OLD.tenant_id, OLD.cube_id) THEN
    RAISE EXCEPTION 'a hold keeps this row as it is' USING ERRCODE = 'MH423';
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $$
"""
TRIGGER = """
CREATE TRIGGER form_stays_while_held BEFORE DELETE
  OR UPDATE OF digest, length, parents, subjects, fingerprint, persona_id, is_pinned, report, approved_at
  ON vault_memoryform FOR EACH ROW EXECUTE FUNCTION vault_form_stays_while_held()
"""


class Migration(migrations.Migration):
    dependencies = [("vault", "0014_working_sets")]

    operations = [
        tenant_model(
            "MemoryForm",
            {
                "constraints": [models.UniqueConstraint(fields=["tenant", "cube"], name="form_is_one_for_cube")],
                "indexes": [
                    models.Index(
                        fields=["tenant", "persona"], name="form_by_persona", condition=models.Q(persona__isnull=False)
                    )
                ],
            },
            cube=tenant_key("vault.cube"),
            model=models.CharField(max_length=100),
            fingerprint=models.CharField(max_length=64),
            digest=models.BinaryField(max_length=32),
            length=models.BigIntegerField(),
            tokens=models.PositiveIntegerField(),
            seconds=models.FloatField(),
            parents=ArrayField(models.UUIDField()),
            subjects=ArrayField(models.UUIDField(), default=list),
            persona=tenant_key("governance.persona", null=True),
            is_pinned=models.BooleanField(default=False, db_default=False),
            costs=models.JSONField(default=dict),
            report=models.JSONField(null=True),
            approved_by=models.UUIDField(null=True),
            approved_at=models.DateTimeField(null=True),
            uses=models.PositiveIntegerField(default=0, db_default=0),
            saved_tokens=models.BigIntegerField(default=0, db_default=0),
            saved_seconds=models.FloatField(default=0.0, db_default=0.0),
        ),
        run(
            tenant_table("vault_memoryform", ALL, {"persona_id": "governance_persona"}, {"cube_id": "vault_cube"}),
            [STAYS, TRIGGER],
        ),
    ]
