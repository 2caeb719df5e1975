"""The closed sets of the product. Values are stored and sent to clients: they never change."""

from enum import StrEnum

EXTRACTIVE = "extractive"  # the `model` of a conversation or an answer without a language model


class NamespaceKind(StrEnum):
    PRIVATE = "private"
    EXPERT = "expert"
    SHARED = "shared"
    CONTEXT_POOL = "context_pool"
    PIPELINE_CACHE = "pipeline_cache"


class Tier(StrEnum):
    """The storage tier of a memory. Cold: no vector, found by its words. Archive: the state is archived."""

    HOT = "hot"
    COLD = "cold"
    ARCHIVE = "archive"


class MemoryType(StrEnum):
    PLAINTEXT = "plaintext"
    ACTIVATION = "activation"
    PARAMETER = "parameter"


class Layer(StrEnum):
    SHORT_TERM = "short_term"
    MID_TERM = "mid_term"
    LONG_TERM = "long_term"


class PageLayer(StrEnum):
    """The place of a page of a stream: its queue, or a segment."""

    SHORT_TERM = "short_term"
    MID_TERM = "mid_term"


class EntryQueue(StrEnum):
    """The long-term queues of a persona: of a user profile and knowledge, of an agent what it is and did."""

    PROFILE = "profile"
    KNOWLEDGE = "knowledge"
    AGENT = "agent"


class EntryAction(StrEnum):
    """The effect of a statement on a persona's queue. NOTHING leaves no row."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    NOTHING = "nothing"


class State(StrEnum):
    GENERATED = "generated"
    ACTIVATED = "activated"
    MERGED = "merged"
    ARCHIVED = "archived"
    EXPIRED = "expired"


class Modality(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    TOOL_CALL = "tool_call"
    DOCUMENT = "document"


class ToolOutcome(StrEnum):
    """The outcome of a tool call."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class SemanticType(StrEnum):
    FACT = "fact"
    PREFERENCE = "preference"
    EVENT = "event"
    GOAL = "goal"
    PROFILE = "profile"
    SKILL = "skill"
    STYLE = "style"
    INSIGHT = "insight"
    SUMMARY = "summary"
    TOOL_TRACE = "tool_trace"
    DIALOGUE = "dialogue"
    DOCUMENT = "document"


class Source(StrEnum):
    CHAT = "chat"
    API = "api"
    IMPORT = "import"
    PACK = "pack"
    SYSTEM = "system"


class ImportFormat(StrEnum):
    """The files that memories are imported from."""

    JSONL = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"
    MEM0 = "mem0"
    MEMPACK = "mempack"
    MEMOS = "memos"
    MEMORYOS = "memoryos"
    LOCOMO = "locomo"
    CHATGPT = "chatgpt"


class SyncDirection(StrEnum):
    """The side of a sync that changes: this one, the other one, or both."""

    PULL = "pull"
    PUSH = "push"
    BOTH = "both"


class SyncOutcome(StrEnum):
    """The fate of one memory that another installation sent. CONFLICT: it was changed here, too, since then."""

    STORED = "stored"
    UPDATED = "updated"
    PRESENT = "present"
    DELETED = "deleted"
    CONFLICT = "conflict"
    REFUSED = "refused"


class OnConflict(StrEnum):
    """The choices for a memory that was imported before and has other words here now."""

    SKIP = "skip"
    UPDATE = "update"


class AccessLevel(StrEnum):
    PRIVATE = "private"
    SHARED = "shared"
    READ_ONLY = "read_only"


class Sensitivity(StrEnum):
    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class LinkKind(StrEnum):
    """Typed edges between cubes: `source` was derived from, follows, … `target`.

    SAME_ENTITY has no rows: whoever names the same is found for each reader (vault/graph/walks.py).
    """

    DERIVED = "derived"
    FOLLOWS = "follows"
    CAUSES = "causes"
    CONTRADICTS = "contradicts"
    SAME_ENTITY = "same_entity"
    PARENT = "parent"


class SourceKind(StrEnum):
    """The kinds of reliance of a derived memory on its source, which decide what a withdrawn source takes from it.

    QUOTE: opened at reading time, the rest stays. EXTRACT: its words alone, the whole is withheld. TEXT: anything made
    of it, withheld until a review.
    """

    QUOTE = "quote"
    EXTRACT = "extract"
    TEXT = "text"


class Preference(StrEnum):
    """Statements that a task prefers: those of trusted packs, or the organisation's own."""

    OFFICIAL = "official"
    PERSONAL = "personal"


class SearchMode(StrEnum):
    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"
    TAG = "tag"
    GRAPH = "graph"
    MEMORYOS = "memoryos"


class PastChange(StrEnum):
    """The change of a memory since a time: another version, deleted, or stored only later."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    DELETED = "deleted"
    ADDED = "added"


class TurnEnd(StrEnum):
    """The end of an answer: complete, or cut because the reader left."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"


