"""Cubes by when they happened, or were stored: a question that names a time looks there."""

from django.db import migrations, models
from django.db.models.functions import Coalesce


class Migration(migrations.Migration):
    dependencies = [("vault", "0011_packed_postings")]

    operations = [
        migrations.AddIndex(
            model_name="cube",
            index=models.Index(
                models.F("tenant"),
                models.F("namespace"),
                Coalesce("event_time", "created_at"),
                condition=models.Q(deleted_at=None),
                name="cube_by_time",
            ),
        ),
    ]
