"""Vectors of the passages of long texts, beside those of the whole texts."""

from django.db import migrations, models

from governance.tables import composite_key


class Migration(migrations.Migration):
    atomic = False  # the new key is built beside writes, and then takes the place of the former one
    dependencies = [("vault", "0009_ended_streams")]

    operations = [
        migrations.AddField("embedding", "part", models.PositiveSmallIntegerField(default=0, db_default=0)),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    [
                        "DROP INDEX CONCURRENTLY IF EXISTS embedding_key",
                        "CREATE UNIQUE INDEX CONCURRENTLY embedding_key "
                        "ON vault_embedding (tenant_id, cube_id, model, part)",
                    ],
                    migrations.RunSQL.noop,
                ),
                migrations.RunSQL(
                    "ALTER TABLE vault_embedding DROP CONSTRAINT vault_embedding_pkey, "
                    "ADD CONSTRAINT vault_embedding_pkey PRIMARY KEY USING INDEX embedding_key",
                    migrations.RunSQL.noop,
                ),
            ],
            state_operations=[
                migrations.AlterField("embedding", "pk", composite_key("tenant_id", "cube_id", "model", "part"))
            ],
        ),
    ]
