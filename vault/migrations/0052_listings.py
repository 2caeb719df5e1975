"""The catalogue as a table that each tenant reads by a policy; before, a function joined four tables in each call."""

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
from governance.tenancy_sql import CURRENT_TENANT, tenant_table

# A sub-select is evaluated once in a statement, and not for each row.
READER = f"(SELECT {CURRENT_TENANT})"
READABLE = (
    f"CREATE POLICY offered ON vault_listing FOR SELECT TO memos_app USING (is_offered AND {READER} IS NOT NULL "
    f"AND (visibility = 'installation' OR {READER} = ANY (tenants)))"
)
SOURCES = ("vault_publication", "vault_pack", "vault_packversion", "governance_tenant")
FILL = """
INSERT INTO vault_listing (id, tenant_id, publisher, publisher_slug, pack_id, version_id, name, title, description,
  licence, topic, keywords, languages, texts, number, count, digest, key_id, is_offered, visibility, tenants, terms,
  rating, ratings, subscribers, published_at)
SELECT offer.id, offer.tenant_id, owner.name, owner.slug, pack.id, version.id, pack.name, pack.title, pack.description,
  pack.licence, pack.topic, pack.keywords, version.languages,
  lower(array_to_string(
    ARRAY[pack.title, pack.description, pack.name, owner.name]::text[] || pack.keywords::text[], chr(10))),
  version.number, version.count, version.digest, version.key_id, offer.state = 'published', offer.visibility,
  offer.tenants, offer.terms, coalesce(offer.stars::float / nullif(offer.ratings, 0), 0), offer.ratings,
  offer.subscribers, offer.published_at
FROM vault_publication AS offer
  JOIN vault_pack AS pack ON pack.tenant_id = offer.tenant_id AND pack.id = offer.pack_id
  JOIN vault_packversion AS version ON version.tenant_id = offer.tenant_id AND version.id = offer.version_id
  JOIN governance_tenant AS owner ON owner.id = offer.tenant_id
"""


def _reference(model: str) -> "models.ForeignKey[Any, Any]":
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to=model,
    )


class Migration(migrations.Migration):
    dependencies = [("vault", "0042_deleted_tenants")]

    operations = [
        RunSQL(["DROP VIEW vault_storelisting", "DROP FUNCTION vault_store_catalogue()"], RunSQL.noop),
        RunSQL(
            [
                *(f"DROP POLICY router_select ON {table}" for table in SOURCES[:3]),
                *(f"REVOKE ALL ON {table} FROM memos_router" for table in SOURCES[:3]),
                "REVOKE SELECT (name) ON governance_tenant FROM memos_router",
            ],
            RunSQL.noop,
        ),
        migrations.DeleteModel("Listing"),
        migrations.CreateModel(
            name="Listing",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("publisher", models.CharField(max_length=200)),
                ("publisher_slug", models.CharField(max_length=63)),
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
                ("texts", models.TextField()),
                ("number", models.CharField(max_length=20)),
                ("count", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("key_id", models.CharField(max_length=16)),
                ("is_offered", models.BooleanField()),
                ("visibility", models.CharField(max_length=12)),
                (
                    "tenants",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
                ("terms", models.JSONField()),
                ("rating", models.FloatField()),
                ("ratings", models.PositiveIntegerField()),
                ("subscribers", models.PositiveIntegerField()),
                ("published_at", models.DateTimeField()),
                ("pack", _reference("vault.pack")),
                ("version", _reference("vault.packversion")),
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
        *(
            migrations.AddIndex(
                "listing",
                models.Index(
                    models.F(column).desc(),
                    models.F("id").desc(),
                    name=name,
                    condition=models.Q(("is_offered", True)),
                ),
            )
            for column, name in (
                ("subscribers", "listing_by_use"),
                ("rating", "listing_by_rating"),
                ("published_at", "listing_by_time"),
            )
        ),
        migrations.AddIndex("listing", models.Index(fields=["publisher_slug", "name"], name="listing_by_name")),
        RunSQL(
            [
                *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in SOURCES),
                FILL,
                *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in SOURCES),
            ],
            RunSQL.noop,
        ),
        tenant_table(
            "vault_listing",
            rights="SELECT, INSERT, UPDATE, DELETE",
            references=[("id", "vault_publication"), ("pack_id", "vault_pack"), ("version_id", "vault_packversion")],
        ),
        RunSQL(READABLE, RunSQL.noop),
    ]
