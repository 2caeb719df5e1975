"""Steps of memories from one state to another."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
import vault.vocabulary
from governance.tenancy_sql import reference, tenant_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0015_time_zones"),
        ("vault", "0021_action_items"),
    ]

    operations = [
        migrations.CreateModel(
            name="StateTransition",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("step", models.PositiveIntegerField()),
                (
                    "from_state",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.State["GENERATED"], vault.vocabulary.State["GENERATED"]),
                            (vault.vocabulary.State["ACTIVATED"], vault.vocabulary.State["ACTIVATED"]),
                            (vault.vocabulary.State["MERGED"], vault.vocabulary.State["MERGED"]),
                            (vault.vocabulary.State["ARCHIVED"], vault.vocabulary.State["ARCHIVED"]),
                            (vault.vocabulary.State["EXPIRED"], vault.vocabulary.State["EXPIRED"]),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "to_state",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.State["GENERATED"], vault.vocabulary.State["GENERATED"]),
                            (vault.vocabulary.State["ACTIVATED"], vault.vocabulary.State["ACTIVATED"]),
                            (vault.vocabulary.State["MERGED"], vault.vocabulary.State["MERGED"]),
                            (vault.vocabulary.State["ARCHIVED"], vault.vocabulary.State["ARCHIVED"]),
                            (vault.vocabulary.State["EXPIRED"], vault.vocabulary.State["EXPIRED"]),
                        ],
                        max_length=12,
                    ),
                ),
                ("principal_kind", models.CharField(max_length=10)),
                ("principal_id", models.UUIDField()),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("job_id", models.UUIDField(null=True)),
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "cube", "step"), name="transition_step_is_unique")
                ],
            },
        ),
        tenant_table("vault_statetransition", rights="SELECT, INSERT"),
        RunSQL(reference("vault_statetransition", "cube_id", "vault_cube", on_delete="CASCADE"), RunSQL.noop),
    ]
