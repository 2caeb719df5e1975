"""Changes that subscribers propose to publishers, on both sides."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import tenant_table


class Migration(migrations.Migration):
    dependencies = [("vault", "0057_trusted_packs")]

    operations = [
        migrations.CreateModel(
            name="PackProposal",
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
                ("pack", models.CharField(max_length=130)),
                ("key", models.UUIDField()),
                ("number", models.CharField(max_length=20)),
                ("source_id", models.UUIDField(null=True)),
                ("source_tenant", models.UUIDField(null=True)),
                ("organisation", models.CharField(max_length=200)),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "open"), ("accepted", "accepted"), ("declined", "declined")], max_length=10
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                ("sealed", models.BinaryField()),
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
                "indexes": [models.Index(fields=["tenant", "publication_id", "state"], name="proposal_by_publication")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "source_id"), name="proposal_is_delivered_once")
                ],
            },
        ),
        tenant_table(
            "vault_packproposal",
            rights="SELECT, INSERT, UPDATE",
            references=[("member_id", "governance_member")],
        ),
    ]
