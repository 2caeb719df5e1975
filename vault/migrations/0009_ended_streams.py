"""Streams that have ended: what is left in their queue moved on, and their segments were distilled."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0008_upload_parts")]

    operations = [
        migrations.AddField("stream", "ended_at", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "stream",
            models.Index(fields=["tenant", "updated_at"], name="stream_open", condition=models.Q(ended_at=None)),
        ),
    ]
