"""Enumerations of governance. Their values are stored and sent to clients, and never change."""

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
    MEMORY_FREEZE = "memory.freeze"
    HOLD_MANAGE = "hold.manage"
    SUBJECT_MANAGE = "subject.manage"
    POLICY_READ = "policy.read"
    POLICY_MANAGE = "policy.manage"
    ACCESS_SHARE = "access.share"
    ACCESS_GOVERN = "access.govern"
    GRANT_MANAGE = "grant.manage"
    PERSONA_USE = "persona.use"
    PERSONA_CREATE = "persona.create"
    PERSONA_UPDATE = "persona.update"
    TEMPLATE_MANAGE = "template.manage"
    STORE_MANAGE = "store.manage"


class Scope(StrEnum):
    """The scopes of an API key: they limit what its member's role and its own grants allow."""

    MEMORIES_READ = "memories:read"
    MEMORIES_WRITE = "memories:write"
    CHAT = "chat"
    ADMIN = "admin"


class PrincipalKind(StrEnum):
    MEMBER = "member"
    API_KEY = "api_key"
    SYSTEM = "system"


class GranteeKind(StrEnum):
    """The kinds of grantees; each grantee owns an access group."""

    ROLE = "role"
    MEMBER = "member"
    PERSONA = "persona"
    API_KEY = "api_key"


class Effect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class Action(StrEnum):
    """The actions that grants allow. READ of a persona means to speak as it."""

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
    MCP = "mcp"
    COMMAND_LINE = "command_line"
    WORKER = "worker"


class Outcome(StrEnum):
    DONE = "done"
    DENIED = "denied"


