"""Policies for the limits of the examinations of adapters."""

from django.db import migrations, models

KINDS = ("retention", "sharing", "purpose", "pii", "quota", "examination")


class Migration(migrations.Migration):
    dependencies = [("governance", "0006_hidden_setup")]

    operations = [
        migrations.AlterField(
            "policy", "kind", models.CharField(max_length=12, choices=[(kind, kind) for kind in KINDS])
        ),
    ]
