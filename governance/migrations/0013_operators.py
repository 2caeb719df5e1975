"""Persons who operate the installation."""

from django.db import migrations, models
from django.db.migrations.operations import RunSQL


class Migration(migrations.Migration):
    dependencies = [("governance", "0012_schedules")]

    operations = [
        migrations.AddField("user", "is_operator", models.BooleanField(default=False, db_default=False)),
        RunSQL("GRANT UPDATE (is_operator) ON governance_user TO memos_app", RunSQL.noop),
    ]
