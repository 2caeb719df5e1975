"""The closed sets of the law. Values are stored and sent to clients: they never change."""

from enum import StrEnum


class RoleName(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"
    AUDITOR = "auditor"


class Permission(StrEnum):
    MEMORY_READ = "memory.read"
    MEMORY_CREATE = "memory.create"
    MEMORY_UPDATE = "memory.update"
    MEMORY_DELETE = "memory.delete"
    NAMESPACE_CREATE = "namespace.create"
    CONVERSATION_USE = "conversation.use"
    JOB_READ = "job.read"
    AUDIT_READ = "audit.read"
    MEMBER_MANAGE = "member.manage"
    APIKEY_MANAGE = "apikey.manage"
    OPERATIONS_MANAGE = "operations.manage"


class Scope(StrEnum):
    """What an API key may be used for; a key can do what its member may do and its scopes allow, nothing more."""

    MEMORIES_READ = "memories:read"
    MEMORIES_WRITE = "memories:write"
    CHAT = "chat"
    ADMIN = "admin"


class PrincipalKind(StrEnum):
    MEMBER = "member"
    API_KEY = "api_key"
    SYSTEM = "system"


class PersonaKind(StrEnum):
    USER = "user"
    AGENT = "agent"


class Channel(StrEnum):
    API = "api"
    WEB = "web"
    CHAT = "chat"
    COMMAND_LINE = "command_line"
    WORKER = "worker"


class Outcome(StrEnum):
    DONE = "done"
    DENIED = "denied"


class Verb(StrEnum):
    """What an audit row says was done."""

    TENANT_CREATED = "tenant.created"
    MEMBER_ADDED = "member.added"
    MEMBER_SIGNED_IN = "member.signed_in"
    MEMBER_SIGNED_OUT = "member.signed_out"
    SIGN_IN_LINK_CREATED = "sign_in_link.created"
    APIKEY_CREATED = "apikey.created"
    NAMESPACE_CREATED = "namespace.created"
    SUBJECT_CREATED = "subject.created"
    MEMORY_CREATED = "memory.created"
    MEMORY_READ = "memory.read"
    MEMORY_LISTED = "memory.listed"
    MEMORY_SEARCHED = "memory.searched"
    MEMORY_UPDATED = "memory.updated"
    MEMORY_DELETED = "memory.deleted"
    MEMORY_RESTORED = "memory.restored"
    MEMORY_PURGED = "memory.purged"
    VERSIONS_READ = "memory.versions_read"
    MEMORY_INDEXED = "memory.indexed"
    CONVERSATION_CREATED = "conversation.created"
    CONVERSATION_READ = "conversation.read"
    CONVERSATION_UPDATED = "conversation.updated"
    CONVERSATION_DELETED = "conversation.deleted"
    TURN_CREATED = "turn.created"
    JOB_CREATED = "job.created"
    JOB_READ = "job.read"
    JOB_RETRIED = "job.retried"
    JOB_FINISHED = "job.finished"
    REPLY_REPEATED = "reply.repeated"
    WORK_RESUMED = "work.resumed"
    ACCESS_DENIED = "access.denied"
    # accounts
    SIGN_IN_LINK_USED = "sign_in_link.used"
    SIGN_IN_FAILED = "sign_in.failed"
    SIGN_IN_LOCKED = "sign_in.locked"
    SESSION_REVOKED = "session.revoked"
    SESSIONS_LISTED = "session.listed"
    PASSWORD_SET = "password.set"
    PASSWORD_RESET_ASKED = "password.reset_asked"
    SECOND_FACTOR_ADDED = "second_factor.added"
    SECOND_FACTOR_REMOVED = "second_factor.removed"
    RECOVERY_CODES_RENEWED = "recovery_codes.renewed"
    RECOVERY_CODE_USED = "recovery_code.used"
    MEMBERS_LISTED = "member.listed"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    INVITATION_CREATED = "invitation.created"
    INVITATION_ACCEPTED = "invitation.accepted"
    INVITATION_REVOKED = "invitation.revoked"
    INVITATIONS_LISTED = "invitation.listed"
    APIKEYS_LISTED = "apikey.listed"
    APIKEY_UPDATED = "apikey.updated"
    APIKEY_ROTATED = "apikey.rotated"
    APIKEY_REVOKED = "apikey.revoked"
    SIGN_IN_RULES_READ = "sign_in_rules.read"
    SIGN_IN_RULES_CHANGED = "sign_in_rules.changed"
    IDENTITY_LINKED = "identity.linked"


class Topic(StrEnum):
    """What the outbox carries. memos_web/celery.py says which task takes each."""

    CUBES_WRITTEN = "cubes.written"
    CUBES_READ = "cubes.read"
    CUBES_REEMBED = "cubes.reembed"
    JOB_REQUESTED = "job.requested"
    # accounts
    PASSWORD_RESET_ASKED = "password.reset_asked"
    INVITATION_CREATED = "invitation.created"