class ReviewKind(StrEnum):
    """The kinds of reviews."""

    PII = "pii"
    SOURCE_WITHDRAWN = "source_withdrawn"
    CONFLICT = "conflict"
    FEEDBACK = "feedback"
    FUSION = "fusion"
    QUARANTINE = "quarantine"
    SYNC = "sync"
    PACK_SUPERSEDES = "pack_supersedes"
    PACK_CONTRADICTS = "pack_contradicts"
    PACK_CONFIRMS = "pack_confirms"


class ReviewStatus(StrEnum):
    """`superseded`: a newer version asks the same."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


class FeedbackKind(StrEnum):
    """The kinds of a reader's feedback on a memory."""

    USEFUL = "useful"
    WRONG = "wrong"
    OUTDATED = "outdated"
    SENSITIVE = "sensitive"


class FeedbackOutcome(StrEnum):
    """The effect of feedback: a count, a version, or a review by somebody who may change the memory."""

    COUNTED = "counted"
    CHANGED = "changed"
    REVIEW = "review"


class PiiField(StrEnum):
    """The texts of a memory in which personal data is looked for."""

    CONTENT = "content"
    TITLE = "title"
    METADATA = "metadata"
    TAGS = "tags"
    SPEAKER = "speaker"


class HoldKind(StrEnum):
    """The kinds of holds: a member's own freeze of one cube, or a legal hold of the tenant's."""

    FREEZE = "freeze"
    MEMORY = "memory"
    QUERY = "query"
    SUBJECT = "subject"


class HoldStatus(StrEnum):
    """`releasing`: one member has approved, and another one's approval is awaited."""

    ACTIVE = "active"
    RELEASING = "releasing"
    RELEASED = "released"


class SubjectStatus(StrEnum):
    """`kept`: erased but for what a hold keeps; `erasing`: an erasure has begun and not ended."""

    ACTIVE = "active"
    ERASING = "erasing"
    KEPT = "kept"
    ERASED = "erased"


class Counted(StrEnum):
    """The rows that are counted each day (vault/overview/counts.py). EXPIRY: memories by the day on which they
    expire.
    """

    LAYER = "layer"
    STATE = "state"
    SEMANTIC_TYPE = "semantic_type"
    EXPIRY = "expiry"
    SEARCH = "search"
    JOB = "job"
    USAGE = "usage"
    AUDIT = "audit"
    TIER = "tier"
    TIER_BYTES = "tier_bytes"


class PackTopic(StrEnum):
    """The shelf of the MemStore that a pack stands on."""

    FAMILY = "family"
    HEALTH = "health"
    HOME = "home"
    FOOD = "food"
    WORK = "work"
    TRAVEL = "travel"
    LEARNING = "learning"
    TECHNOLOGY = "technology"
    OTHER = "other"


class PackState(StrEnum):
    """The state of a version. `blocked`: the scan has findings, and a new build replaces it.

    From `ready` on its content never changes.
    """

    SCANNING = "scanning"
    BLOCKED = "blocked"
    READY = "ready"
    DEPRECATED = "deprecated"
    YANKED = "yanked"


class FindingRule(StrEnum):
    """The treatment of memories with personal data or secrets in the scan of a pack."""

    BLOCK = "block"
    REDACT = "redact"
    DROP = "drop"


class SubjectRule(StrEnum):
    """The treatment of memories about data subjects in the scan of a pack."""

    DROP = "drop"
    ANONYMISE = "anonymise"


class Treatment(StrEnum):
    """The decision on a memory in the scan of a pack."""

    AS_IS = "as_is"
    REDACTED = "redacted"
    ANONYMISED = "anonymised"
    DROPPED = "dropped"
    BLOCKED = "blocked"


class ProposalState(StrEnum):
    """The state of a change that a subscriber proposes to the publisher of a pack."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"


class Visibility(StrEnum):
    """The readers of a publication: its own tenant, tenants that it names, every tenant of the installation."""

    TENANT = "tenant"
    TENANTS = "tenants"
    INSTALLATION = "installation"


class PublicationState(StrEnum):
    """`waiting`: another member's approval is needed before anybody finds it."""

    WAITING = "waiting"
    PUBLISHED = "published"
    REJECTED = "rejected"
    HIDDEN = "hidden"
    BANNED = "banned"


class ReportReason(StrEnum):
    """Reasons for which a pack is reported to the operator."""

    PERSONAL_DATA = "personal_data"
    HARMFUL = "harmful"
    WRONG = "wrong"
    RIGHTS = "rights"
    OTHER = "other"


class QuotaPeriod(StrEnum):
    """After which the reads of a contract are counted anew."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"


class ContractState(StrEnum):
    """`requested`: the pack is not installed yet; `revoked`: by the publisher; `ended`: by the subscriber.

    `expired` is never stored: it follows from the end of the validity.
    """

    REQUESTED = "requested"
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    ENDED = "ended"


class Refusal(StrEnum):
    """Reasons why the contract of a pack opens nothing, the first that holds first."""

    REVOKED = "revoked"
    ENDED = "ended"
    EXPIRED = "expired"
    PURPOSE = "purpose"
    QUOTA = "quota"


class Delivery(StrEnum):
    """The way that new versions come: when the subscriber asks, or by themselves."""

    PULL = "pull"
    PUSH = "push"
