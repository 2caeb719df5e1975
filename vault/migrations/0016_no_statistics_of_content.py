"""PostgreSQL's statistics hold no copies of vectors and sealed bytes: a purge would not reach them."""

from django.db import migrations

from governance.tenancy_sql import without_statistics


class Migration(migrations.Migration):
    dependencies = [("vault", "0015_job_engine")]

    operations = [
        without_statistics("vault_embedding", "vector"),
        without_statistics("vault_cube", "content_hash"),
        without_statistics("vault_cubeversion", "sealed", "hash", "previous_hash"),
    ]
