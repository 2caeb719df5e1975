"""Views of the list of memories that a member saved."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import tenant_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0008_grants"),
        ("vault", "0017_sources"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("sealed", models.BinaryField()),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
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
                "indexes": [models.Index(fields=["tenant", "member", "id"], name="saved_view_by_member")],
            },
        ),
        tenant_table(
            "vault_savedview",
            rights="SELECT, INSERT, DELETE",
            references=[("member_id", "governance_member")],
        ),
    ]
