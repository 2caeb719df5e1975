"""The enumerations of the product. Their values are stored and sent to clients, so they never change."""

from enum import StrEnum

EXTRACTIVE = "extractive"  # the `model` of a conversation or an answer without a language model


DELETED_MARK = "~"  # in the paths of deleted namespaces


class NamespaceKind(StrEnum):
    PRIVATE = "private"
    EXPERT = "expert"
    SHARED = "shared"
    CONTEXT_POOL = "context_pool"
    PIPELINE_CACHE = "pipeline_cache"


class Tier(StrEnum):
    """The storage tier of a memory. COLD: without a vector, found by words only. ARCHIVE: its state is archived."""

    HOT = "hot"
    COLD = "cold"
    ARCHIVE = "archive"


class MemoryType(StrEnum):
    PLAINTEXT = "plaintext"
    ACTIVATION = "activation"
    PARAMETER = "parameter"


class Composition(StrEnum):
    """The ways in which a cache enters a prompt where another one stands at the head: not at all, or with its keys
    rotated to its place, and with its first tokens read again there."""

    EXACT = "exact"
    ROTATED = "rotated"
    RECOMPUTE_12 = "rotated+recompute(12)"
    RECOMPUTE_32 = "rotated+recompute(32)"

    @property
    def recomputed(self) -> int:
        """Return the number of tokens that are read again."""
        return {Composition.RECOMPUTE_12: 12, Composition.RECOMPUTE_32: 32}.get(self, 0)


class Layer(StrEnum):
    SHORT_TERM = "short_term"
    MID_TERM = "mid_term"
    LONG_TERM = "long_term"


class PageLayer(StrEnum):
    """The layer of a page: the short-term queue of its stream, or a mid-term segment."""

    SHORT_TERM = "short_term"
    MID_TERM = "mid_term"


class EntryQueue(StrEnum):
    """The long-term queues of a persona: a user's profile and knowledge, or an agent's traits and actions."""

    PROFILE = "profile"
    KNOWLEDGE = "knowledge"
    AGENT = "agent"


class EntryAction(StrEnum):
    """The effect of a statement on a persona's queue. NOTHING stores no row."""

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


class ListedState(StrEnum):
    """A state by which lists and filters select, or the mark of a deletion."""

    GENERATED = State.GENERATED
    ACTIVATED = State.ACTIVATED
    MERGED = State.MERGED
    ARCHIVED = State.ARCHIVED
    EXPIRED = State.EXPIRED
    DELETED = "deleted"


ENDED = frozenset({ListedState.EXPIRED, ListedState.DELETED})  # what only those see who may restore it


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


STATED = (
    SemanticType.PROFILE,
    SemanticType.FACT,
    SemanticType.PREFERENCE,
    SemanticType.GOAL,
    SemanticType.EVENT,
)  # kinds of statements, in the order in which they are listed
OWN_SPEAKERS = frozenset({"", "user"})  # of what the reader may have said themselves


class Source(StrEnum):
    CHAT = "chat"
    API = "api"
    IMPORT = "import"
    PACK = "pack"
    SYSTEM = "system"


class ImportFormat(StrEnum):
    """The file formats that can be imported."""

    JSONL = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"
    MEM0 = "mem0"
    MEMPACK = "mempack"
    MEMOS = "memos"
    MEMORYOS = "memoryos"
    LOCOMO = "locomo"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    GEMINI = "gemini"
    OPENMEMORY = "openmemory"
    MCP_MEMORY = "mcp_memory"
    LETTA = "letta"
    GRAPHITI = "graphiti"
    LANGGRAPH = "langgraph"


class SyncDirection(StrEnum):
    """The side that a sync changes: this installation, the other one, or both."""

    PULL = "pull"
    PUSH = "push"
    BOTH = "both"


class SyncOutcome(StrEnum):
    """The outcome for one memory received from another installation. CONFLICT: it was also changed here since the last
    sync."""

    STORED = "stored"
    UPDATED = "updated"
    PRESENT = "present"
    DELETED = "deleted"
    CONFLICT = "conflict"
    REFUSED = "refused"


