"""Vectors of the contents of packs in the catalogue."""

import pgvector.django
from django.contrib.postgres.fields import ArrayField
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("vault", "0010_passage_vectors")]

    operations = [
        migrations.AddField("listing", "contents", ArrayField(pgvector.django.HalfVectorField(), null=True)),
    ]
