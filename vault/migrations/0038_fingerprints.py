"""The centroid of the questions that a memory answered."""

import pgvector.django.halfvec
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0037_subscriptions")]

    operations = [
        migrations.AddField("cubeuse", "fingerprint", pgvector.django.halfvec.HalfVectorField(null=True)),
        migrations.AddField(
            "cubeuse", "fingerprint_model", models.CharField(blank=True, db_default="", default="", max_length=100)
        ),
        migrations.AddField("cubeuse", "fingerprint_count", models.PositiveIntegerField(db_default=0, default=0)),
    ]
