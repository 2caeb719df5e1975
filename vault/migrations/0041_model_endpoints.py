"""Language models of a tenant, and what each answer cost."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import tenant_table


class Migration(migrations.Migration):
    dependencies = [("vault", "0040_summaries")]

    operations = [
        migrations.CreateModel(
            name="ModelEndpoint",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("model", models.CharField(max_length=100)),
                ("address", models.CharField(max_length=500)),
                ("sealed_key", models.BinaryField(null=True)),
                ("position", models.PositiveSmallIntegerField()),
                ("timeout_seconds", models.PositiveSmallIntegerField()),
                ("retries", models.PositiveSmallIntegerField()),
                ("prompt_price", models.DecimalField(decimal_places=4, default=0, max_digits=10)),
                ("completion_price", models.DecimalField(decimal_places=4, default=0, max_digits=10)),
                ("currency", models.CharField(default="USD", max_length=3)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.tenant",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["tenant", "position"], name="model_endpoint_in_order")]},
        ),
        migrations.AddField(
            "turn", "cost", models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=14)
        ),
        migrations.AddField("turn", "currency", models.CharField(blank=True, db_default="", default="", max_length=3)),
        migrations.AddField("turn", "failed_models", models.JSONField(db_default=[], default=list)),
        tenant_table("vault_modelendpoint", rights="SELECT, INSERT, UPDATE, DELETE"),
    ]
