"""Packs that a subscriber trusts as official sources."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0056_reports")]

    operations = [
        migrations.AddField("subscription", "is_trusted", models.BooleanField(db_default=False, default=False)),
    ]
