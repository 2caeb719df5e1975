"""Vectors of the contents of packs in the catalogue, and subscriptions to a part of a pack."""

import pgvector.django
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from vault.models.pack import SignatureField


class Migration(migrations.Migration):
    dependencies = [("vault", "0011_relations_of_people")]

    operations = [
        migrations.AddField("listing", "contents", ArrayField(pgvector.django.HalfVectorField(), null=True)),
        migrations.AddField("listing", "signatures", ArrayField(SignatureField(), null=True)),
        migrations.AddField("subscription", "selection", models.BinaryField(default=bytes, db_default=b"")),
    ]
