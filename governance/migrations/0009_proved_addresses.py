"""Proofs of memberships by their persons, and sign-in links that the operator made."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("governance", "0008_grants")]

    operations = [
        # With a default, since row-level security shows a migration no rows to update: former members count as proved.
        migrations.AddField("member", "proved_at", models.DateTimeField(null=True, blank=True, db_default=Now())),
        migrations.AlterField("member", "proved_at", models.DateTimeField(null=True, blank=True)),
        migrations.AddField("signinlink", "by_operator", models.BooleanField(default=False, db_default=False)),
    ]
