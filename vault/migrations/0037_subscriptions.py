"""Subscriptions and contracts, the memories that packs bring, and the reads of them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
from governance.tenancy_sql import reference, tenant_table
from vault.vocabulary import ContractState, Delivery, QuotaPeriod


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0018_noted_rotations"),
        ("vault", "0036_packs"),
    ]

    operations = [
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("state", models.CharField(choices=[(one, one) for one in ContractState], max_length=10)),
                ("number", models.CharField(blank=True, default="", max_length=20)),
                ("quota", models.PositiveBigIntegerField(null=True)),
                ("period", models.CharField(choices=[(one, one) for one in QuotaPeriod], max_length=6)),
                (
                    "purposes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200), default=list, size=None
                    ),
                ),
                ("price", models.CharField(blank=True, default="", max_length=100)),
                ("valid_to", models.DateTimeField(null=True)),
                ("reads", models.PositiveBigIntegerField(default=0)),
                ("reason", models.CharField(blank=True, default="", max_length=300)),
                ("publication_id", models.UUIDField()),
                ("publisher_id", models.UUIDField()),
                ("publisher", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=130)),
                ("title", models.CharField(max_length=120)),
                ("range", models.CharField(max_length=20)),
                ("delivery", models.CharField(choices=[(one, one) for one in Delivery], max_length=4)),
                ("available", models.CharField(blank=True, default="", max_length=20)),
                ("used", models.PositiveBigIntegerField(default=0)),
                ("period_from", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
        migrations.CreateModel(
            name="PackMemory",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("key", models.UUIDField()),
                ("digest", models.CharField(blank=True, max_length=64)),
                ("is_overridden", models.BooleanField(default=False)),
                (
                    "cube",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.cube",
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
                (
                    "subscription",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.subscription",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Contract",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("state", models.CharField(choices=[(one, one) for one in ContractState], max_length=10)),
                ("number", models.CharField(blank=True, default="", max_length=20)),
                ("quota", models.PositiveBigIntegerField(null=True)),
                ("period", models.CharField(choices=[(one, one) for one in QuotaPeriod], max_length=6)),
                (
                    "purposes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200), default=list, size=None
                    ),
                ),
                ("price", models.CharField(blank=True, default="", max_length=100)),
                ("valid_to", models.DateTimeField(null=True)),
                ("reads", models.PositiveBigIntegerField(default=0)),
                ("reason", models.CharField(blank=True, default="", max_length=300)),
                ("subscription_id", models.UUIDField()),
                ("subscriber_id", models.UUIDField()),
                ("subscriber", models.CharField(max_length=200)),
                (
                    "publication",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.publication",
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
                    models.UniqueConstraint(fields=("tenant", "subscription_id"), name="subscription_has_one_contract")
                ],
            },
        ),
        migrations.CreateModel(
            name="PackRead",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("subscription_id", models.UUIDField()),
                ("is_publishers", models.BooleanField(default=False)),
                ("number", models.PositiveBigIntegerField()),
                ("memories", models.PositiveIntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("is_sent", models.BooleanField(default=False)),
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
                        fields=("tenant", "subscription_id", "is_publishers", "number"),
                        name="pack_read_is_counted_once",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="subscription",
            index=models.Index(fields=["tenant", "namespace"], name="subscription_by_namespace"),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", [ContractState.REQUESTED, ContractState.ACTIVE])),
                fields=("tenant", "publication_id"),
                name="publication_is_subscribed_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="packmemory",
            constraint=models.UniqueConstraint(
                fields=("tenant", "subscription", "key"), name="pack_memory_is_installed_once"
            ),
        ),
        tenant_table(
            "vault_subscription",
            references=[("namespace_id", "vault_namespace"), ("member_id", "governance_member")],
        ),
        tenant_table(
            "vault_packmemory",
            rights="SELECT, INSERT, UPDATE, DELETE",
            references=[("subscription_id", "vault_subscription")],
        ),
        # Who purges a memory need not know that a pack brought it.
        RunSQL(reference("vault_packmemory", "cube_id", "vault_cube", on_delete="CASCADE"), RunSQL.noop),
        tenant_table("vault_contract", references=[("publication_id", "vault_publication")]),
        tenant_table("vault_packread", rights="SELECT, INSERT, UPDATE (is_sent)"),
    ]
