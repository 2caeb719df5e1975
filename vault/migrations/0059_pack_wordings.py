"""Marked sentences of packs, in both wordings."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0058_pack_proposals")]

    operations = [
        migrations.AddField("packversion", "wordings", models.BinaryField(db_default=b"", default=bytes)),
    ]