class Verb(StrEnum):
    """The actions that audit entries record."""

    TENANT_CREATED = "tenant.created"
    KEYS_ROTATED = "tenant.keys_rotated"
    TENANT_DELETION_REQUESTED = "tenant.deletion_requested"
    TENANT_DELETED = "tenant.deleted"
    MEMBER_ADDED = "member.added"
    MEMBER_SIGNED_IN = "member.signed_in"
    MEMBER_SIGNED_OUT = "member.signed_out"
    SIGN_IN_LINK_CREATED = "sign_in_link.created"
    APIKEY_CREATED = "apikey.created"
    NAMESPACE_CREATED = "namespace.created"
    NAMESPACE_CHANGED = "namespace.changed"
    NAMESPACE_MOVED = "namespace.moved"
    NAMESPACE_RESTORED = "namespace.restored"
    NAMESPACE_ENDED = "namespace.ended"
    NAMESPACE_DELETED = "namespace.deleted"
    NAMESPACE_SUMMARISED = "namespace.summarised"
    MOUNT_CREATED = "namespace.mounted"
    MOUNT_REMOVED = "namespace.unmounted"
    SUBJECT_CREATED = "subject.created"
    SUBJECT_LISTED = "subject.listed"
    SUBJECT_READ = "subject.read"
    SUBJECT_EXPORTED = "subject.exported"
    SUBJECT_ERASED = "subject.erased"
    MEMORY_CREATED = "memory.created"
    MEMORY_READ = "memory.read"
    MEMORY_LISTED = "memory.listed"
    MEMORY_SEARCHED = "memory.searched"
    MEMORY_UPDATED = "memory.updated"
    MEMORY_DELETED = "memory.deleted"
    MEMORY_RESTORED = "memory.restored"
    MEMORY_PURGED = "memory.purged"
    MEMORY_EXPORTED = "memory.exported"
    VERSIONS_READ = "memory.versions_read"
    CONTEXT_READ = "context.read"
    MEMORY_INDEXED = "memory.indexed"
    CONVERSATION_CREATED = "conversation.created"
    CONVERSATION_READ = "conversation.read"
    CONVERSATION_UPDATED = "conversation.updated"
    CONVERSATION_DELETED = "conversation.deleted"
    CONVERSATION_SUMMARISED = "conversation.summarised"
    TURN_CREATED = "turn.created"
    JOB_CREATED = "job.created"
    JOB_READ = "job.read"
    JOB_RETRIED = "job.retried"
    JOB_FINISHED = "job.finished"
    JOB_CANCELLED = "job.cancelled"
    JOB_UNDONE = "job.undone"
    SCHEDULE_CREATED = "schedule.created"
    SCHEDULE_CHANGED = "schedule.changed"
    SCHEDULE_REMOVED = "schedule.removed"
    REPLY_REPEATED = "reply.repeated"
    WORK_RESUMED = "work.resumed"
    ACCESS_DENIED = "access.denied"
    MEMORY_REDACTED = "memory.redacted"
    PII_CHECKED = "pii.checked"
    REVIEW_LISTED = "review.listed"
    REVIEW_ACCEPTED = "review.accepted"
    REVIEW_REJECTED = "review.rejected"
    REVIEW_REOPENED = "review.reopened"
    # the audit log itself
    AUDIT_LISTED = "audit.listed"
    AUDIT_READ = "audit.read"
    AUDIT_REPORTED = "audit.reported"
    AUDIT_VERIFIED = "audit.verified"
    AUDIT_EXPORT_CREATED = "audit.export_created"
    AUDIT_EXPORT_FINISHED = "audit.export_finished"
    AUDIT_EXPORT_READ = "audit.export_read"
    AUDIT_CHECKPOINT_READ = "audit.checkpoint_read"
    AUDIT_SINK_CREATED = "audit_sink.created"
    AUDIT_SINK_UPDATED = "audit_sink.updated"
    AUDIT_SINK_REMOVED = "audit_sink.removed"
    MODEL_ENDPOINT_CREATED = "model_endpoint.created"
    MODEL_ENDPOINT_UPDATED = "model_endpoint.updated"
    MODEL_ENDPOINT_REMOVED = "model_endpoint.removed"
    MEMORY_FROZEN = "memory.frozen"
    MEMORY_UNFROZEN = "memory.unfrozen"
    MEMORY_TIERED = "memory.tiered"
    MEMORY_IMPORTANCE_RAISED = "memory.importance_raised"
    MEMORY_TRANSITIONED = "memory.transitioned"
    MEMORY_PROMOTED = "memory.promoted"
    MEMORY_RELATED = "memory.related"
    MEMORY_UNRELATED = "memory.unrelated"
    MEMORY_FEEDBACK_GIVEN = "memory.feedback_given"
    MEMORY_QUARANTINED = "memory.quarantined"
    HOLD_CREATED = "hold.created"
    HOLD_READ = "hold.read"
    HOLD_RELEASE_APPROVED = "hold.release_approved"
    HOLD_RELEASED = "hold.released"
    PROVENANCE_READ = "provenance.read"
    MANIFEST_ISSUED = "manifest.issued"
    MANIFEST_VERIFIED = "manifest.verified"
    POLICY_CREATED = "policy.created"
    POLICY_CHANGED = "policy.changed"
    POLICY_DISABLED = "policy.disabled"
    QUOTA_CHANGED = "quota.changed"
    RETENTION_APPLIED = "retention.applied"
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
    MEMBER_CHANGED = "member.changed"
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
    APIKEY_REFUSED = "apikey.refused"
    SIGN_IN_RULES_READ = "sign_in_rules.read"
    SIGN_IN_RULES_CHANGED = "sign_in_rules.changed"
    IDENTITY_LINKED = "identity.linked"
    # grants
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
    APIKEY_BOUND = "apikey.bound"
    PERSONA_READ = "persona.read"
    TEMPLATE_READ = "template.read"
    VIEW_CREATED = "view.created"
    VIEW_REMOVED = "view.removed"
    PIPELINE_CREATED = "pipeline.created"
    PIPELINE_CHANGED = "pipeline.changed"
    PIPELINE_REMOVED = "pipeline.removed"
    PIPELINE_RUN = "pipeline.run"
    FORM_CHANGED = "form.changed"
    FORM_APPROVED = "form.approved"
    FORM_PROPOSED = "form.proposed"
    FORM_PROPOSAL_ACCEPTED = "form.proposal_accepted"
    FORM_PROPOSAL_DECLINED = "form.proposal_declined"
    FORM_PROPOSAL_REOPENED = "form.proposal_reopened"
    OPERATOR_CHANGED = "operator.changed"
    OPERATOR_VIEWED = "operator.viewed"
    SEGMENT_CHANGED = "segment.changed"
    # webhooks
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_REMOVED = "webhook.removed"
    WEBHOOK_ROTATED = "webhook.rotated"
    WEBHOOK_TESTED = "webhook.tested"
    DELIVERY_REPLAYED = "webhook.delivery_replayed"
    SYNC_PEER_CREATED = "sync_peer.created"
    SYNC_PEER_CHANGED = "sync_peer.changed"
    SYNC_PEER_REMOVED = "sync_peer.removed"
    UPLOAD_CREATED = "upload.created"
    UPLOAD_REMOVED = "upload.removed"
    # MemStore
    PACK_CREATED = "pack.created"
    PACK_CHANGED = "pack.changed"
    PACK_READ = "pack.read"
    PACK_LISTED = "pack.listed"
    PACK_REMOVED = "pack.removed"
    PACK_VERSION_CREATED = "pack_version.created"
    PACK_VERSION_READ = "pack_version.read"
    PACK_VERSION_CHANGED = "pack_version.changed"
    PACK_VERSION_YANKED = "pack_version.yanked"
    PACK_VERSION_REMOVED = "pack_version.removed"
    PUBLICATION_CREATED = "publication.created"
    PUBLICATION_READ = "publication.read"
    PUBLICATION_LISTED = "publication.listed"
    PUBLICATION_ACCEPTED = "publication.accepted"
    PUBLICATION_REJECTED = "publication.rejected"
    PUBLICATION_RATED = "publication.rated"
    PUBLICATION_REPORTED = "publication.reported"
    PROPOSAL_CREATED = "proposal.created"
    PROPOSAL_LISTED = "proposal.listed"
    PROPOSAL_ACCEPTED = "proposal.accepted"
    PROPOSAL_DECLINED = "proposal.declined"
    PUBLICATION_MODERATED = "publication.moderated"
    SUBSCRIPTION_LISTED = "subscription.listed"
    SUBSCRIPTION_READ = "subscription.read"
    SUBSCRIPTION_CREATED = "subscription.created"
    SUBSCRIPTION_CHANGED = "subscription.changed"
    SUBSCRIPTION_REVOKED = "subscription.revoked"
    SUBSCRIPTION_ENDED = "subscription.ended"
    CONTRACT_LISTED = "contract.listed"
    CONTRACT_READ = "contract.read"
    CONTRACT_CREATED = "contract.created"
    CONTRACT_CHANGED = "contract.changed"
    CONTRACT_REVOKED = "contract.revoked"
    CONTRACT_ENDED = "contract.ended"


