"""A stored reply names what it shows, so that it can go with it."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("governance", "0002_law")]

    operations = [
        migrations.AddField(
            model_name="idempotencykey",
            name="object_ids",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
        )
    ]
