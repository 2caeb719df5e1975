"""Words that many memories of a namespace contain."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from governance.tenancy_sql import derived_table, without_statistics


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0008_grants"),
        ("vault", "0009_grants"),
    ]

    operations = [
        migrations.CreateModel(
            name="CommonWordsCount",
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
                ("cubes", models.PositiveBigIntegerField()),
                ("counted_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="CommonWord",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "term",
                        "namespace_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("term", models.BigIntegerField()),
                ("cubes", models.PositiveIntegerField()),
                (
                    "namespace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.namespace",
                    ),
                ),
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
        derived_table("vault_commonwordscount"),
        derived_table("vault_commonword", references=[("namespace_id", "vault_namespace")]),
        without_statistics("vault_commonword", "tenant_id", "namespace_id"),
    ]
