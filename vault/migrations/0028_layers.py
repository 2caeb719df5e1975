"""The layers of a persona: streams and pages, segments, long-term queues, traits, and the constants of all."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import pgvector.django.halfvec
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
import vault.vocabulary
from governance.tenancy_sql import reference, tenant_table, without_statistics

# A page goes with either of its memories: what was made of it is made anew from the pages that are left.
PAGE_LEAVES = """
CREATE FUNCTION vault_page_leaves() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE vault_segment SET vector = NULL, keywords = '{}', pages = greatest(pages - 1, 0),
    unpromoted = greatest(unpromoted - (OLD.promoted_at IS NULL)::integer, 0)
  WHERE tenant_id = OLD.tenant_id AND id = OLD.segment_id;
  RETURN NULL;
END $$
"""
PERSONA = ("persona_id", "governance_persona")
CASCADES = [
    ("vault_page", "query_id", "vault_cube"),
    ("vault_page", "response_id", "vault_cube"),
    ("vault_layerentry", "cube_id", "vault_cube"),
    ("vault_traitevidence", "page_id", "vault_page"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0015_time_zones"),
        ("vault", "0027_turn_details"),
    ]

    operations = [
        migrations.CreateModel(
            name="Segment",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("vector", pgvector.django.halfvec.HalfVectorField(null=True)),
                ("model", models.CharField(blank=True, default="", max_length=100)),
                ("keywords", models.JSONField(default=dict)),
                ("pages", models.PositiveIntegerField(default=0)),
                ("unpromoted", models.PositiveIntegerField(default=0)),
                ("visits", models.PositiveIntegerField(db_default=0, default=0)),
                ("visited_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("evicted_at", models.DateTimeField(null=True)),
                (
                    "persona",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.persona",
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
            name="Stream",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("session_token", models.BigIntegerField()),
                ("last_position", models.PositiveIntegerField(db_default=0, default=0)),
                ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "agent_persona",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.persona",
                    ),
                ),
                (
                    "persona",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.persona",
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
            name="Page",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("position", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "layer",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.PageLayer["SHORT_TERM"], vault.vocabulary.PageLayer["SHORT_TERM"]),
                            (vault.vocabulary.PageLayer["MID_TERM"], vault.vocabulary.PageLayer["MID_TERM"]),
                        ],
                        max_length=12,
                    ),
                ),
                ("chain", models.UUIDField(null=True)),
                ("vector", pgvector.django.halfvec.HalfVectorField(null=True)),
                ("model", models.CharField(blank=True, default="", max_length=100)),
                (
                    "keywords",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("gist", models.JSONField(default=list)),
                (
                    "read_versions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), default=list, size=None
                    ),
                ),
                ("score", models.FloatField(null=True)),
                ("promoted_at", models.DateTimeField(null=True)),
                (
                    "query",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.cube",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
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
                    "segment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.segment",
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.stream",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Trait",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("dimension", models.CharField(max_length=40)),
                ("level", models.PositiveSmallIntegerField()),
                ("confidence", models.FloatField()),
                ("history", models.JSONField(default=list)),
                (
                    "persona",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.persona",
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
            name="TraitEvidence",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("weight", models.SmallIntegerField()),
                (
                    "page",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.page",
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
                    "trait",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.trait",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LayerEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "queue",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.EntryQueue["PROFILE"], vault.vocabulary.EntryQueue["PROFILE"]),
                            (vault.vocabulary.EntryQueue["KNOWLEDGE"], vault.vocabulary.EntryQueue["KNOWLEDGE"]),
                            (vault.vocabulary.EntryQueue["AGENT"], vault.vocabulary.EntryQueue["AGENT"]),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(blank=True, default="", max_length=100)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.EntryAction["ADD"], vault.vocabulary.EntryAction["ADD"]),
                            (vault.vocabulary.EntryAction["UPDATE"], vault.vocabulary.EntryAction["UPDATE"]),
                            (vault.vocabulary.EntryAction["DELETE"], vault.vocabulary.EntryAction["DELETE"]),
                            (vault.vocabulary.EntryAction["NOTHING"], vault.vocabulary.EntryAction["NOTHING"]),
                        ],
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField(max_length=40)),
                ("left_at", models.DateTimeField(null=True)),
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
                    "persona",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.persona",
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
                    models.Index(
                        condition=models.Q(("left_at", None)),
                        fields=["tenant", "persona", "queue", "-id"],
                        name="entry_newest_first",
                    ),
                    models.Index(fields=["tenant", "cube"], name="entry_by_cube"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "persona", "queue", "cube"), name="entry_is_once_in_a_queue"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LayerSettings",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("values", models.JSONField(default=dict)),
                (
                    "persona",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.persona",
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
                        fields=("tenant", "persona"), name="layer_settings_are_one_for_persona", nulls_distinct=False
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="segment",
            index=models.Index(
                condition=models.Q(("evicted_at", None)), fields=["tenant", "persona"], name="segment_resident"
            ),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.UniqueConstraint(
                fields=("tenant", "persona", "session_token"), name="stream_is_one_for_persona_and_session"
            ),
        ),
        migrations.AddIndex(
            model_name="page",
            index=models.Index(fields=["tenant", "stream", "layer", "-position"], name="page_by_layer"),
        ),
        migrations.AddIndex(
            model_name="page",
            index=models.Index(
                condition=models.Q(
                    ("vector", None),
                    ("chain", None),
                    models.Q(("layer", "mid_term"), ("segment", None)),
                    _connector="OR",
                ),
                fields=["tenant", "stream", "position"],
                name="page_to_place",
            ),
        ),
        migrations.AddIndex(
            model_name="page",
            index=models.Index(fields=["tenant", "segment", "-id"], name="page_by_segment"),
        ),
        migrations.AddIndex(
            model_name="page",
            index=models.Index(fields=["tenant", "query"], name="page_by_query"),
        ),
        migrations.AddIndex(
            model_name="page",
            index=models.Index(fields=["tenant", "response"], name="page_by_response"),
        ),
        migrations.AddConstraint(
            model_name="page",
            constraint=models.UniqueConstraint(fields=("tenant", "stream", "position"), name="page_position_is_unique"),
        ),
        migrations.AddConstraint(
            model_name="page",
            constraint=models.CheckConstraint(
                condition=models.Q(("query__isnull", False), ("response__isnull", False), _connector="OR"),
                name="page_has_a_side",
            ),
        ),
        migrations.AddConstraint(
            model_name="trait",
            constraint=models.UniqueConstraint(
                fields=("tenant", "persona", "dimension"), name="trait_is_one_for_dimension"
            ),
        ),
        migrations.AddIndex(
            model_name="traitevidence",
            index=models.Index(fields=["tenant", "page"], name="evidence_by_page"),
        ),
        migrations.AddConstraint(
            model_name="traitevidence",
            constraint=models.UniqueConstraint(fields=("tenant", "trait", "page"), name="evidence_is_named_once"),
        ),
        migrations.AlterField(
            model_name="review",
            name="kind",
            field=models.CharField(
                choices=[
                    (vault.vocabulary.ReviewKind["PII"], vault.vocabulary.ReviewKind["PII"]),
                    (vault.vocabulary.ReviewKind["SOURCE_WITHDRAWN"], vault.vocabulary.ReviewKind["SOURCE_WITHDRAWN"]),
                    (vault.vocabulary.ReviewKind["CONFLICT"], vault.vocabulary.ReviewKind["CONFLICT"]),
                ],
                max_length=20,
            ),
        ),
        tenant_table("vault_layersettings", references=[PERSONA]),
        tenant_table("vault_stream", references=[PERSONA, ("agent_persona_id", "governance_persona")]),
        tenant_table("vault_segment", references=[PERSONA]),
        tenant_table("vault_page", references=[("stream_id", "vault_stream"), ("segment_id", "vault_segment")]),
        tenant_table("vault_layerentry", references=[PERSONA]),
        tenant_table("vault_trait", references=[PERSONA]),
        tenant_table("vault_traitevidence", references=[("trait_id", "vault_trait")]),
        RunSQL(
            [
                *(reference(table, column, target, on_delete="CASCADE") for table, column, target in CASCADES),
                PAGE_LEAVES,
                "CREATE TRIGGER page_leaves_its_segment AFTER DELETE ON vault_page "
                "FOR EACH ROW EXECUTE FUNCTION vault_page_leaves()",
            ],
            "DROP FUNCTION IF EXISTS vault_page_leaves() CASCADE",
        ),
        without_statistics("vault_page", "tenant_id", "stream_id", "segment_id", "query_id", "response_id", "layer"),
        without_statistics("vault_segment", "tenant_id", "persona_id"),
    ]
