"""Reviews, findings of personal data, and versions whose tags can be blanked with their words."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
import governance.vocabulary
import vault.vocabulary
from governance.tenancy_sql import reference, tenant_table

ALL = "SELECT, INSERT, UPDATE, DELETE"

# As before; and the tags, which are clear, may go with the words.
VERSION_IS_IMMUTABLE = """
CREATE OR REPLACE FUNCTION vault_version_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.sealed <> ''::bytea OR NEW.terms <> '{}' OR NEW.tags NOT IN ('{}', OLD.tags)
     OR to_jsonb(NEW) - 'sealed' - 'terms' - 'tags' IS DISTINCT FROM to_jsonb(OLD) - 'sealed' - 'terms' - 'tags' THEN
    RAISE EXCEPTION 'a version never changes' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0003_replies"),
        ("vault", "0005_steady_plans"),
    ]

    operations = [
        migrations.CreateModel(
            name="PiiFinding",
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
                    "field",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.PiiField["CONTENT"], vault.vocabulary.PiiField["CONTENT"]),
                            (vault.vocabulary.PiiField["TITLE"], vault.vocabulary.PiiField["TITLE"]),
                            (vault.vocabulary.PiiField["METADATA"], vault.vocabulary.PiiField["METADATA"]),
                            (vault.vocabulary.PiiField["TAGS"], vault.vocabulary.PiiField["TAGS"]),
                            (vault.vocabulary.PiiField["SPEAKER"], vault.vocabulary.PiiField["SPEAKER"]),
                        ],
                        max_length=10,
                    ),
                ),
                ("leaf", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            (governance.vocabulary.PiiKind["EMAIL"], governance.vocabulary.PiiKind["EMAIL"]),
                            (governance.vocabulary.PiiKind["PHONE"], governance.vocabulary.PiiKind["PHONE"]),
                            (governance.vocabulary.PiiKind["CARD"], governance.vocabulary.PiiKind["CARD"]),
                            (governance.vocabulary.PiiKind["IBAN"], governance.vocabulary.PiiKind["IBAN"]),
                            (
                                governance.vocabulary.PiiKind["NATIONAL_ID"],
                                governance.vocabulary.PiiKind["NATIONAL_ID"],
                            ),
                            (
                                governance.vocabulary.PiiKind["NETWORK_ADDRESS"],
                                governance.vocabulary.PiiKind["NETWORK_ADDRESS"],
                            ),
                            (governance.vocabulary.PiiKind["SECRET"], governance.vocabulary.PiiKind["SECRET"]),
                            (governance.vocabulary.PiiKind["UNCHECKED"], governance.vocabulary.PiiKind["UNCHECKED"]),
                        ],
                        max_length=20,
                    ),
                ),
                ("begins", models.PositiveIntegerField()),
                ("ends", models.PositiveIntegerField()),
                ("rule", models.CharField(max_length=40)),
                ("detector", models.CharField(max_length=40)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.ReviewStatus["OPEN"], vault.vocabulary.ReviewStatus["OPEN"]),
                            (vault.vocabulary.ReviewStatus["ACCEPTED"], vault.vocabulary.ReviewStatus["ACCEPTED"]),
                            (vault.vocabulary.ReviewStatus["REJECTED"], vault.vocabulary.ReviewStatus["REJECTED"]),
                            (vault.vocabulary.ReviewStatus["SUPERSEDED"], vault.vocabulary.ReviewStatus["SUPERSEDED"]),
                        ],
                        max_length=12,
                    ),
                ),
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
                    "version",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.cubeversion",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "version"], name="finding_by_version"),
                    models.Index(fields=["tenant", "cube"], name="finding_by_cube"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ends__gte", models.F("begins"))), name="finding_ends_after_it_begins"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Review",
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
                    "kind",
                    models.CharField(
                        choices=[(vault.vocabulary.ReviewKind["PII"], vault.vocabulary.ReviewKind["PII"])],
                        max_length=12,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            (vault.vocabulary.ReviewStatus["OPEN"], vault.vocabulary.ReviewStatus["OPEN"]),
                            (vault.vocabulary.ReviewStatus["ACCEPTED"], vault.vocabulary.ReviewStatus["ACCEPTED"]),
                            (vault.vocabulary.ReviewStatus["REJECTED"], vault.vocabulary.ReviewStatus["REJECTED"]),
                            (vault.vocabulary.ReviewStatus["SUPERSEDED"], vault.vocabulary.ReviewStatus["SUPERSEDED"]),
                        ],
                        max_length=12,
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                ("decided_kind", models.CharField(blank=True, db_default="", default="", max_length=10)),
                ("decided_by", models.UUIDField(null=True)),
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
                    "version",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="vault.cubeversion",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "kind", "status", "-id"], name="review_newest_first"),
                    models.Index(fields=["tenant", "cube"], name="review_by_cube"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "version", "kind"), name="version_is_reviewed_once_for_each_kind"
                    )
                ],
            },
        ),
        tenant_table("vault_review", rights=ALL),
        tenant_table("vault_piifinding", rights=ALL),
        RunSQL(
            [
                reference("vault_review", "cube_id", "vault_cube", on_delete="CASCADE"),
                reference("vault_review", "version_id", "vault_cubeversion", on_delete="CASCADE"),
                reference("vault_piifinding", "cube_id", "vault_cube", on_delete="CASCADE"),
                reference("vault_piifinding", "version_id", "vault_cubeversion", on_delete="CASCADE"),
                VERSION_IS_IMMUTABLE,
            ],
            RunSQL.noop,
        ),
    ]
