"""A digest of notices by mail, for each member who wants one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("governance", "0015_time_zones")]

    operations = [
        migrations.AddField("member", "wants_digest", models.BooleanField(default=True, db_default=True)),
        migrations.AddField("member", "digest_at", models.DateTimeField(null=True, blank=True)),
        migrations.AddField("member", "digest_counts", models.JSONField(default=dict, db_default={})),
    ]
