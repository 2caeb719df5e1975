"""Row-level security of the tables of governance, the keys between them, and the rights of each role."""

from django.db import migrations

from governance.tenancy_sql import (
    ADD,
    ALL,
    CHANGE,
    CURRENT_TENANT,
    CURRENT_USER,
    GRANTED,
    READ,
    grant,
    grant_table,
    person_table,
    protect,
    router_access,
    router_deletion,
    run,
    tenant_table,
)

# Nothing is added for a tenant that is being erased: its grants go after these rows.
REMEMBER = """
CREATE FUNCTION governance_remember_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.governance_pastgrant (id, tenant_id, "table", grant_id, object_id, group_id, permission_id, effect,
    expires_at, condition_id, given_by_kind, given_by, given_at)
  SELECT uuidv7(), OLD.tenant_id, TG_TABLE_NAME, OLD.id, OLD.content_object_id, OLD.group_id, OLD.permission_id,
    OLD.effect, OLD.expires_at, OLD.condition_id, OLD.given_by_kind, OLD.given_by, OLD.created_at
  WHERE NOT EXISTS (
    SELECT 1 FROM public.governance_tenant WHERE id = OLD.tenant_id AND erasing_since IS NOT NULL);
  RETURN NULL;
END $$
"""
MEMBER = {"member_id": "governance_member"}
TENANT_TABLES = [
    [REMEMBER],
    tenant_table("governance_role", ADD),
    tenant_table("governance_member", references={"role_id": "governance_role"}),
    tenant_table("governance_persona", references=MEMBER),
    tenant_table("governance_apikey", references=MEMBER | {"persona_id": "governance_persona"}),
    tenant_table("governance_signinlink", references=MEMBER),
    tenant_table("governance_datasubject", ALL),
    tenant_table("governance_auditentry", ADD),
    tenant_table("governance_auditunsealed", "SELECT, INSERT, DELETE"),
    tenant_table("governance_auditseal", ADD, {"entry_id": "governance_auditentry"}),
    tenant_table("governance_auditcheckpoint", ADD),
    tenant_table("governance_auditsink"),
    tenant_table("governance_outboxevent", ALL),
    tenant_table("governance_idempotencykey", "SELECT, INSERT, DELETE"),
    tenant_table("governance_policy"),
    tenant_table("governance_policyversion", ADD, {"policy_id": "governance_policy"}),
    tenant_table("governance_usage"),
    tenant_table("governance_invitation"),
    tenant_table("governance_oidcprovider", ALL),
    tenant_table(
        "governance_oidcidentity", "SELECT, INSERT, DELETE", {"provider_id": "governance_oidcprovider"} | MEMBER
    ),
    tenant_table("governance_accessgroup", ADD),
    tenant_table("governance_grantcondition", ADD),
    tenant_table("governance_pastgrant", ADD, GRANTED),
    grant_table("governance_personagrant", of="governance_persona"),
    tenant_table("governance_roletemplate", ALL),
    tenant_table("governance_job", references=MEMBER),
    tenant_table("governance_schedule", ALL, {"last_job_id": "governance_job"}),
    tenant_table("governance_webhook"),
    tenant_table("governance_webhookdelivery", ALL, {"webhook_id": "governance_webhook"}),
]
IS_MEMBER = "EXISTS (SELECT 1 FROM governance_member m WHERE m.user_id = governance_user.id)"
# What belongs to a person is seen by that person alone, in whatever tenant.
PERSONS = [
    protect(
        "governance_user",
        ADD,
        policy="members_and_oneself",
        condition=f"id = {CURRENT_USER} OR {IS_MEMBER}",
        check=f"id = {CURRENT_USER}",
    ),
    ["GRANT UPDATE (password, password_tenant, is_operator) ON governance_user TO memos_app"],
    person_table("governance_browsersession", CHANGE),
    person_table("governance_passwordreset", CHANGE),
    person_table("mfa_authenticator", ALL),
]
INSTALLATION = [
    grant(ALL, "django_session"),
    grant(READ, "django_content_type", "auth_permission", "django_migrations"),
    grant(ADD, "governance_keystorenote"),
    grant(CHANGE, "governance_heartbeat"),
    grant(
        CHANGE,
        *(
            f"django_celery_beat_{name}"
            for name in ("crontabschedule", "intervalschedule", "periodictask", "periodictasks")
        ),
    ),
    grant(READ, *(f"django_celery_beat_{name}" for name in ("clockedschedule", "solarschedule"))),
]
AUDITOR = [
    [
        f"GRANT SELECT ON {table} TO memos_auditor",
        f"CREATE POLICY auditor_reads ON {table} FOR SELECT TO memos_auditor USING (true)",
    ]
    for table in ("governance_auditentry", "governance_auditseal", "governance_auditcheckpoint")
]
ROUTER = [
    router_access("governance_tenant", "id, slug, erased_at"),
    router_access("governance_user", "id, email"),
    router_access("governance_member", "id, tenant_id, user_id, removed_at"),
    router_access("governance_apikey", "id, tenant_id, prefix, secret_hash, previous_hash"),
    router_access("governance_signinlink", "id, tenant_id, token_hash"),
    router_access("governance_invitation", "id, tenant_id, token_hash, mailed_token_hash"),
    router_access("governance_passwordreset", "id, user_id, token_hash, expires_at"),
    router_deletion("governance_passwordreset"),
    router_access("governance_browsersession", "expires_at"),
    router_deletion("governance_browsersession"),
    router_access(
        "governance_outboxevent",
        "id, tenant_id, topic, created_at, available_at, attempts, done_at, parked_at, lease",
    ),
    router_access("governance_outboxevent", "available_at, attempts, parked_at, lease, last_error", "UPDATE"),
    router_deletion("governance_outboxevent", "done_at IS NOT NULL"),
    router_access("governance_idempotencykey", "created_at"),
    router_deletion("governance_idempotencykey"),
    router_access("governance_job", "kept_until"),
    router_access("governance_job", "sealed_request, kept_until", "UPDATE"),
    router_access("governance_schedule", "id, tenant_id, enabled, next_run_at"),
    router_access("governance_auditunsealed", "id, tenant_id, created_at"),
    router_access("governance_auditseal", "tenant_id, seq, created_at"),
    router_access("governance_auditcheckpoint", "tenant_id, seq, created_at"),
    router_access("governance_auditsink", "id, tenant_id, delivered_seq, next_at, removed_at"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0002_tables"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        run(
            protect("governance_tenant", CHANGE, condition=f"id = {CURRENT_TENANT}"),
            *TENANT_TABLES,
            *PERSONS,
            *INSTALLATION,
            *AUDITOR,
            *ROUTER,
        )
    ]
