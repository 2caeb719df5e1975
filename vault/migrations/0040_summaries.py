"""Summaries of namespaces and conversations: references to the sentences that stand for them."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL
from django.db.models import Q

import governance.ids
from governance.tenancy_sql import reference, tenant_table


def _place(model: str) -> "models.ForeignKey[models.Model | None, models.Model | None]":
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        null=True,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to=model,
    )


class Migration(migrations.Migration):
    dependencies = [("vault", "0039_sizes_by_sets")]

    operations = [
        migrations.CreateModel(
            name="Summary",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("passages", models.JSONField(default=list)),
                ("memories", models.PositiveIntegerField(default=0)),
                ("model", models.CharField(blank=True, default="", max_length=100)),
                ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("conversation", _place("vault.conversation")),
                ("namespace", _place("vault.namespace")),
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
        ),
        migrations.AddConstraint(
            model_name="summary",
            constraint=models.UniqueConstraint(
                fields=("tenant", "namespace", "conversation"), name="place_has_one_summary", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="summary",
            constraint=models.CheckConstraint(
                condition=Q(namespace=None) ^ Q(conversation=None), name="summary_is_of_one_place"
            ),
        ),
        tenant_table("vault_summary", rights="SELECT, INSERT, UPDATE, DELETE"),
        *(
            RunSQL(reference("vault_summary", f"{place}_id", f"vault_{place}", on_delete="CASCADE"), RunSQL.noop)
            for place in ("namespace", "conversation")
        ),
    ]
