"""An index of the deleted memories, so that the trash is listed without reading all others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vault", "0032_quarantine"),
    ]

    operations = [
        migrations.AddIndex(
            "cube",
            models.Index(fields=["tenant", "-id"], name="cube_in_trash", condition=models.Q(deleted_at__isnull=False)),
        ),
    ]
