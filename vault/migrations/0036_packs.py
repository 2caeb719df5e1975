"""Packs, their versions, publications, and the catalogue of what a tenant may find."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
from governance.tenancy_sql import CURRENT_TENANT, router_access, router_function, tenant_table
from vault.vocabulary import PackState, PackTopic, PublicationState, Visibility

CATALOGUE_COLUMNS = """TABLE (
  id uuid, publisher_id uuid, publisher text, publisher_slug text, pack_id uuid, name text, title text,
  description text, licence text, topic text, keywords text[], languages text[], version_id uuid, number text,
  count integer, digest text, key_id text, terms jsonb, stars integer, ratings integer, subscribers integer,
  published_at timestamptz)"""
CATALOGUE = f"""
SELECT offer.id, offer.tenant_id, owner.name, owner.slug, pack.id, pack.name, pack.title, pack.description,
  pack.licence, pack.topic, pack.keywords, version.languages, version.id, version.number, version.count,
  version.digest, version.key_id, offer.terms, offer.stars, offer.ratings, offer.subscribers, offer.published_at
FROM vault_publication AS offer
  JOIN vault_pack AS pack ON pack.tenant_id = offer.tenant_id AND pack.id = offer.pack_id
  JOIN vault_packversion AS version ON version.tenant_id = offer.tenant_id AND version.id = offer.version_id
  JOIN governance_tenant AS owner ON owner.id = offer.tenant_id
WHERE offer.state = 'published' AND {CURRENT_TENANT} IS NOT NULL AND (
  offer.visibility = 'installation' OR offer.tenant_id = {CURRENT_TENANT}
  OR {CURRENT_TENANT} = ANY(offer.tenants))
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0018_noted_rotations"),
        ("vault", "0035_layer_before_a_promotion"),
    ]

    operations = [
        migrations.CreateModel(
            name="Listing",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("publisher_id", models.UUIDField()),
                ("publisher", models.CharField(max_length=200)),
                ("publisher_slug", models.CharField(max_length=63)),
                ("pack_id", models.UUIDField()),
                ("name", models.CharField(max_length=60)),
                ("title", models.CharField(max_length=120)),
                ("description", models.CharField(max_length=300)),
                ("licence", models.CharField(max_length=60)),
                ("topic", models.CharField(max_length=12)),
                (
                    "keywords",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
                (
                    "languages",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
                ("version_id", models.UUIDField()),
                ("number", models.CharField(max_length=20)),
                ("count", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("key_id", models.CharField(max_length=16)),
                ("terms", models.JSONField()),
                ("stars", models.PositiveIntegerField()),
                ("ratings", models.PositiveIntegerField()),
                ("subscribers", models.PositiveIntegerField()),
                ("published_at", models.DateTimeField()),
            ],
            options={
                "db_table": "vault_storelisting",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Pack",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("name", models.CharField(max_length=60)),
                ("title", models.CharField(max_length=120)),
                ("description", models.CharField(blank=True, default="", max_length=300)),
                ("readme", models.TextField(blank=True, default="")),
                ("licence", models.CharField(blank=True, default="", max_length=60)),
                ("topic", models.CharField(choices=[(one, one) for one in PackTopic], max_length=12)),
                (
                    "authors",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), default=list, size=None
                    ),
                ),
                (
                    "keywords",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), default=list, size=None
                    ),
                ),
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
        ),
        migrations.CreateModel(
            name="PackVersion",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("number", models.CharField(max_length=20)),
                ("parts", django.contrib.postgres.fields.ArrayField(base_field=models.PositiveIntegerField(), size=3)),
                ("state", models.CharField(choices=[(one, one) for one in PackState], max_length=10)),
                ("changelog", models.CharField(blank=True, default="", max_length=2000)),
                ("reason", models.CharField(blank=True, default="", max_length=300)),
                ("count", models.PositiveIntegerField(default=0)),
                ("size", models.PositiveIntegerField(default=0)),
                ("digest", models.CharField(blank=True, default="", max_length=64)),
                ("key_id", models.CharField(blank=True, default="", max_length=16)),
                (
                    "languages",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=8), default=list, size=None
                    ),
                ),
                ("report", models.JSONField(default=dict)),
                (
                    "subjects",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
                ),
                ("sealed", models.BinaryField(default=bytes)),
                ("published_at", models.DateTimeField(null=True)),
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
                    "pack",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.pack",
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
            name="Publication",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("state", models.CharField(choices=[(one, one) for one in PublicationState], max_length=10)),
                ("visibility", models.CharField(choices=[(one, one) for one in Visibility], max_length=12)),
                (
                    "tenants",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
                ),
                ("terms", models.JSONField(default=dict)),
                ("reason", models.CharField(blank=True, default="", max_length=300)),
                ("published_at", models.DateTimeField(null=True)),
                ("stars", models.PositiveIntegerField(default=0)),
                ("ratings", models.PositiveIntegerField(default=0)),
                ("subscribers", models.PositiveIntegerField(default=0)),
                (
                    "approved_by",
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
                    "pack",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.pack",
                    ),
                ),
                (
                    "requested_by",
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
                (
                    "version",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.packversion",
                    ),
                ),
                (
                    "waiting",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.packversion",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="pack",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="pack_name_is_unique_in_tenant"),
        ),
        migrations.AddConstraint(
            model_name="packversion",
            constraint=models.UniqueConstraint(fields=("tenant", "pack", "number"), name="pack_number_is_unique"),
        ),
        migrations.AddConstraint(
            model_name="publication",
            constraint=models.UniqueConstraint(fields=("tenant", "pack"), name="pack_is_published_once"),
        ),
        tenant_table(
            "vault_pack",
            rights="SELECT, INSERT, UPDATE, DELETE",
            references=[("member_id", "governance_member")],
        ),
        tenant_table(
            "vault_packversion",
            rights="SELECT, INSERT, UPDATE, DELETE",
            references=[("pack_id", "vault_pack"), ("member_id", "governance_member")],
        ),
        tenant_table(
            "vault_publication",
            references=[
                ("pack_id", "vault_pack"),
                ("version_id", "vault_packversion"),
                ("waiting_id", "vault_packversion"),
                ("requested_by_id", "governance_member"),
                ("approved_by_id", "governance_member"),
            ],
        ),
        router_access("vault_pack", columns="id, tenant_id, name, title, description, licence, topic, keywords"),
        router_access("vault_packversion", columns="id, tenant_id, number, count, digest, key_id, languages"),
        router_access(
            "vault_publication",
            columns="id, tenant_id, pack_id, version_id, state, visibility, tenants, terms, stars, "
            "ratings, subscribers, published_at",
        ),
        RunSQL("GRANT SELECT (name) ON governance_tenant TO memos_router", RunSQL.noop),
        router_function("vault_store_catalogue()", CATALOGUE_COLUMNS, CATALOGUE),
        RunSQL(
            [
                "CREATE VIEW vault_storelisting WITH (security_invoker = true) "
                "AS SELECT * FROM vault_store_catalogue()",
                "REVOKE ALL ON vault_storelisting FROM PUBLIC",
                "GRANT SELECT ON vault_storelisting TO memos_app",
            ],
            "DROP VIEW vault_storelisting",
        ),
    ]
