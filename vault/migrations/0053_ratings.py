"""Ratings of packs, on the subscriber's and on the publisher's side."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import governance.ids
from governance.tenancy_sql import tenant_table


class Migration(migrations.Migration):
    dependencies = [("vault", "0052_listings")]

    operations = [
        migrations.CreateModel(
            name="PackRating",
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
                ("source_id", models.UUIDField(null=True)),
                ("organisation", models.CharField(max_length=200)),
                ("stars", models.PositiveSmallIntegerField()),
                ("text", models.CharField(blank=True, default="", max_length=500)),
                ("number", models.CharField(blank=True, default="", max_length=20)),
                ("rated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "publication_id", "member"), name="member_rates_a_pack_once"
                    ),
                    models.UniqueConstraint(fields=("tenant", "source_id"), name="rating_is_reported_once"),
                    models.CheckConstraint(
                        condition=models.Q(("stars__range", (1, 5))), name="rating_has_one_to_five_stars"
                    ),
                ],
            },
        ),
        tenant_table(
            "vault_packrating",
            rights="SELECT, INSERT, UPDATE, DELETE",
            references=[("member_id", "governance_member")],
        ),
    ]
