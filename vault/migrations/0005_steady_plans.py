"""Plans that a new tenant's first thousand memories do not upset."""

from django.db import migrations

from governance.tenancy_sql import without_statistics


class Migration(migrations.Migration):
    dependencies = [("vault", "0004_embedding_model")]

    operations = [
        without_statistics("vault_cube", "tenant_id", "namespace_id"),
        without_statistics("vault_cubeversion", "tenant_id", "namespace_id"),
        without_statistics("vault_posting", "tenant_id", "namespace_id"),
        without_statistics("vault_embedding", "tenant_id", "namespace_id"),
        without_statistics("vault_cubelink", "tenant_id"),
        without_statistics("vault_cubeuse", "tenant_id"),
    ]
