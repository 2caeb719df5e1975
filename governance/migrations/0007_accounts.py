"""Accounts: passwords, second factors, sessions, invitations, sign-in servers; and rotated keys."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
import governance.vocabulary
from governance.tenancy_sql import person_table, router_access, router_function, tenant_table

MEMBERSHIPS = """
  SELECT member.id, member.tenant_id FROM public.governance_member AS member
  WHERE member.user_id = wanted AND member.removed_at IS NULL ORDER BY member.id
"""
TIDY = """
  WITH sessions AS (
    DELETE FROM public.governance_browsersession WHERE expires_at < clock_timestamp() - interval '30 days' RETURNING 1
  ), resets AS (
    DELETE FROM public.governance_passwordreset WHERE expires_at < clock_timestamp() - interval '30 days' RETURNING 1
  )
  SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM resets)
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0006_policies"), ("mfa", "0003_authenticator_type_uniq")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="last_used_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="previous_hash",
            field=models.BinaryField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="previous_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="rotated_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="second_factor_required",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="user",
            name="password_tenant",
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.CreateModel(
            name="BrowserSession",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("address", models.CharField(max_length=64)),
                ("agent", models.CharField(max_length=200)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("last_used_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("email", models.EmailField(max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            (governance.vocabulary.RoleName["OWNER"], governance.vocabulary.RoleName["OWNER"]),
                            (governance.vocabulary.RoleName["ADMIN"], governance.vocabulary.RoleName["ADMIN"]),
                            (governance.vocabulary.RoleName["EDITOR"], governance.vocabulary.RoleName["EDITOR"]),
                            (governance.vocabulary.RoleName["VIEWER"], governance.vocabulary.RoleName["VIEWER"]),
                            (governance.vocabulary.RoleName["AUDITOR"], governance.vocabulary.RoleName["AUDITOR"]),
                        ],
                        max_length=20,
                    ),
                ),
                ("inviter_id", models.UUIDField(null=True)),
                ("token_hash", models.BinaryField(max_length=32, unique=True)),
                ("mailed_token_hash", models.BinaryField(max_length=32, null=True, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("accepted_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
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
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="OidcProvider",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("issuer", models.CharField(max_length=500)),
                ("client_id", models.CharField(max_length=200)),
                ("sealed_secret", models.BinaryField()),
                (
                    "domains",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), size=None),
                ),
                (
                    "default_role",
                    models.CharField(
                        blank=True,
                        choices=[
                            (governance.vocabulary.RoleName["OWNER"], governance.vocabulary.RoleName["OWNER"]),
                            (governance.vocabulary.RoleName["ADMIN"], governance.vocabulary.RoleName["ADMIN"]),
                            (governance.vocabulary.RoleName["EDITOR"], governance.vocabulary.RoleName["EDITOR"]),
                            (governance.vocabulary.RoleName["VIEWER"], governance.vocabulary.RoleName["VIEWER"]),
                            (governance.vocabulary.RoleName["AUDITOR"], governance.vocabulary.RoleName["AUDITOR"]),
                        ],
                        max_length=20,
                    ),
                ),
                ("opens_owners", models.BooleanField()),
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
            name="OidcIdentity",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("subject", models.CharField(max_length=255)),
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
                (
                    "provider",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.oidcprovider",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PasswordReset",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("token_hash", models.BinaryField(max_length=32, unique=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="oidcprovider",
            constraint=models.UniqueConstraint(fields=("tenant",), name="tenant_has_one_oidc_provider"),
        ),
        migrations.AddConstraint(
            model_name="oidcidentity",
            constraint=models.UniqueConstraint(
                fields=("tenant", "provider", "subject"), name="oidc_subject_is_one_member"
            ),
        ),
        tenant_table("governance_invitation"),
        tenant_table("governance_oidcprovider", rights="SELECT, INSERT, UPDATE, DELETE"),
        tenant_table(
            "governance_oidcidentity",
            rights="SELECT, INSERT, DELETE",
            references=[("provider_id", "governance_oidcprovider"), ("member_id", "governance_member")],
        ),
        # What belongs to a person is seen by that person alone, in whatever tenant.
        person_table("governance_browsersession", rights="SELECT, INSERT, UPDATE"),
        person_table("governance_passwordreset", rights="SELECT, INSERT, UPDATE"),
        person_table("mfa_authenticator", rights="SELECT, INSERT, UPDATE, DELETE"),
        RunSQL("GRANT UPDATE (password, password_tenant) ON governance_user TO memos_app", RunSQL.noop),
        router_access("governance_member", columns="id, tenant_id, user_id, removed_at"),
        router_access("governance_invitation", columns="id, tenant_id, token_hash, mailed_token_hash"),
        router_access("governance_passwordreset", columns="id, user_id, token_hash, expires_at"),
        router_access("governance_browsersession", columns="expires_at"),
        RunSQL(
            [
                "GRANT DELETE ON governance_browsersession, governance_passwordreset TO memos_router",
                "CREATE POLICY router_delete ON governance_browsersession FOR DELETE TO memos_router USING (true)",
                "CREATE POLICY router_delete ON governance_passwordreset FOR DELETE TO memos_router USING (true)",
            ],
            RunSQL.noop,
        ),
        router_function("governance_memberships(wanted uuid)", "TABLE (member_id uuid, tenant_id uuid)", MEMBERSHIPS),
        router_function(
            "governance_invitation_by_hash(wanted bytea)",
            "TABLE (id uuid, tenant_id uuid)",
            "SELECT invitation.id, invitation.tenant_id FROM public.governance_invitation AS invitation "
            "WHERE invitation.token_hash = wanted OR invitation.mailed_token_hash = wanted",
        ),
        router_function(
            "governance_reset_by_hash(wanted bytea)",
            "TABLE (id uuid, user_id uuid)",
            "SELECT reset.id, reset.user_id FROM public.governance_passwordreset AS reset "
            "WHERE reset.token_hash = wanted",
        ),
        router_function("governance_accounts_tidy()", "bigint", TIDY, volatility="VOLATILE"),
    ]