class OnConflict(StrEnum):
    """The options for a memory that was imported before and differs here now."""

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
    """The kinds of edges between cubes: `source` was derived from, follows, … `target`.

    SAME_ENTITY has no rows: cubes with a common entity are looked up for each reader (vault/graph/walks.py).
    """

    DERIVED = "derived"
    FOLLOWS = "follows"
    CAUSES = "causes"
    CONTRADICTS = "contradicts"
    SAME_ENTITY = "same_entity"
    PARENT = "parent"


class SourceKind(StrEnum):
    """The ways in which a derived memory uses its source. They decide the effect of a withdrawn source.

    QUOTE: only the quote is hidden. EXTRACT: the whole memory is hidden, because it has no other words. TEXT: any other
    derived text, hidden until a review.
    """

    QUOTE = "quote"
    EXTRACT = "extract"
    TEXT = "text"


class Preference(StrEnum):
    """The statements that a search ranks first: those of trusted packs, or the organisation's own."""

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
    """The change of a memory since a time: another version, deleted, added, or restored after it was deleted then."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    DELETED = "deleted"
    ADDED = "added"
    RESTORED = "restored"


class TurnEnd(StrEnum):
    """The end of an answer: complete, or interrupted because the reader left."""

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
    """The status of a review. SUPERSEDED: the review of a newer version replaced it."""

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
    """The effect of feedback: counted, a new version, or a review by someone who may change the memory."""

    COUNTED = "counted"
    CHANGED = "changed"
    REVIEW = "review"


class PiiField(StrEnum):
    """The fields of a memory that are screened for personal data."""

    CONTENT = "content"
    TITLE = "title"
    METADATA = "metadata"
    TAGS = "tags"
    SPEAKER = "speaker"


class HoldKind(StrEnum):
    """The kinds of holds: a member's freeze of one cube, or a legal hold of the tenant on a memory, a query or a
    subject."""

    FREEZE = "freeze"
    MEMORY = "memory"
    QUERY = "query"
    SUBJECT = "subject"


class HoldStatus(StrEnum):
    """The status of a hold. RELEASING: one member has approved the release, another approval is needed."""

    ACTIVE = "active"
    RELEASING = "releasing"
    RELEASED = "released"


class SubjectStatus(StrEnum):
    """The status of a data subject. KEPT: erased except held memories; ERASING: an erasure is in progress."""

    ACTIVE = "active"
    ERASING = "erasing"
    KEPT = "kept"
    ERASED = "erased"


class Counted(StrEnum):
    """The rows that are counted each day (vault/overview/counts.py). EXPIRY: memories by their day of expiry."""

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
    """The topic under which the MemStore lists a pack."""

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
    """The state of a version. BLOCKED: the scan has findings, and a new build must replace it.

    From READY on, its content never changes.
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
    """The outcome for a memory in the scan of a pack."""

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
    """The tenants that find a publication: its own, a list of tenants, or every tenant of the installation."""

    TENANT = "tenant"
    TENANTS = "tenants"
    INSTALLATION = "installation"


class PublicationState(StrEnum):
    """The state of a publication. WAITING: another member must approve it before other tenants find it."""

    WAITING = "waiting"
    PUBLISHED = "published"
    REJECTED = "rejected"
    HIDDEN = "hidden"
    BANNED = "banned"


class ReportReason(StrEnum):
    """The reasons for reporting a pack to the operator."""

    PERSONAL_DATA = "personal_data"
    HARMFUL = "harmful"
    WRONG = "wrong"
    RIGHTS = "rights"
    OTHER = "other"


class QuotaPeriod(StrEnum):
    """The period after which the reads of a contract are counted from 0 again."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"


class ContractState(StrEnum):
    """The state of a contract. REQUESTED: the pack is not installed yet; REVOKED: by the publisher; ENDED: by the
    subscriber.

    EXPIRED is never stored: it follows from the end of the validity.
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
    """The delivery of new versions: on the subscriber's request, or automatically."""

    PULL = "pull"
    PUSH = "push"