class Topic(StrEnum):
    """The kinds of events and jobs. Each has one handler (governance/outbox/routes.py, governance/jobs/kinds.py)."""

    CUBES_WRITTEN = "cubes.written"
    CUBES_READ = "cubes.read"
    CUBES_REEMBED = "cubes.reembed"
    REEMBED_CANCELLED = "reembed.cancelled"
    MEMORIES_ADD = "memories.add"
    AUDIT_EXPORT = "audit.export"
    RETENTION_CHANGED = "retention.changed"
    RETENTION_APPLY = "retention.apply"
    SIZES_DUE = "sizes.due"
    PASSWORD_RESET_ASKED = "password.reset_asked"
    INVITATION_CREATED = "invitation.created"
    COUNTS_DUE = "counts.due"
    DIGESTS_DUE = "digests.due"
    MEMORIES_ACT = "memories.act"
    MEMORIES_ACT_UNDO = "memories.act_undo"
    MEMORIES_IMPORT_UNDO = "memories.import_undo"
    MEMORIES_EXPORT = "memories.export"
    SUBJECT_EXPORT = "subject.export"
    SUBJECT_ERASE = "subject.erase"
    TENANT_ERASE = "tenant.erase"
    NAMESPACE_MOVE = "namespace.move"
    TIERS_APPLY = "tiers.apply"
    NAMESPACE_RESTORE = "namespace.restore"
    SESSION_END = "session.end"
    WRITER_QUARANTINE = "writer.quarantine"
    LIFECYCLE_SWEEP = "lifecycle.sweep"
    PAGES_WRITTEN = "pages.written"
    WORKING_SETS_DUE = "working_sets.due"
    EXPORTS_DUE = "exports.due"
    SEGMENTS_HOT = "segments.hot"
    SEGMENTS_EVICTED = "segments.evicted"
    LAYERS_REPLAY = "layers.replay"
    INDEX_CHECK = "index.check"
    FUSIONS_PROPOSE = "fusions.propose"
    BLOBS_DUE = "blobs.due"
    BLOBS_ORPHANED = "blobs.orphaned"
    FORMS_DROPPED = "forms.dropped"
    FORM_BUILD = "form.build"
    FORM_PROPOSE = "form.propose"
    VECTORS_CHANGED = "vectors.changed"
    VECTORS_MOVE = "vectors.move"
    CONFLICTS_PROPOSE = "conflicts.propose"
    PACK_BUILD = "pack.build"
    PACK_INSTALL = "pack.install"
    PACK_COMPARE = "pack.compare"
    STORE_CHANGED = "store.changed"
    STORE_READ = "store.read"
    STORE_RATED = "store.rated"
    LISTINGS_WRITTEN = "listings.written"
    STORE_PROPOSED = "store.proposed"
    STORE_ANSWERED = "store.answered"
    WEBHOOK_DELIVER = "webhook.deliver"
    BEHAVIOUR_UPDATE = "behaviour.update"
    SUMMARIES_WRITE = "summaries.write"
    MEMORIES_IMPORT = "memories.import"
    PIPELINE_RUN = "pipeline.run"
    UPLOADS_DUE = "uploads.due"
    MEMORIES_SYNC = "memories.sync"


