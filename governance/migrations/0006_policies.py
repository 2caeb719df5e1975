"""Policies and their versions, what quotas count, and how a transaction learns that policies have changed."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations import RunSQL
from django.db.models.functions import Now

import governance.ids
from governance.tenancy_sql import append_only, reference, tenant_table

# With the rights of its caller: row-level security shows it the tenant that it has just set, and no other.
ENTER = """
CREATE FUNCTION governance_enter(wanted uuid) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', wanted::text, true);
  RETURN coalesce((SELECT policy_epoch FROM public.governance_tenant WHERE id = wanted), 0);
END $$
"""
KINDS = ["retention", "sharing", "purpose", "pii", "quota"]
HOLDERS = ["tenant", "member", "api_key"]
MEASURES = ["memories", "bytes", "requests_per_minute", "model_tokens_per_month"]


def _tenant_model() -> "list[tuple[str, models.Field[Any, Any]]]":
    """The columns that every table of a tenant has."""
    return [
        ("id", models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False)),
        ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
        (
            "tenant",
            models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="governance.tenant",
            ),
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [("governance", "0005_audit_law")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="policy_epoch",
            field=models.PositiveBigIntegerField(db_default=0, default=0),
        ),
        RunSQL(ENTER, "DROP FUNCTION governance_enter(uuid)"),
        migrations.CreateModel(
            name="Policy",
            fields=[
                *_tenant_model(),
                ("kind", models.CharField(choices=[(one, one) for one in KINDS], max_length=12)),
                ("name", models.CharField(max_length=100)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={"constraints": [models.UniqueConstraint(fields=["tenant", "name"], name="policy_name_is_unique")]},
        ),
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                *_tenant_model(),
                ("number", models.PositiveIntegerField()),
                ("enabled", models.BooleanField()),
                ("document", models.JSONField()),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("principal_kind", models.CharField(max_length=10)),
                ("principal_id", models.UUIDField()),
                (
                    "policy",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.policy",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["tenant", "policy", "number"], name="policy_version_number_is_unique"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Usage",
            fields=[
                *_tenant_model(),
                ("holder_kind", models.CharField(choices=[(one, one) for one in HOLDERS], max_length=10)),
                ("holder_id", models.UUIDField()),
                ("measure", models.CharField(choices=[(one, one) for one in MEASURES], max_length=30)),
                ("used", models.BigIntegerField(db_default=0, default=0)),
                ("epoch", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("month", models.DateField(null=True)),
                ("counted_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["tenant", "holder_kind", "holder_id", "measure"], name="usage_is_unique_for_holder"
                    )
                ]
            },
        ),
        tenant_table("governance_policy"),
        tenant_table("governance_policyversion", rights="SELECT, INSERT"),
        RunSQL(reference("governance_policyversion", "policy_id", "governance_policy"), RunSQL.noop),
        append_only("governance_policyversion"),
        tenant_table("governance_usage"),
    ]
