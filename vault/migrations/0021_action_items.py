"""The memories that a bulk action changed."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import tenant_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0015_time_zones"),
        ("vault", "0020_daily_counts"),
    ]

    operations = [
        migrations.CreateModel(
            name="ActionItem",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("cube_id", models.UUIDField()),
                ("version", models.PositiveIntegerField()),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.job",
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
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "job", "cube_id"), name="action_names_a_memory_once")
                ],
            },
        ),
        tenant_table("vault_actionitem", rights="SELECT, INSERT", references=[("job_id", "governance_job")]),
    ]
