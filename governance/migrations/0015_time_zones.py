"""Time zones of members, and an index of the jobs that wait for a person."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("governance", "0014_fair_schedules")]

    operations = [
        migrations.AddField("member", "timezone", models.CharField(max_length=64, default="UTC", db_default="UTC")),
        migrations.AddIndex(
            "job",
            models.Index(
                fields=["tenant", "-id"], name="governance_job_dead_letter", condition=models.Q(dead_letter=True)
            ),
        ),
    ]
