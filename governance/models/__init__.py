from governance.models.audit import AuditEntry
from governance.models.grant import AccessGroup, GrantCondition
from governance.models.idempotency import IdempotencyKey
from governance.models.outbox import OutboxEvent
from governance.models.persona import Persona, PersonaGrant
from governance.models.role_template import RoleTemplate
from governance.models.subject import DataSubject
from governance.models.tenant import ApiKey, Member, Role, SignInLink, Tenant
from governance.models.user import User

__all__ = [
    "AccessGroup",
    "ApiKey",
    "AuditEntry",
    "DataSubject",
    "GrantCondition",
    "IdempotencyKey",
    "Member",
    "OutboxEvent",
    "Persona",
    "PersonaGrant",
    "Role",
    "RoleTemplate",
    "SignInLink",
    "Tenant",
    "User",
]
