"""Tenants' schedules, and the rights of the role that serves on the installation's own periodic tasks."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import grant, router_access, router_function, tenant_table

DUE = """
  SELECT schedule.id, schedule.tenant_id FROM public.governance_schedule AS schedule
  WHERE schedule.enabled AND schedule.next_run_at <= clock_timestamp()
  ORDER BY schedule.next_run_at LIMIT least(most, 1000)
"""
WRITTEN = ("crontabschedule", "intervalschedule", "periodictask", "periodictasks")
READ = ("clockedschedule", "solarschedule")


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0011_health"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("kind", models.CharField(max_length=40)),
                ("cron", models.CharField(max_length=100)),
                ("timezone", models.CharField(max_length=64)),
                ("enabled", models.BooleanField(default=True)),
                ("settings", models.JSONField(default=dict)),
                ("principal_kind", models.CharField(max_length=10)),
                ("principal_id", models.UUIDField()),
                ("next_run_at", models.DateTimeField(null=True)),
                (
                    "last_job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
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
                "indexes": [
                    models.Index(condition=models.Q(("enabled", True)), fields=["next_run_at"], name="schedule_due")
                ],
            },
        ),
        tenant_table(
            "governance_schedule",
            rights="SELECT, INSERT, UPDATE, DELETE",
            references=[("last_job_id", "governance_job")],
        ),
        router_access("governance_schedule", columns="id, tenant_id, enabled, next_run_at"),
        router_function("governance_schedules_due(most integer)", "TABLE (id uuid, tenant_id uuid)", DUE),
        grant("SELECT, INSERT, UPDATE", [f"django_celery_beat_{name}" for name in WRITTEN]),
        grant("SELECT", [f"django_celery_beat_{name}" for name in READ]),
    ]
