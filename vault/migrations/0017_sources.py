"""Derived memories name the versions that their words were taken from, and are read where those are.

What was stored before is taken over as far as it is known: sentences by their links, answers by what they cited.
"""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
from governance.tenancy_sql import reference, tenant_table

ORIGIN = """
CREATE VIEW vault_cubeorigin WITH (security_invoker = true) AS
SELECT cube.id, cube.tenant_id, source.cube_id AS derived, cube.namespace_id, cube.persona_id, cube.subject_id,
  cube.owner_id, cube.access_level, cube.semantic_type, cube.sensitivity, cube.tags, cube.importance, cube.priority,
  cube.event_time, cube.valid_from, cube.valid_to, cube.expires_at, cube.type,
  cube.deleted_at IS NULL AND (cube.expires_at IS NULL OR cube.expires_at > statement_timestamp()) AND EXISTS (
    SELECT 1 FROM public.vault_cubeversion AS version
    WHERE version.tenant_id = source.tenant_id AND version.cube_id = source.source_id
      AND version.number = source.version AND octet_length(version.sealed) > 0
  ) AS stands
FROM public.vault_cubesource AS source JOIN public.vault_cube AS cube
  ON cube.tenant_id = source.tenant_id AND cube.id = source.source_id
"""
# The version that was there when `at` was.
THEN = """coalesce((SELECT max(version.number) FROM vault_cubeversion AS version
  WHERE version.tenant_id = {row}.tenant_id AND version.cube_id = {source}
    AND version.created_at <= {row}.created_at), 1)"""
TABLES = ("vault_cube", "vault_cubeversion", "vault_cubelink", "vault_turn", "vault_cubesource", "vault_conversation")
TAKEN_OVER = [
    f"""
    INSERT INTO vault_cubesource (id, tenant_id, cube_id, source_id, version, kind)
    SELECT uuidv7(), link.tenant_id, link.source_id, link.target_id, {THEN.format(row="link", source="link.target_id")},
      'extract'
    FROM vault_cubelink AS link WHERE link.kind = 'derived' ON CONFLICT DO NOTHING
    """,
    f"""
    INSERT INTO vault_cubesource (id, tenant_id, cube_id, source_id, version, kind)
    SELECT uuidv7(), turn.tenant_id, turn.answer_id, (cited.one->>'memory_id')::uuid,
      {THEN.format(row="turn", source="(cited.one->>'memory_id')::uuid")}, 'text'
    FROM vault_turn AS turn CROSS JOIN LATERAL jsonb_array_elements(turn.citations) AS cited (one)
    WHERE turn.answer_id IS NOT NULL ON CONFLICT DO NOTHING
    """,
    # What is held stays as it is but for this mark, which nobody is shown.
    "ALTER TABLE vault_cube DISABLE TRIGGER USER",
    "UPDATE vault_cube SET has_sources = true WHERE id IN (SELECT cube_id FROM vault_cubesource)",
    "ALTER TABLE vault_cube ENABLE TRIGGER USER",
    "UPDATE vault_conversation SET title_is_copy = true",
]


class Migration(migrations.Migration):
    dependencies = [("vault", "0016_no_statistics_of_content")]

    operations = [
        migrations.AddField("cube", "has_sources", models.BooleanField(default=False)),
        migrations.AddField("conversation", "title_is_copy", models.BooleanField(default=False)),
        migrations.AlterField(
            "review",
            "kind",
            models.CharField(
                choices=[("pii", "pii"), ("source_withdrawn", "source_withdrawn")],
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            name="CubeSource",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("source_id", models.UUIDField()),
                ("version", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("quote", "quote"), ("extract", "extract"), ("text", "text")],
                        max_length=8,
                    ),
                ),
                (
                    "cube",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.cube",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "cube", "source_id"), name="source_is_named_once"),
                ],
                "indexes": [
                    models.Index(fields=["tenant", "source_id"], name="source_by_source"),
                    models.Index(
                        fields=["tenant", "cube"], name="source_of_text", condition=models.Q(("kind", "text"))
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CubeOrigin",
            fields=[("id", models.UUIDField(primary_key=True, serialize=False))],
            options={"db_table": "vault_cubeorigin", "managed": False},
        ),
        tenant_table("vault_cubesource", rights="SELECT, INSERT, UPDATE, DELETE"),
        RunSQL(reference("vault_cubesource", "cube_id", "vault_cube", on_delete="CASCADE"), RunSQL.noop),
        RunSQL(
            [ORIGIN, "REVOKE ALL ON vault_cubeorigin FROM PUBLIC", "GRANT SELECT ON vault_cubeorigin TO memos_app"],
            "DROP VIEW vault_cubeorigin",
        ),
        # Row security holds for the owner, too.
        RunSQL(
            [
                *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in TABLES),
                *TAKEN_OVER,
                *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in TABLES),
            ],
            RunSQL.noop,
        ),
    ]