class ExportFormat(StrEnum):
    """The formats of an exported audit log: one JSON object a line, or one row of a table."""

    JSONL = "jsonl"
    CSV = "csv"


class JobStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Weight(StrEnum):
    """The queues of topics: for jobs that somebody waits for, jobs that follow a write, and long jobs."""

    INTERACTIVE = "interactive"
    BACKGROUND = "background"
    HEAVY = "heavy"


class SinkKind(StrEnum):
    """The kinds of audit sinks."""

    SYSLOG = "syslog"
    WEBHOOK = "webhook"


class DeliveryStatus(StrEnum):
    """The states of a webhook's delivery. failed: a day of retries had no success; it can be replayed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class PiiKind(StrEnum):
    """The kinds of personal data and secrets. `unchecked`: the detector failed, so the text was not checked."""

    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    IBAN = "iban"
    NATIONAL_ID = "national_id"
    NETWORK_ADDRESS = "network_address"
    SECRET = "secret"
    UNCHECKED = "unchecked"


class PersonalKind(StrEnum):
    """The kinds of identifiers of a person that are found in texts about a data subject alone, beside PiiKind."""

    PERSON = "person"
    RELATIVE = "relative"
    ADDRESS = "address"
    BIRTH_DATE = "birth_date"
    NUMBER = "number"


class PiiAction(StrEnum):
    """The actions for texts with personal data or secrets, from the mildest to the strictest."""

    ALLOW = "allow"
    FLAG = "flag"
    REDACT = "redact"
    REFUSE = "refuse"


class PolicyKind(StrEnum):
    RETENTION = "retention"
    SHARING = "sharing"
    PURPOSE = "purpose"
    PII = "pii"
    QUOTA = "quota"
    EXAMINATION = "examination"


class Recipient(StrEnum):
    """The recipients with whom memory may be shared inside its tenant."""

    MEMBER = "member"
    ROLE = "role"
    PERSONA = "persona"
    API_KEY = "api_key"


class PublishApproval(StrEnum):
    """The kinds of publications that another member must approve first, from the mildest rule to the strictest.

    OUTSIDE: publications that other organisations can find, if the tenant has another member who may approve.
    """

    NEVER = "never"
    OUTSIDE = "outside"
    ALWAYS = "always"


class QuotaTargetKind(StrEnum):
    """The kinds of principals that a quota limits."""

    TENANT = "tenant"
    MEMBER = "member"
    API_KEY = "api_key"


class Measure(StrEnum):
    """The measures that a quota limits."""

    MEMORIES = "memories"
    BYTES = "bytes"
    REQUESTS = "requests_per_minute"
    MODEL_TOKENS = "model_tokens_per_month"
