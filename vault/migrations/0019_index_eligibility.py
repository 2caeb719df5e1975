"""Index eligibility: what leaves the searchable states leaves the index, and filters are columns of the index."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import derived_table, without_statistics

TABLES = ("vault_cube", "vault_posting", "vault_embedding", "vault_packedword", "vault_packedpostings", "vault_packing")
LAYERS = "CASE cube.layer WHEN 'short_term' THEN 1 WHEN 'mid_term' THEN 2 ELSE 3 END"
TYPES = "CASE cube.type WHEN 'plaintext' THEN 1 WHEN 'activation' THEN 2 ELSE 3 END"
COLUMNS = (
    "tenant_id, term, cube_id, namespace_id, frequency, length, session_token, position, layer, type, persona_id, "
    "happened_at"
)
INCLUDED = "namespace_id, frequency, length, session_token, position, layer, type, persona_id, happened_at"


def _key(table: str) -> list[str]:
    """The key of a table of postings carries every column, so that a search reads the index alone."""
    return [
        f"ALTER TABLE {table} ADD PRIMARY KEY (tenant_id, term, cube_id) INCLUDE ({INCLUDED})",
        f"ALTER TABLE {table} SET (autovacuum_vacuum_insert_scale_factor = 0.02)",
    ]


# Each changed row would be inserted into the graph of an index of vectors again: these are made anew at the end.
SAVE_VECTOR_INDEXES = """
DO $$
DECLARE one record;
BEGIN
  CREATE TEMPORARY TABLE saved_index ON COMMIT DROP AS
    SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'vault_embedding' AND indexdef LIKE '%USING hnsw%';
  FOR one IN SELECT * FROM saved_index LOOP
    EXECUTE format('DROP INDEX %I', one.indexname);
  END LOOP;
END $$
"""
MAKE_VECTOR_INDEXES = """
DO $$
DECLARE one record;
BEGIN
  FOR one IN SELECT * FROM saved_index LOOP
    EXECUTE one.indexdef;
  END LOOP;
END $$
"""
# Row security holds for the owner, too. Rows are changed without the key, which is made once for all of them. What is
# packed is packed anew by the next job, with its facets.
FILL = [
    *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in TABLES),
    "ALTER TABLE vault_posting DISABLE TRIGGER USER",
    "ALTER TABLE vault_cube DISABLE TRIGGER USER",
    "ALTER TABLE vault_posting DROP CONSTRAINT vault_posting_pkey",
    "ALTER TABLE vault_archivedposting DROP CONSTRAINT vault_archivedposting_pkey",
    SAVE_VECTOR_INDEXES,
    "DELETE FROM vault_packedpostings",
    "DELETE FROM vault_packedword",
    "DELETE FROM vault_packing",
    "UPDATE vault_cube SET is_indexed = false WHERE deleted_at IS NOT NULL OR state NOT IN ('generated', 'activated')",
    f"UPDATE vault_posting AS posting SET layer = {LAYERS}, type = {TYPES}, persona_id = cube.persona_id, "
    "happened_at = coalesce(cube.event_time, cube.created_at) FROM vault_cube AS cube "
    "WHERE cube.tenant_id = posting.tenant_id AND cube.id = posting.cube_id",
    f"INSERT INTO vault_archivedposting ({COLUMNS}) "
    f"SELECT {', '.join(f'posting.{column}' for column in COLUMNS.split(', '))} FROM vault_posting AS posting "
    "JOIN vault_cube AS cube ON cube.tenant_id = posting.tenant_id AND cube.id = posting.cube_id "
    "WHERE cube.state = 'archived' AND cube.deleted_at IS NULL",
    "DELETE FROM vault_posting AS posting USING vault_cube AS cube "
    "WHERE cube.tenant_id = posting.tenant_id AND cube.id = posting.cube_id AND NOT cube.is_indexed",
    "DELETE FROM vault_embedding AS embedding USING vault_cube AS cube "
    "WHERE cube.tenant_id = embedding.tenant_id AND cube.id = embedding.cube_id AND NOT cube.is_indexed",
    f"UPDATE vault_embedding AS embedding SET layer = {LAYERS}, type = {TYPES}, persona_id = cube.persona_id, "
    "happened_at = coalesce(cube.event_time, cube.created_at) "
    "FROM vault_cube AS cube WHERE cube.tenant_id = embedding.tenant_id AND cube.id = embedding.cube_id",
    MAKE_VECTOR_INDEXES,
    "ALTER TABLE vault_cube ENABLE TRIGGER USER",
    "ALTER TABLE vault_posting ENABLE TRIGGER USER",
    *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in TABLES),
]

WITHOUT = "SELECT -1 AS sign, former.* FROM former WHERE former.deleted_at IS NULL AND former.is_indexed"
INSTEAD = """
    SELECT one.* FROM former JOIN present USING (tenant_id, id) CROSS JOIN LATERAL (
      SELECT -1 AS sign, (former).* UNION ALL SELECT 1, (present).*) AS one
    WHERE (former.namespace_id, former.term_count, former.expires_at, former.deleted_at, former.is_indexed)
      IS DISTINCT FROM
        (present.namespace_id, present.term_count, present.expires_at, present.deleted_at, present.is_indexed)
      AND one.deleted_at IS NULL AND one.is_indexed"""

# Sizes are held in one order, before it is asked when they were counted; that there is none yet is held, too. A change
# is written even where it comes to nothing: by it is seen that what is hidden of a size may be another.
FOLLOW = """
CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql
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
FOLLOWING = {
    "vault_sizes_follow_a_change": (INSTEAD, "UPDATE", "OLD TABLE AS former NEW TABLE AS present"),
    "vault_sizes_follow_a_loss": (WITHOUT, "DELETE", "OLD TABLE AS former"),
}


