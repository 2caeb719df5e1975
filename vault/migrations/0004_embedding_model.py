"""The embedding model of each tenant. A tenant with vectors keeps the model of most of them."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations import RunSQL
from django.db.models.functions import Now

from governance.tenancy_sql import CURRENT_TENANT, router_access, router_function

# The owner is bound by forced policies too, and would see no vector.
BACKFILL = [
    "ALTER TABLE vault_embedding NO FORCE ROW LEVEL SECURITY",
    "INSERT INTO vault_embeddingmodel (tenant_id, model) SELECT DISTINCT ON (tenant_id) tenant_id, model "
    "FROM (SELECT tenant_id, model, count(*) AS vectors FROM vault_embedding GROUP BY tenant_id, model) AS counted "
    "ORDER BY tenant_id, vectors DESC, model",
    "ALTER TABLE vault_embedding FORCE ROW LEVEL SECURITY",
]
LAW = [
    "ALTER TABLE vault_embeddingmodel ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE vault_embeddingmodel FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY tenant_only ON vault_embeddingmodel USING (tenant_id = {CURRENT_TENANT}) "
    f"WITH CHECK (tenant_id = {CURRENT_TENANT})",
    "REVOKE ALL ON vault_embeddingmodel FROM PUBLIC",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON vault_embeddingmodel TO memos_app",
]


class Migration(migrations.Migration):
    dependencies = [("vault", "0003_jobs")]

    operations = [
        migrations.CreateModel(
            name="EmbeddingModel",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="governance.tenant",
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("since", models.DateTimeField(db_default=Now())),
            ],
        ),
        RunSQL([*BACKFILL, *LAW], RunSQL.noop),
        router_access("vault_embeddingmodel", columns="tenant_id, model"),
        router_function(
            "vault_tenants_to_reembed(wanted text)",
            "SETOF uuid",
            "SELECT tenant_id FROM vault_embeddingmodel WHERE model <> wanted ORDER BY tenant_id",
        ),
    ]
