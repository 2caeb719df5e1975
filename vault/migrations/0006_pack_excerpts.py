"""Excerpts of a version for the pages of packs and for trials, made once from its verified file."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0005_pack_terms")]

    operations = [
        migrations.AddField("packversion", "preview", models.BinaryField(default=bytes, db_default=b"")),
        migrations.AddField("packversion", "trial", models.BinaryField(default=bytes, db_default=b"")),
        migrations.AddField(
            "packversion", "trial_model", models.CharField(max_length=100, blank=True, default="", db_default="")
        ),
    ]
