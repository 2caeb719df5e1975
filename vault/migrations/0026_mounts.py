"""Mounts, and context pools with their sessions."""

from typing import Any

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
from governance.tenancy_sql import reference, tenant_table


def _tie(target: str, *, null: bool = True) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        null=null,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to=target,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0015_time_zones"),
        ("vault", "0025_namespace_quotas"),
    ]

    operations = [
        migrations.AddField("namespace", "session_token", models.BigIntegerField(null=True)),
        migrations.AddField("namespace", "ended_at", models.DateTimeField(null=True)),
        migrations.AddField("namespace", "is_mounted", models.BooleanField(default=False, db_default=False)),
        migrations.CreateModel(
            name="Mount",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("task_token", models.BigIntegerField(null=True)),
                ("sealed_task", models.BinaryField(default=bytes)),
                ("writable", models.BooleanField(default=False)),
                ("conversation", _tie("vault.conversation")),
                ("member", _tie("governance.member")),
                ("namespace", _tie("vault.namespace", null=False)),
                ("persona", _tie("governance.persona")),
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
                    models.Index(
                        fields=["tenant", "persona"],
                        name="mount_by_persona",
                        condition=models.Q(("persona", None), _negated=True),
                    ),
                    models.Index(
                        fields=["tenant", "conversation"],
                        name="mount_by_conversation",
                        condition=models.Q(("conversation", None), _negated=True),
                    ),
                    models.Index(
                        fields=["tenant", "task_token"],
                        name="mount_by_task",
                        condition=models.Q(("task_token", None), _negated=True),
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "namespace", "persona", "conversation", "task_token"),
                        name="namespace_is_mounted_once_in_a_place",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        tenant_table(
            "vault_mount",
            rights="SELECT, INSERT, DELETE",
            references=[
                ("namespace_id", "vault_namespace"),
                ("persona_id", "governance_persona"),
                ("member_id", "governance_member"),
            ],
        ),
        RunSQL(reference("vault_mount", "conversation_id", "vault_conversation", on_delete="CASCADE"), RunSQL.noop),
    ]
