"""Reports of packs, which the operator of the installation reads."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import router_access, router_function, tenant_table

REPORTS = """
  SELECT tenant_id, id FROM public.vault_packreport WHERE (decided_at IS NOT NULL) = decided ORDER BY id DESC LIMIT most
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0020_deleted_tenants"),
        ("vault", "0055_sync"),
    ]

    operations = [
        migrations.CreateModel(
            name="PackReport",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("publication_id", models.UUIDField()),
                ("publisher_id", models.UUIDField()),
                ("name", models.CharField(max_length=130)),
                ("title", models.CharField(max_length=120)),
                (
                    "reason",
                    models.CharField(
                        choices=[(one, one) for one in ("personal_data", "harmful", "wrong", "rights", "other")],
                        max_length=13,
                    ),
                ),
                ("text", models.CharField(blank=True, default="", max_length=500)),
                ("decision", models.CharField(blank=True, default="", max_length=7)),
                ("decided_at", models.DateTimeField(null=True)),
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
                    models.Index(condition=models.Q(("decided_at", None)), fields=["-id"], name="pack_report_open")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("decided_at", None)),
                        fields=("tenant", "publication_id", "member"),
                        name="member_has_one_open_report_of_a_pack",
                    )
                ],
            },
        ),
        tenant_table(
            "vault_packreport", rights="SELECT, INSERT, UPDATE", references=[("member_id", "governance_member")]
        ),
        router_access("vault_packreport", columns="tenant_id, id, decided_at"),
        router_function(
            "vault_pack_reports(decided boolean, most integer)", "TABLE (tenant_id uuid, id uuid)", REPORTS
        ),
    ]
