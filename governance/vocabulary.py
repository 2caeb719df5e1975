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
    ACCESS_SHARE = "access.share"
    ACCESS_GOVERN = "access.govern"
    GRANT_MANAGE = "grant.manage"
    PERSONA_USE = "persona.use"
    PERSONA_CREATE = "persona.create"
    PERSONA_UPDATE = "persona.update"
    TEMPLATE_MANAGE = "template.manage"


class Scope(StrEnum):
    """What an API key may be used for: of what its member may do, and what is granted to itself, nothing more."""

    MEMORIES_READ = "memories:read"
    MEMORIES_WRITE = "memories:write"
    CHAT = "chat"
    ADMIN = "admin"


class PrincipalKind(StrEnum):
    MEMBER = "member"
    API_KEY = "api_key"
    SYSTEM = "system"


class HolderKind(StrEnum):
    """Whom a grant is given to; each owns an access group."""

    ROLE = "role"
    MEMBER = "member"
    PERSONA = "persona"
    API_KEY = "api_key"


class Effect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class Action(StrEnum):
    """What a grant is about. READ of a persona: to speak as it."""

    READ = "read"
    WRITE = "write"
    SHARE = "share"
    GOVERN = "govern"


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
    GRANT_CREATED = "grant.created"
    GRANT_CHANGED = "grant.changed"
    GRANT_REVOKED = "grant.revoked"
    GRANT_LISTED = "grant.listed"
    ACCESS_CHECKED = "access.checked"
    PERSONA_CREATED = "persona.created"
    PERSONA_CHANGED = "persona.changed"
    PERSONA_REMOVED = "persona.removed"
    TEMPLATE_CREATED = "template.created"
    TEMPLATE_CHANGED = "template.changed"
    TEMPLATE_REMOVED = "template.removed"
    TEMPLATE_APPLIED = "template.applied"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    APIKEY_BOUND = "apikey.bound"
    PERSONA_READ = "persona.read"
    TEMPLATE_READ = "template.read"


class Topic(StrEnum):
    """What the outbox carries. memos_web/celery.py says which task takes each."""

    CUBES_WRITTEN = "cubes.written"
    CUBES_READ = "cubes.read"
    CUBES_REEMBED = "cubes.reembed"
    JOB_REQUESTED = "job.requested"
