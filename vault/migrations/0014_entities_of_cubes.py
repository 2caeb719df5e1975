"""Entities of each cube, for walks, instead of links between cubes that name the same; and its share of questions."""

import django.contrib.postgres.fields
from django.db import migrations, models
from django.db.migrations.operations import RunSQL


class Migration(migrations.Migration):
    dependencies = [("vault", "0013_sizes_follow")]

    operations = [
        migrations.AddField(
            model_name="cube",
            name="entity_marks",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), default=list, size=None
            ),
        ),
        migrations.AddField(model_name="cube", name="asks", field=models.FloatField(default=0.0)),
        # Row security holds for the owner, too.
        RunSQL(
            [
                "ALTER TABLE vault_cubelink NO FORCE ROW LEVEL SECURITY",
                "DELETE FROM vault_cubelink WHERE kind = 'same_entity'",
                "ALTER TABLE vault_cubelink FORCE ROW LEVEL SECURITY",
            ],
            RunSQL.noop,
        ),
    ]
