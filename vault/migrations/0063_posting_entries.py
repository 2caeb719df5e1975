"""A posting holds what a search reads of it as one value, which the key's index includes."""

from django.db import migrations, models
from django.db.migrations.operations import RunSQL
from django.db.models.expressions import RawSQL

ENTRY = (
    "CASE WHEN frequency > 0 THEN uuid_send(cube_id) || int8send(coalesce(session_token, 0)) || "
    "int8send((coalesce(position, 0)::bigint << 32) | (length::bigint << 16) | frequency) END"
)
MODELS = {"posting": "vault_posting", "archivedposting": "vault_archivedposting"}
INCLUDED = "namespace_id, frequency, entry, layer, type, persona_id, happened_at"


class Migration(migrations.Migration):
    dependencies = [("vault", "0062_dialogue_only")]

    operations = [
        *(RunSQL(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey", RunSQL.noop) for table in MODELS.values()),
        *(
            migrations.AddField(
                model,
                "entry",
                models.GeneratedField(
                    expression=RawSQL(ENTRY, []), output_field=models.BinaryField(null=True), db_persist=True
                ),
            )
            for model in MODELS
        ),
        *(
            RunSQL(f"ALTER TABLE {table} ADD PRIMARY KEY (tenant_id, term, cube_id) INCLUDE ({INCLUDED})", RunSQL.noop)
            for table in MODELS.values()
        ),
    ]
