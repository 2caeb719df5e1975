"""The layer that a memory had before a bulk action, so that the action can be undone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0034_blobs")]

    operations = [
        migrations.AddField(
            "actionitem", "layer", models.CharField(blank=True, db_default="", default="", max_length=12)
        )
    ]
