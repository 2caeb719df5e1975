"""Files that are uploaded in parts, and the parts of what an import job stores."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0004_functions"),
        ("vault", "0007_default_embedder"),
    ]

    operations = [
        migrations.AddField(
            model_name="upload",
            name="number",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="upload",
            name="part_of",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="upload",
            name="size",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name="upload",
            name="member",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="governance.member",
            ),
        ),
        migrations.AddConstraint(
            model_name="upload",
            constraint=models.UniqueConstraint(fields=("tenant", "part_of", "number"), name="part_is_stored_once"),
        ),
    ]
