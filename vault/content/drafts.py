"""The data of writes: drafts and changes. They are frozen and checked on creation, so that services can rely on
them."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from typing import Literal
from uuid import UUID

from governance.errors import Invalid
from vault.content.words import Metadata, Quote
from vault.vocabulary import (
    AccessLevel,
    Layer,
    MemoryType,
    MessageRole,
    Modality,
    SemanticType,
    Sensitivity,
    Source,
    SourceKind,
)


class Unset(Enum):
    """The value of a field that a change leaves unchanged."""

    UNSET = "unset"


UNSET: Literal[Unset.UNSET] = Unset.UNSET

OWN_TRUST = 0.5  # of what a member wrote
PACK_TRUST = 0.4  # of what another organisation wrote


@dataclass(frozen=True)
class SourceRef:
    """A version of a stored memory whose words a new memory uses."""

    id: UUID
    version: int
    kind: SourceKind


@dataclass(frozen=True)
class CubeDraft:
    """One new memory. importance, priority, trust: 0..1. namespace None: the actor's private namespace."""

    content: str = field(repr=False)
    title: str = field(default="", repr=False)
    namespace: str | None = None
    persona: str | None = None
    subject: str | None = None
    session_id: str = ""
    task_id: str = ""
    message_id: str = ""
    speaker: str = ""
    tags: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict, repr=False)
    event_time: datetime | None = None
    said_at: datetime | None = None  # of a message, and of what it states
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    ttl_seconds: int | None = None
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    importance: float = 0.5
    priority: float = 0.0
    semantic_type: SemanticType = SemanticType.FACT
    layer: Layer = Layer.LONG_TERM
    modality: Modality = Modality.TEXT
    type: MemoryType = MemoryType.PLAINTEXT
    source: Source = Source.API
    trust: float = OWN_TRUST
    reader: str = "verbatim"
    allow_duplicates: bool = False
    is_message: bool = False
    is_dialogue_only: bool = False  # a message that states nothing
    may_repeat: bool = False  # a statement that its namespace and persona hold already becomes an occasion of it
    parent: int | None = None  # index, in the same call, of the draft of which this one is a part
    parent_kind: SourceKind = SourceKind.EXTRACT
    sources: tuple[SourceRef, ...] = ()  # stored memories that its words were taken from
    quotes: tuple[Quote, ...] = ()
    page_role: MessageRole | None = None  # of a message that becomes a side of a page of its stream


class InvalidDraft(Invalid):
    """The errors of one draft of a call. index: the position of the draft in the call."""

    def __init__(self, index: int, fault: Invalid) -> None:
        super().__init__(fault.detail, errors=fault.errors)
        self.code, self.title = fault.code, fault.title
        self.index = index


@dataclass(frozen=True)
class CubeChanges:
    """The fields that a PATCH sets; the others stay unchanged. None clears a field that may be empty."""

    content: str | Unset = UNSET
    title: str | Unset = UNSET
    tags: tuple[str, ...] | Unset = UNSET
    metadata: Metadata | Unset = UNSET
    semantic_type: SemanticType | Unset = UNSET
    namespace: str | Unset = UNSET
    persona: str | Unset | None = UNSET
    subject: str | Unset | None = UNSET
    sensitivity: Sensitivity | Unset = UNSET
    access_level: AccessLevel | Unset = UNSET
    importance: float | Unset = UNSET
    priority: float | Unset = UNSET
    expires_at: datetime | Unset | None = UNSET
    valid_from: datetime | Unset | None = UNSET
    valid_to: datetime | Unset | None = UNSET
    event_time: datetime | Unset | None = UNSET
    speaker: str | Unset = UNSET  # only a redaction changes it

    def named_fields(self) -> frozenset[str]:
        """Return the names of the fields that this change sets."""
        return frozenset(part.name for part in fields(self) if getattr(self, part.name) is not UNSET)
