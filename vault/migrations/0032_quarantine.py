"""Quarantine: a memory that waits in the inbox, with all that was derived from it."""

from django.db import migrations, models
from django.db.migrations.operations import RunSQL

from vault.vocabulary import ReviewKind

STORED = "cube.deleted_at IS NULL AND (cube.expires_at IS NULL OR cube.expires_at > statement_timestamp())"
ORIGIN = """
CREATE OR REPLACE VIEW vault_cubeorigin WITH (security_invoker = true) AS
SELECT cube.id, cube.tenant_id, source.cube_id AS derived, cube.namespace_id, cube.persona_id, cube.subject_id,
  cube.owner_id, cube.access_level, cube.semantic_type, cube.sensitivity, cube.tags, cube.importance, cube.priority,
  cube.event_time, cube.valid_from, cube.valid_to, cube.expires_at, cube.type,
  {stored} AND EXISTS (
    SELECT 1 FROM public.vault_cubeversion AS version
    WHERE version.tenant_id = source.tenant_id AND version.cube_id = source.source_id
      AND version.number = source.version AND octet_length(version.sealed) > 0
  ) AS stands
FROM public.vault_cubesource AS source JOIN public.vault_cube AS cube
  ON cube.tenant_id = source.tenant_id AND cube.id = source.source_id
"""


class Migration(migrations.Migration):
    dependencies = [("vault", "0031_fusion_proposals")]

    operations = [
        migrations.AddField("cube", "is_quarantined", models.BooleanField(default=False, db_default=False)),
        migrations.AlterField(
            "review", "kind", models.CharField(choices=[(kind, kind) for kind in ReviewKind], max_length=20)
        ),
        RunSQL(ORIGIN.format(stored=f"NOT cube.is_quarantined AND {STORED}"), ORIGIN.format(stored=STORED)),
    ]
