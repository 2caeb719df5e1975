"""Stored pipelines of members."""

from django.db import migrations, models

from governance.tables import tenant_key, tenant_model
from governance.tenancy_sql import ALL, run, tenant_table


class Migration(migrations.Migration):
    dependencies = [("vault", "0012_parts_of_packs"), ("governance", "0004_functions")]

    operations = [
        tenant_model(
            "Pipeline",
            {"indexes": [models.Index(fields=["tenant", "member", "id"], name="pipeline_by_member")]},
            member=tenant_key("governance.member"),
            sealed=models.BinaryField(),
        ),
        run(tenant_table("vault_pipeline", ALL, {"member_id": "governance_member"})),
    ]
