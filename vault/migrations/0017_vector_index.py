"""The vector index outside PostgreSQL that has copies of a tenant's vectors."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0015_memory_forms")]

    operations = [
        migrations.AddField(
            "embeddingmodel", "vector_index", models.CharField(max_length=40, blank=True, default="", db_default="")
        ),
        migrations.AddField("embeddingmodel", "is_index_filled", models.BooleanField(default=False, db_default=False)),
    ]
