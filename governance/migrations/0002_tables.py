"""The tables of governance."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Now

from governance.tables import (
    OBJECT_PERMISSIONS,
    CreateTables,
    choice,
    grant_model,
    table,
    tenant_key,
    tenant_model,
    uuid_key,
)

ROLES = ("owner", "admin", "editor", "viewer", "auditor")

TENANTS = [
    table(
        "Tenant",
        id=uuid_key(),
        slug=models.SlugField(max_length=63, unique=True),
        name=models.CharField(max_length=200),
        policy_epoch=models.PositiveBigIntegerField(default=0, db_default=0),
        second_factor_required=models.BooleanField(default=False, db_default=False),
        created_at=models.DateTimeField(db_default=Now(), editable=False),
        deletion_job=models.UUIDField(null=True, editable=False),
        deletion_at=models.DateTimeField(null=True, editable=False),
        erasing_since=models.DateTimeField(null=True, editable=False),
        erased_at=models.DateTimeField(null=True, editable=False),
        receipt=models.JSONField(null=True, editable=False),
    ),
    tenant_model(
        "Role",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "name"], name="role_name_is_unique_in_tenant")]},
        name=choice(*ROLES, max_length=20),
    ),
    tenant_model(
        "Member",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "user"], name="user_is_member_once")]},
        user=models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"),
        role=tenant_key("governance.role"),
        display_name=models.CharField(max_length=200),
        removed_at=models.DateTimeField(blank=True, null=True),
        timezone=models.CharField(max_length=64, default="UTC", db_default="UTC"),
        proved_at=models.DateTimeField(blank=True, null=True),
        wants_digest=models.BooleanField(default=True, db_default=True),
        digest_at=models.DateTimeField(blank=True, null=True),
        digest_counts=models.JSONField(default=dict, db_default={}),
    ),
    tenant_model(
        "ApiKey",
        member=tenant_key("governance.member"),
        name=models.CharField(max_length=100, blank=True),
        prefix=models.CharField(max_length=16, unique=True),
        secret_hash=models.BinaryField(max_length=32, unique=True),
        previous_hash=models.BinaryField(max_length=32, null=True, unique=True),
        previous_until=models.DateTimeField(blank=True, null=True),
        scopes=ArrayField(models.CharField(max_length=40)),
        expires_at=models.DateTimeField(blank=True, null=True),
        revoked_at=models.DateTimeField(blank=True, null=True),
        rotated_at=models.DateTimeField(blank=True, null=True),
        last_used_at=models.DateTimeField(blank=True, null=True),
        persona=tenant_key("governance.persona", null=True),
        namespaces=ArrayField(models.CharField(max_length=200), default=list),
        purpose=models.CharField(max_length=200, blank=True, default=""),
    ),
    tenant_model(
        "SignInLink",
        member=tenant_key("governance.member"),
        token_hash=models.BinaryField(max_length=32, unique=True),
        expires_at=models.DateTimeField(),
        used_at=models.DateTimeField(blank=True, null=True),
        by_operator=models.BooleanField(default=False, db_default=False),
    ),
    tenant_model(
        "Persona",
        {
            "permissions": OBJECT_PERMISSIONS,
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(kind="agent") | models.Q(member__isnull=False), name="user_persona_has_a_member"
                ),
                models.UniqueConstraint(
                    fields=["tenant", "member", "name"],
                    condition=models.Q(removed_at=None),
                    name="persona_name_is_unique_for_member",
                ),
            ],
        },
        kind=choice("user", "agent", max_length=10),
        name=models.CharField(max_length=200),
        member=tenant_key("governance.member", null=True),
        attributes=models.JSONField(default=dict),
        removed_at=models.DateTimeField(null=True),
    ),
    grant_model("PersonaGrant", "governance.persona"),
    tenant_model(
        "PastGrant",
        {
            "indexes": [
                models.Index(fields=["tenant", "object_id", "grant_id", "created_at"], name="past_grant_by_object")
            ]
        },
        table=models.CharField(max_length=63),
        grant_id=models.UUIDField(),
        object_id=models.UUIDField(),
        group=tenant_key("governance.accessgroup"),
        permission=models.ForeignKey("auth.permission", models.PROTECT, related_name="+", db_index=False),
        effect=choice("allow", "deny", max_length=5),
        expires_at=models.DateTimeField(null=True),
        condition=tenant_key("governance.grantcondition", null=True),
        given_by_kind=models.CharField(max_length=10),
        given_by=models.UUIDField(),
        given_at=models.DateTimeField(),
    ),
    tenant_model(
        "DataSubject",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "reference_token"], name="subject_reference_is_unique")
            ]
        },
        reference_token=models.BinaryField(max_length=32),
        sealed_reference=models.BinaryField(),
        erasing_since=models.DateTimeField(null=True),
        erased_at=models.DateTimeField(null=True),
        receipts=models.JSONField(default=list),
    ),
]
ACCOUNTS = [
    table(
        "BrowserSession",
        id=uuid_key(),
        user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"),
        address=models.CharField(max_length=64),
        agent=models.CharField(max_length=200),
        created_at=models.DateTimeField(db_default=Now(), editable=False),
        last_used_at=models.DateTimeField(db_default=Now()),
        expires_at=models.DateTimeField(),
        ended_at=models.DateTimeField(null=True),
    ),
    table(
        "PasswordReset",
        id=uuid_key(),
        user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"),
        token_hash=models.BinaryField(max_length=32, unique=True),
        created_at=models.DateTimeField(db_default=Now(), editable=False),
        expires_at=models.DateTimeField(),
        used_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "Invitation",
        email=models.EmailField(max_length=254),
        role=choice(*ROLES, max_length=20),
        inviter_id=models.UUIDField(null=True),
        token_hash=models.BinaryField(max_length=32, unique=True),
        mailed_token_hash=models.BinaryField(max_length=32, unique=True, null=True),
        expires_at=models.DateTimeField(),
        accepted_at=models.DateTimeField(null=True),
        revoked_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "OidcProvider",
        {"constraints": [models.UniqueConstraint(fields=["tenant"], name="tenant_has_one_oidc_provider")]},
        issuer=models.CharField(max_length=500),
        client_id=models.CharField(max_length=200),
        sealed_secret=models.BinaryField(),
        domains=ArrayField(models.CharField(max_length=253)),
        default_role=choice(*ROLES, max_length=20, blank=True),
        opens_owners=models.BooleanField(),
    ),
    tenant_model(
        "OidcIdentity",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "provider", "subject"], name="oidc_subject_is_one_member")
            ]
        },
        provider=tenant_key("governance.oidcprovider"),
        member=tenant_key("governance.member"),
        subject=models.CharField(max_length=255),
    ),
]
ACCESS = [
    tenant_model(
        "AccessGroup",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "kind", "principal_id"], name="holder_has_one_group")
            ]
        },
        kind=choice("role", "member", "persona", "api_key", max_length=10),
        principal_id=models.UUIDField(),
    ),
    tenant_model(
        "GrantCondition",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "fingerprint"], name="grant_condition_is_unique")]},
        document=models.JSONField(),
        fingerprint=models.BinaryField(max_length=32),
    ),
    tenant_model(
        "Policy",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "name"], name="policy_name_is_unique")]},
        kind=choice("retention", "sharing", "purpose", "pii", "quota", max_length=12),
        name=models.CharField(max_length=100),
        version=models.PositiveIntegerField(default=1),
    ),
    tenant_model(
        "PolicyVersion",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "policy", "number"], name="policy_version_number_is_unique")
            ]
        },
        policy=tenant_key("governance.policy"),
        number=models.PositiveIntegerField(),
        enabled=models.BooleanField(),
        document=models.JSONField(),
        reason=models.CharField(max_length=500, blank=True, default=""),
        principal_kind=models.CharField(max_length=10),
        principal_id=models.UUIDField(),
    ),
    tenant_model(
        "Usage",
        {
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "holder_kind", "holder_id", "measure"], name="usage_is_unique_for_holder"
                )
            ]
        },
        holder_kind=choice("tenant", "member", "api_key", max_length=10),
        holder_id=models.UUIDField(),
        measure=choice("memories", "bytes", "requests_per_minute", "model_tokens_per_month", max_length=30),
        used=models.BigIntegerField(default=0, db_default=0),
        epoch=models.PositiveBigIntegerField(default=0, db_default=0),
        month=models.DateField(null=True),
        counted_at=models.DateTimeField(db_default=Now()),
    ),
    tenant_model(
        "RoleTemplate",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "name"], name="role_template_name_is_unique")]},
        name=models.CharField(max_length=100),
        role=choice(*ROLES, max_length=20, blank=True),
        namespaces=ArrayField(models.CharField(max_length=200), default=list),
        purpose=models.CharField(max_length=200, blank=True, default=""),
        scopes=ArrayField(models.CharField(max_length=40), default=list),
        persona_attributes=models.JSONField(default=dict),
    ),
]
AUDIT = [
    tenant_model(
        "AuditEntry",
        {"indexes": [models.Index(fields=["tenant", "-id"], name="audit_newest_first")]},
        at=models.DateTimeField(db_default=Now(), editable=False),
        principal_kind=models.CharField(max_length=10),
        principal_id=models.UUIDField(),
        member_id=models.UUIDField(null=True),
        verb=models.CharField(max_length=40),
        outcome=models.CharField(max_length=10),
        object_type=models.CharField(max_length=40),
        object_ids=ArrayField(models.UUIDField()),
        version=models.PositiveIntegerField(null=True),
        before_hash=models.BinaryField(max_length=32, null=True),
        after_hash=models.BinaryField(max_length=32, null=True),
        detail=models.JSONField(default=dict),
        context=models.JSONField(default=dict),
        request_id=models.CharField(max_length=64),
    ),
    tenant_model(
        "AuditUnsealed",
    ),
    tenant_model(
        "AuditSeal",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "seq"], name="seal_has_one_place_in_the_chain"),
                models.UniqueConstraint(fields=["tenant", "entry"], name="entry_is_sealed_once"),
            ]
        },
        seq=models.BigIntegerField(),
        entry=tenant_key("governance.auditentry"),
        entry_hash=models.BinaryField(max_length=32),
        previous_hash=models.BinaryField(max_length=32),
        chain_hash=models.BinaryField(max_length=32),
    ),
    tenant_model(
        "AuditCheckpoint",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "seq"], name="chain_is_signed_once_at_each_seal")]},
        seq=models.BigIntegerField(),
        text=models.TextField(),
    ),
    tenant_model(
        "AuditSink",
        {
            "indexes": [
                models.Index(fields=["next_at"], condition=models.Q(removed_at__isnull=True), name="audit_sink_due")
            ]
        },
        name=models.CharField(max_length=100),
        kind=choice("syslog", "webhook", max_length=10),
        address=models.CharField(max_length=500),
        sealed_secret=models.BinaryField(null=True),
        delivered_seq=models.BigIntegerField(default=0),
        failures=models.PositiveIntegerField(default=0),
        next_at=models.DateTimeField(db_default=Now()),
        last_error=models.CharField(max_length=300, blank=True, default=""),
        delivered_at=models.DateTimeField(null=True),
        removed_at=models.DateTimeField(null=True),
    ),
]
WORK = [
    tenant_model(
        "IdempotencyKey",
        {
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "principal_id", "key"], name="idempotency_key_is_unique_for_principal"
                )
            ]
        },
        principal_id=models.UUIDField(),
        key=models.CharField(max_length=255),
        request_hash=models.BinaryField(max_length=32),
        status=models.PositiveSmallIntegerField(),
        sealed_reply=models.BinaryField(),
        object_ids=ArrayField(models.UUIDField(), default=list),
    ),
    table(
        "KeyStoreNote",
        {"constraints": [models.CheckConstraint(condition=models.Q(id__gte=1), name="key_store_is_note_one")]},
        id=models.SmallIntegerField(primary_key=True, default=1, serialize=False),
        store_id=models.UUIDField(),
        created_at=models.DateTimeField(db_default=Now(), editable=False),
    ),
    table(
        "Heartbeat",
        part=models.CharField(max_length=20, primary_key=True, serialize=False),
        at=models.DateTimeField(db_default=Now()),
    ),
    tenant_model(
        "Job",
        {
            "indexes": [
                models.Index(fields=["tenant", "-id"], name="governance_job_newest_first"),
                models.Index(
                    fields=["tenant", "kind"],
                    condition=models.Q(status__in=["pending", "running", "cancelling"]),
                    name="governance_job_open",
                ),
                models.Index(
                    fields=["tenant", "-id"], condition=models.Q(dead_letter=True), name="governance_job_dead_letter"
                ),
            ]
        },
        kind=models.CharField(max_length=40),
        status=choice("pending", "running", "cancelling", "cancelled", "succeeded", "failed", max_length=10),
        done=models.PositiveIntegerField(default=0),
        total=models.PositiveIntegerField(null=True),
        attempts=models.PositiveIntegerField(default=0),
        dead_letter=models.BooleanField(default=False),
        member=tenant_key("governance.member", null=True),
        principal_kind=models.CharField(max_length=10),
        principal_id=models.UUIDField(),
        context=models.JSONField(default=dict),
        settings=models.JSONField(default=dict),
        state=models.JSONField(default=dict),
        sealed_request=models.BinaryField(default=b""),
        sealed_result=models.BinaryField(null=True),
        error=models.JSONField(null=True),
        started_at=models.DateTimeField(null=True),
        finished_at=models.DateTimeField(null=True),
        undo_until=models.DateTimeField(null=True),
        kept_until=models.DateTimeField(null=True),
    ),
    tenant_model(
        "OutboxEvent",
        {
            "indexes": [
                models.Index(
                    fields=["topic", "tenant", "available_at"],
                    condition=models.Q(done_at__isnull=True, parked_at__isnull=True),
                    name="outbox_open",
                ),
                models.Index(fields=["lease"], condition=models.Q(lease__isnull=False), name="outbox_leased"),
            ]
        },
        topic=models.CharField(max_length=40),
        payload=models.JSONField(),
        request_id=models.CharField(max_length=64),
        available_at=models.DateTimeField(db_default=Now()),
        lease=models.UUIDField(null=True),
        attempts=models.PositiveIntegerField(default=0, db_default=0),
        done_at=models.DateTimeField(null=True),
        parked_at=models.DateTimeField(null=True),
        last_error=models.CharField(max_length=300, blank=True, default="", db_default=""),
    ),
    tenant_model(
        "Schedule",
        {"indexes": [models.Index(fields=["next_run_at"], condition=models.Q(enabled=True), name="schedule_due")]},
        kind=models.CharField(max_length=40),
        cron=models.CharField(max_length=100),
        timezone=models.CharField(max_length=64),
        enabled=models.BooleanField(default=True),
        settings=models.JSONField(default=dict),
        principal_kind=models.CharField(max_length=10),
        principal_id=models.UUIDField(),
        next_run_at=models.DateTimeField(null=True),
        last_job=tenant_key("governance.job", null=True),
    ),
    tenant_model(
        "Webhook",
        {
            "indexes": [
                models.Index(fields=["tenant"], condition=models.Q(removed_at__isnull=True), name="webhook_active")
            ]
        },
        url=models.CharField(max_length=500),
        events=ArrayField(models.CharField(max_length=40)),
        filters=models.JSONField(default=dict),
        enabled=models.BooleanField(default=True),
        sealed_secret=models.BinaryField(null=True),
        sealed_previous_secret=models.BinaryField(null=True),
        previous_until=models.DateTimeField(null=True),
        failures=models.PositiveIntegerField(default=0),
        next_at=models.DateTimeField(db_default=Now()),
        removed_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "WebhookDelivery",
        {"indexes": [models.Index(fields=["webhook", "-id"], name="webhook_delivery_newest")]},
        webhook=tenant_key("governance.webhook"),
        entry_id=models.UUIDField(),
        event=models.CharField(max_length=40),
        object_type=models.CharField(max_length=40),
        object_ids=ArrayField(models.UUIDField()),
        version=models.PositiveIntegerField(null=True),
        at=models.DateTimeField(),
        status=choice("pending", "delivered", "failed", max_length=10, db_default="pending"),
        attempts=models.PositiveIntegerField(default=0, db_default=0),
        due_since=models.DateTimeField(db_default=Now()),
        next_at=models.DateTimeField(null=True),
        last_error=models.CharField(max_length=300, blank=True, default="", db_default=""),
        delivered_at=models.DateTimeField(null=True),
    ),
]


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0001_initial"),
        # Not all are needed: but each of their operations renders every model that is related to a person.
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("guardian", "0003_remove_groupobjectpermission_guardian_gr_content_ae6aec_idx_and_more"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    ]

    operations = [CreateTables(*TENANTS, *ACCOUNTS, *ACCESS, *AUDIT, *WORK)]
