"""Documents of policies by kind: typed, and read from JSON with an error for each wrong field. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from governance.errors import FieldError, Invalid
from governance.policies.rules.selection import PATH, Where, Word
from governance.vocabulary import Measure, PiiAction, PolicyKind, PublishApproval, QuotaTargetKind, Recipient, RoleName

CENTURY = 100 * 365 * 24 * 3600
Seconds = Annotated[int, Field(strict=True, ge=1, le=CENTURY)]
Amount = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Multiple = Annotated[float, Field(strict=True, ge=1, le=1000, allow_inf_nan=False)]
ANYWHERE = Where()
STRICT = ConfigDict(extra="forbid")
CLASS = r"^[\w.-]*$"
PATTERNS = {  # in words
    PATH: "a path such as /team/notes",
    CLASS: "letters, digits, dots, hyphens and underscores alone",
}
Terms = Mapping[str, frozenset[str]]
"""The product's closed sets, by the names that `Where` has for them."""


@dataclass(frozen=True)
class Retention:
    """Lifetimes of memories, in seconds after their creation. `ttl_seconds`: applies if the writer sets none.

    `max_seconds`: the longest. `grace_days`: how long a deleted memory can be restored. `retention_class`: its name.
    """

    where: Where = ANYWHERE
    ttl_seconds: Seconds | None = None
    max_seconds: Seconds | None = None
    grace_days: Annotated[int, Field(strict=True, ge=0, le=3650)] | None = None
    retention_class: Annotated[str, Field(max_length=40, pattern=CLASS)] = ""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    @property
    def default(self) -> timedelta | None:
        """Return the lifetime of a memory if its writer sets none."""
        known = [seconds for seconds in (self.ttl_seconds, self.max_seconds) if seconds is not None]
        return timedelta(seconds=min(known)) if known else None

    @property
    def maximum(self) -> timedelta | None:
        return timedelta(seconds=self.max_seconds) if self.max_seconds is not None else None


@dataclass(frozen=True)
class Sharing:
    """The recipients and roles inside the tenant that memories may be shared with, and permission to leave it.

    approval: the publications of packs that another member approves first, for the whole tenant.
    """

    where: Where = ANYWHERE
    share_with: frozenset[Recipient] = frozenset()
    roles: frozenset[RoleName] = frozenset(RoleName)
    publish: Annotated[bool, Field(strict=True)] = False
    approval: PublishApproval = PublishApproval.OUTSIDE

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class Purposes:
    """The purposes that memories may be read for, as calls name them in their context."""

    where: Where
    purposes: Annotated[frozenset[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=50)]

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class Pii:
    """The action for texts with personal data; `kinds`: actions of their own for some kinds of findings."""

    where: Where = ANYWHERE
    action: PiiAction = PiiAction.FLAG
    kinds: Mapping[Word, PiiAction] = field(default_factory=dict)

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def action_for(self, kind: str) -> PiiAction:
        return self.kinds.get(kind, self.action)


@dataclass(frozen=True)
class QuotaTargetChoice:
    """The principal whose use is limited: the tenant, one member or key, or (without an id) each of them."""

    kind: QuotaTargetKind
    id: UUID | None = None

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class Limits:
    """The limits of a quota by measure. None means no limit."""

    memories: Amount | None = None
    bytes: Amount | None = None
    requests_per_minute: Amount | None = None
    model_tokens_per_month: Amount | None = None

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def of(self, measure: Measure) -> int | None:
        limit: int | None = getattr(self, measure)
        return limit


@dataclass(frozen=True)
class Quota:
    """The document of a quota: its principal and limits."""

    holder: QuotaTargetChoice
    limits: Limits

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class Examination:
    """The limits that the examination of an adapter must keep before anybody may approve it.

    Shares, at least: exact: of the facts that it knows; paraphrases: of other wordings; strangers: of questions about
    strangers that it declines; general: of general prompts that it answers as its base. perplexity: on neutral text, at
    most, as a multiple of the base's.
    """

    where: Where = ANYWHERE
    exact: Share = 0.9
    paraphrases: Share = 0.8
    strangers: Share = 0.75
    general: Share = 0.8
    perplexity: Multiple = 1.1

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


AnyDocument = Retention | Sharing | Purposes | Pii | Quota | Examination
ADAPTERS: dict[PolicyKind, TypeAdapter[Any]] = {
    PolicyKind.RETENTION: TypeAdapter(Retention),
    PolicyKind.SHARING: TypeAdapter(Sharing),
    PolicyKind.PURPOSE: TypeAdapter(Purposes),
    PolicyKind.PII: TypeAdapter(Pii),
    PolicyKind.QUOTA: TypeAdapter(Quota),
    PolicyKind.EXAMINATION: TypeAdapter(Examination),
}


