"""Cubes by when they happened, or were stored: a question that names a time looks there."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0011_packed_postings")]

    operations = [
        migrations.AddIndex(
            model_name="cube",
            index=models.Index(
                models.F("tenant"),
                models.F("namespace"),
                models.Case(models.When(event_time=None, then="created_at"), default="event_time"),
                condition=models.Q(deleted_at=None),
                name="cube_by_time",
            ),
        ),
    ]
