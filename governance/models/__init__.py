from governance.models.account import BrowserSession, Invitation, OidcIdentity, OidcProvider, PasswordReset
from governance.models.audit import (
    AuditCheckpoint,
    AuditEntry,
    AuditExport,
    AuditSeal,
    AuditSink,
    AuditUnsealed,
)
from governance.models.idempotency import IdempotencyKey
from governance.models.outbox import OutboxEvent
from governance.models.persona import Persona
from governance.models.policy import Policy, PolicyVersion, Usage
from governance.models.subject import DataSubject
from governance.models.tenant import ApiKey, Member, Role, SignInLink, Tenant
from governance.models.user import User

__all__ = [
    "ApiKey",
    "AuditCheckpoint",
    "AuditEntry",
    "AuditExport",
    "AuditSeal",
    "AuditSink",
    "AuditUnsealed",
    "BrowserSession",
    "DataSubject",
    "IdempotencyKey",
    "Invitation",
    "Member",
    "OidcIdentity",
    "OidcProvider",
    "OutboxEvent",
    "PasswordReset",
    "Persona",
    "Policy",
    "PolicyVersion",
    "Role",
    "SignInLink",
    "Tenant",
    "Usage",
    "User",
]
