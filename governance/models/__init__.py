from governance.models.account import BrowserSession, Invitation, OidcIdentity, OidcProvider, PasswordReset
from governance.models.audit import (
    AuditCheckpoint,
    AuditEntry,
    AuditSeal,
    AuditSink,
    AuditUnsealed,
)
from governance.models.grant import AccessGroup, GrantCondition, PastGrant
from governance.models.idempotency import IdempotencyKey
from governance.models.installation import Heartbeat, KeyStoreNote
from governance.models.job import Job
from governance.models.key_request import ApiKeyDay, ApiKeyRequest
from governance.models.outbox import OutboxEvent
from governance.models.persona import Persona, PersonaGrant
from governance.models.policy import Policy, PolicyVersion, Usage
from governance.models.role_template import RoleTemplate
from governance.models.schedule import Schedule
from governance.models.subject import DataSubject
from governance.models.tenant import ApiKey, Member, Role, SignInLink, Tenant
from governance.models.user import User
from governance.models.webhook import Webhook, WebhookDelivery

__all__ = [
    "AccessGroup",
    "ApiKey",
    "ApiKeyDay",
    "ApiKeyRequest",
    "AuditCheckpoint",
    "AuditEntry",
    "AuditSeal",
    "AuditSink",
    "AuditUnsealed",
    "BrowserSession",
    "DataSubject",
    "GrantCondition",
    "Heartbeat",
    "IdempotencyKey",
    "Invitation",
    "Job",
    "KeyStoreNote",
    "Member",
    "OidcIdentity",
    "OidcProvider",
    "OutboxEvent",
    "PasswordReset",
    "PastGrant",
    "Persona",
    "PersonaGrant",
    "Policy",
    "PolicyVersion",
    "Role",
    "RoleTemplate",
    "Schedule",
    "SignInLink",
    "Tenant",
    "Usage",
    "User",
    "Webhook",
    "WebhookDelivery",
]