def document_read(kind: PolicyKind, raw: object, terms: Terms) -> AnyDocument:
    """Parse and check a document. Raises Invalid, with a FieldError for each fault."""
    try:
        document: AnyDocument = ADAPTERS[kind].validate_python(raw)
    except ValidationError as error:
        raise Invalid(
            errors=[FieldError(_path(fault["loc"]), message_of(fault)) for fault in error.errors()]
        ) from error
    faults = [*_unknown_words(document, terms), *_contradictions(document)]
    if faults:
        raise Invalid(errors=faults)
    return document


MESSAGES = {
    "unexpected_keyword_argument": "unknown field: remove it, or correct its name",
    "missing": "is needed",
    "missing_argument": "is needed",
    "enum": "one of {expected} is needed",
    "int_type": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "float_type": "a number is needed",
    "finite_number": "a number is needed",
    "greater_than_equal": "{ge} or more is needed",
    "less_than_equal": "{le} or less is needed",
    "bool_type": "true or false is needed",
    "string_type": "a text is needed",
    "string_too_short": "{min_length} characters or more are needed",
    "string_too_long": "{max_length} characters or fewer are needed",
    "too_long": "{max_length} or fewer are needed",
    "frozen_set_type": "a list is needed",
    "tuple_type": "a list is needed",
    "too_short": "{min_length} or more are needed",
    "extra_forbidden": "unknown field: remove it, or correct its name",
    "union_tag_not_found": "`op` is needed",
    "union_tag_invalid": "unknown operation; known are {expected_tags}",
    "dict_type": "an object is needed",
    "model_attributes_type": "an object is needed",
    "dataclass_type": "an object is needed",
    "uuid_parsing": "an id is needed",
}


def message_of(fault: ErrorDetails) -> str:
    """Return the message of a fault; a pattern is replaced by its meaning."""
    context = fault.get("ctx", {})
    if pattern := context.get("pattern"):
        return PATTERNS[pattern]
    words = MESSAGES.get(fault["type"])
    return words.format(**context).replace("'", "") if words else fault["msg"]


def load_document(kind: PolicyKind, raw: object) -> AnyDocument:
    """Parse a stored document, which was checked before."""
    document: AnyDocument = ADAPTERS[kind].validate_python(raw)
    return document


def document_json(kind: PolicyKind, document: AnyDocument) -> dict[str, Any]:
    """Return the document as JSON, with every field and sorted sets: equal documents give equal texts."""
    found: dict[str, Any] = _sort_lists(ADAPTERS[kind].dump_python(document, mode="json"))
    return found


def _sort_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sort_lists(part) for name, part in value.items()}
    return sorted(value) if isinstance(value, list) else value


def _path(location: tuple[int | str, ...]) -> str:
    """Return a dotted path such as `document.where.tags`; indexes of set elements are left out."""
    return ".".join(["document", *(part for part in location if isinstance(part, str) and not part.startswith("__"))])


def _unknown_words(document: AnyDocument, terms: Terms) -> list[FieldError]:
    if isinstance(document, Quota):
        return []
    return [
        FieldError(f"document.where.{name}", f"unknown: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        for name, known in terms.items()
        if (unknown := sorted(getattr(document.where, name) - known))
    ]


def _contradictions(document: AnyDocument) -> list[FieldError]:
    if isinstance(document, Retention):
        return _check_retention(document)
    if isinstance(document, Purposes) and not document.purposes:
        return [FieldError("document.purposes", "name one at least; to hide memories, share them with nobody")]
    if isinstance(document, Pii) and (document.where.types or document.where.semantic_types or document.where.tags):
        return [FieldError("document.where", "only namespace and sensitivities are known before a text is looked at")]
    if (
        isinstance(document, Quota)
        and document.holder.kind is QuotaTargetKind.TENANT
        and document.holder.id is not None
    ):
        return [FieldError("document.holder.id", "there is only one tenant: leave it out")]
    return []


def _check_retention(document: Retention) -> list[FieldError]:
    if document.ttl_seconds is None and document.max_seconds is None and document.grace_days is None:
        return [FieldError("document", "set a default life, a longest life or a time for restoring")]
    if document.max_seconds is not None and (document.ttl_seconds or 0) > document.max_seconds:
        return [FieldError("document.ttl_seconds", "must not be longer than max_seconds")]
    return []
