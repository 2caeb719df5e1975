"""Vectors of the texts in the catalogue, for searches by meaning."""

import pgvector.django.halfvec
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0059_pack_wordings")]

    operations = [
        migrations.AddField("listing", "vector", pgvector.django.halfvec.HalfVectorField(null=True)),
        migrations.AddField(
            "listing", "model", models.CharField(blank=True, db_default="", default="", max_length=100)
        ),
    ]
