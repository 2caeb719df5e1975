"""Postings of common words, packed; and the triggers that drop what a change of a posting makes untrue."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import derived_table, without_statistics

# Nearly all postings are those of new cubes, whose ids are greater than any `until`: the first two questions end it.
# One lock for each tenant, in place of one for each word: two who drop the same words cannot wait for each other.
DROP = """
CREATE FUNCTION vault_packed_words_drop() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  latest uuid;
  dropped record;
BEGIN
  -- An older snapshot would not see a word that was placed since.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'postings are written in READ COMMITTED' USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT word.until INTO latest FROM vault_packedword AS word ORDER BY word.until DESC LIMIT 1;
  IF latest IS NULL OR NOT EXISTS (SELECT FROM changed WHERE changed.cube_id <= latest) THEN
    RETURN NULL;
  END IF;
  IF NOT EXISTS (
    SELECT FROM changed JOIN vault_packedword AS word ON word.tenant_id = changed.tenant_id AND word.term = changed.term
    WHERE changed.cube_id <= word.until) THEN
    RETURN NULL;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('packed words ' || one.tenant_id, 0))
  FROM (SELECT DISTINCT changed.tenant_id FROM changed ORDER BY changed.tenant_id) AS one;
  FOR dropped IN
    DELETE FROM vault_packedword AS word WHERE EXISTS (
      SELECT FROM changed WHERE changed.tenant_id = word.tenant_id AND changed.term = word.term
        AND changed.cube_id <= word.until)
    RETURNING word.tenant_id, word.term
  LOOP
    DELETE FROM vault_packedpostings AS packed
    WHERE packed.tenant_id = dropped.tenant_id AND packed.term = dropped.term;
  END LOOP;
  RETURN NULL;
END $$
"""
TRIGGERS = [
    f"CREATE TRIGGER packed_words_drop_with_{name} AFTER {event} ON vault_posting REFERENCING {rows} TABLE AS changed "
    "FOR EACH STATEMENT EXECUTE FUNCTION vault_packed_words_drop()"
    for name, event, rows in (
        ("inserted", "INSERT", "NEW"),
        ("former", "UPDATE", "OLD"),
        ("updated", "UPDATE", "NEW"),
        ("deleted", "DELETE", "OLD"),
    )
]
NO_TRIGGERS = [
    f"DROP TRIGGER packed_words_drop_with_{name} ON vault_posting"
    for name in ("inserted", "former", "updated", "deleted")
]


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0008_grants"),
        ("vault", "0010_common_words"),
    ]

    operations = [
        migrations.CreateModel(
            name="Packing",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="governance.tenant",
                    ),
                ),
                ("cubes", models.PositiveBigIntegerField()),
                ("words", models.PositiveIntegerField()),
                ("packed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="PackedPostings",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "term",
                        "namespace_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("term", models.BigIntegerField()),
                ("postings", models.BinaryField()),
                (
                    "namespace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.namespace",
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
        ),
        migrations.CreateModel(
            name="PackedWord",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id", "term", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("term", models.BigIntegerField()),
                ("until", models.UUIDField()),
                ("is_packed", models.BooleanField(db_default=False, default=False)),
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
        ),
        migrations.DeleteModel(
            name="CommonWord",
        ),
        migrations.DeleteModel(
            name="CommonWordsCount",
        ),
        migrations.AddIndex(
            model_name="packedword",
            index=models.Index(fields=["tenant", "until"], name="packed_word_by_until"),
        ),
        derived_table("vault_packing"),
        derived_table("vault_packedword"),
        derived_table("vault_packedpostings", references=[("namespace_id", "vault_namespace")]),
        without_statistics("vault_packedword", "tenant_id"),
        without_statistics("vault_packedpostings", "tenant_id", "namespace_id"),
        RunSQL(
            "ALTER TABLE vault_packedpostings ALTER COLUMN postings SET STORAGE EXTERNAL",  # ids do not compress
            RunSQL.noop,
        ),
        RunSQL([DROP, *TRIGGERS], [*NO_TRIGGERS, "DROP FUNCTION vault_packed_words_drop()"]),
    ]
