from governance.models.account import BrowserSession, Invitation, OidcIdentity, OidcProvider, PasswordReset
from governance.models.audit import AuditEntry
from governance.models.idempotency import IdempotencyKey
from governance.models.outbox import OutboxEvent
from governance.models.persona import Persona
from governance.models.subject import DataSubject
from governance.models.tenant import ApiKey, Member, Role, SignInLink, Tenant
from governance.models.user import User

__all__ = [
    "ApiKey",
    "AuditEntry",
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
    "Role",
    "SignInLink",
    "Tenant",
    "User",
]