INDEXED = (
    ("layer", models.PositiveSmallIntegerField(default=3)),
    ("type", models.PositiveSmallIntegerField(default=1)),
    ("persona_id", models.UUIDField(null=True)),
    ("happened_at", models.DateTimeField(null=True)),
)


class Migration(migrations.Migration):
    dependencies = [("vault", "0018_saved_views")]

    operations = [
        migrations.AddField("cube", "is_indexed", models.BooleanField(default=True, db_default=True)),
        *(migrations.AddField("posting", name, field) for name, field in INDEXED),
        *(migrations.AddField("embedding", name, field) for name, field in INDEXED),
        migrations.AddField("packedpostings", "facets", models.BinaryField(default=b"")),
        migrations.CreateModel(
            name="ArchivedPosting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id", "term", "cube_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("term", models.BigIntegerField()),
                ("cube_id", models.UUIDField()),
                ("namespace_id", models.UUIDField()),
                ("frequency", models.PositiveSmallIntegerField()),
                ("length", models.PositiveSmallIntegerField()),
                ("session_token", models.BigIntegerField(null=True)),
                ("position", models.PositiveIntegerField(null=True)),
                ("layer", models.PositiveSmallIntegerField()),
                ("type", models.PositiveSmallIntegerField()),
                ("persona_id", models.UUIDField(null=True)),
                ("happened_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.tenant",
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        derived_table("vault_archivedposting"),
        RunSQL([*FILL], RunSQL.noop),
        *(
            migrations.AlterField(table, name, field)
            for table in ("posting", "embedding")
            for name, field in (
                ("layer", models.PositiveSmallIntegerField()),
                ("type", models.PositiveSmallIntegerField()),
                ("happened_at", models.DateTimeField()),
            )
        ),
        migrations.AlterField("packedpostings", "facets", models.BinaryField()),
        RunSQL(
            [
                *_key("vault_posting"),
                *_key("vault_archivedposting"),
                "ALTER TABLE vault_packedpostings ALTER COLUMN facets SET STORAGE EXTERNAL",
                *(FOLLOW.format(name=name, changed=changed) for name, (changed, _, _) in FOLLOWING.items()),
            ],
            RunSQL.noop,
        ),
        migrations.RemoveIndex("cube", "cube_by_expiry"),
        migrations.AddIndex(
            "cube",
            models.Index(
                fields=["tenant", "expires_at"],
                condition=models.Q(expires_at__isnull=False, is_indexed=True),
                name="cube_indexed_by_expiry",
            ),
        ),
        *(
            migrations.AddIndex("embedding", models.Index(fields=["tenant", *fields], name=f"embedding_by_{name}"))
            for name, fields in (
                ("persona", ["persona_id"]),
                ("layer", ["layer", "type"]),
                ("time", ["happened_at"]),
            )
        ),
        without_statistics("vault_embedding", "layer", "type", "persona_id", "happened_at"),
    ]
