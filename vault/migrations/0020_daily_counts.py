"""Counts of each day, for the overview."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
import vault.vocabulary
from governance.tenancy_sql import tenant_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0014_fair_schedules"),
        ("vault", "0019_index_eligibility"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyCount",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("day", models.DateField()),
                (
                    "name",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.Counted["LAYER"], vault.vocabulary.Counted["LAYER"]),
                            (vault.vocabulary.Counted["STATE"], vault.vocabulary.Counted["STATE"]),
                            (vault.vocabulary.Counted["SEMANTIC_TYPE"], vault.vocabulary.Counted["SEMANTIC_TYPE"]),
                            (vault.vocabulary.Counted["EXPIRY"], vault.vocabulary.Counted["EXPIRY"]),
                            (vault.vocabulary.Counted["SEARCH"], vault.vocabulary.Counted["SEARCH"]),
                            (vault.vocabulary.Counted["JOB"], vault.vocabulary.Counted["JOB"]),
                            (vault.vocabulary.Counted["USAGE"], vault.vocabulary.Counted["USAGE"]),
                            (vault.vocabulary.Counted["AUDIT"], vault.vocabulary.Counted["AUDIT"]),
                        ],
                        max_length=16,
                    ),
                ),
                ("value", models.CharField(max_length=40)),
                ("count", models.BigIntegerField()),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.member",
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
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
            options={
                "indexes": [models.Index(fields=["tenant", "name", "day"], name="daily_count_by_day")],
            },
        ),
        tenant_table(
            "vault_dailycount",
            rights="SELECT, INSERT, DELETE",
            references=[("namespace_id", "vault_namespace"), ("member_id", "governance_member")],
        ),
    ]
