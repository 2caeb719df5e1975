"""Files that wait for their import."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import tenant_table


class Migration(migrations.Migration):
    dependencies = [("vault", "0060_listing_vectors")]

    operations = [
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("form", models.CharField(max_length=16)),
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
        ),
        tenant_table("vault_upload", rights="SELECT, INSERT, DELETE", references=[("member_id", "governance_member")]),
    ]
