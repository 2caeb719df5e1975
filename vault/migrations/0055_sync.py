"""Namespaces that are kept in step with another installation, and which memory is which there."""

from typing import Any

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
from governance.tenancy_sql import reference, tenant_table

ID = models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False)
CREATED_AT = models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)
DIRECTIONS = [("pull", "pull"), ("push", "push"), ("both", "both")]
ALL = "SELECT, INSERT, UPDATE, DELETE"


def tenant() -> "models.ForeignKey[Any, Any]":
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to="governance.tenant",
    )


class Migration(migrations.Migration):
    dependencies = [("vault", "0054_short_term_pages")]

    operations = [
        migrations.CreateModel(
            name="SyncPeer",
            fields=[
                ("id", ID),
                ("created_at", CREATED_AT),
                ("name", models.CharField(max_length=100)),
                ("address", models.CharField(max_length=500)),
                ("sealed_key", models.BinaryField()),
                ("namespace", models.CharField(max_length=200)),
                ("remote_namespace", models.CharField(max_length=200)),
                ("direction", models.CharField(choices=DIRECTIONS, max_length=4)),
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
                ("tenant", tenant()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="sync_peer_has_a_name_of_its_own")
                ]
            },
        ),
        migrations.CreateModel(
            name="SyncLink",
            fields=[
                ("id", ID),
                ("created_at", CREATED_AT),
                ("cube_id", models.UUIDField()),
                ("remote_id", models.UUIDField()),
                ("version", models.PositiveIntegerField()),
                ("remote_version", models.PositiveIntegerField()),
                (
                    "peer",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.syncpeer",
                    ),
                ),
                ("tenant", tenant()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "peer", "cube_id"), name="memory_has_one_counterpart"),
                    models.UniqueConstraint(fields=("tenant", "peer", "remote_id"), name="counterpart_is_linked_once"),
                ]
            },
        ),
        tenant_table("vault_syncpeer", rights=ALL, references=[("last_job_id", "governance_job")]),
        tenant_table("vault_synclink", rights=ALL),
        RunSQL(reference("vault_synclink", "peer_id", "vault_syncpeer", on_delete="CASCADE"), RunSQL.noop),
    ]
