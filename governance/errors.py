"""Errors: each knows its HTTP status and its stable code (RFC 9457 problem types)."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class FieldError:
    """A fault of the input: its field (dotted path) and a message."""

    field: str
    message: str


class DomainError(Exception):
    """Base of all expected failures. `detail` is one sentence for a person and never holds content or secrets."""

    status = 500
    code = "internal_error"
    title = "Internal error"

    def __init__(self, detail: str = "", *, errors: Sequence[FieldError] = (), retry_after: int | None = None) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.errors = tuple(errors)
        self.retry_after = retry_after


class Invalid(DomainError):
    status, code, title = 400, "invalid", "The request is not valid"


class UnknownPersona(Invalid):
    """A reference to no persona that the actor may use."""

    code, title = "unknown_persona", "No persona of yours has this id or name"


class InvalidETag(Invalid):
    code, title = "invalid_etag", "If-Match is not a list of ETags"


class HostNotAllowed(DomainError):
    status, code, title = 400, "host_not_allowed", "This host name is not allowed"


class Unauthenticated(DomainError):
    status, code, title = 401, "unauthenticated", "Sign in or send a valid API key"


class Forbidden(DomainError):
    """A denial with the missing permission and the deciding rule, for the audit log."""

    status, code, title = 403, "forbidden", "You may not do this"

    def __init__(
        self,
        detail: str,
        *,
        permission: str = "",
        rule: str = "",
        object_type: str = "",
        object_id: UUID | None = None,
        policy: str = "",
        purpose: str = "",
    ) -> None:
        """policy, purpose: the policy that does not open it for the purpose that the call names, if that decided."""
        super().__init__(detail)
        self.policy = policy
        self.purpose = purpose
        self.permission = permission
        self.rule = rule
        self.object_type = object_type
        self.object_id = object_id


class SharingForbidden(Forbidden):
    """A sharing policy forbids the grant, whatever the role of the giver."""

    title = "A sharing policy forbids this"


class NotFound(DomainError):
    """The object does not exist. An object of another tenant, a deleted and an expired one get the same answer."""

    status, code, title = 404, "not_found", "Not found"


class Concealed(NotFound, Forbidden):
    """A denial that says no more than a missing object does: the actor may not know that there is one."""

    def __init__(self, *, permission: str, rule: str, object_type: str, object_id: UUID | None) -> None:
        super().__init__("", permission=permission, rule=rule, object_type=object_type, object_id=object_id)


class MethodNotAllowed(DomainError):
    status, code, title = 405, "method_not_allowed", "This address does not support that method"


class NotAcceptable(DomainError):
    status, code, title = 406, "not_acceptable", "This address does not offer that format"


class Conflict(DomainError):
    status, code, title = 409, "conflict", "The request conflicts with the current state"


class NamespaceNotEmpty(Conflict):
    code, title = "namespace_not_empty", "The namespace is not empty"


class InFlight(Conflict):
    code, title = "in_flight", "A request with this Idempotency-Key is being answered"


class SecondMemberNeeded(Conflict):
    code, title = "second_member_needed", "Two different members release a legal hold"


class IllegalTransition(Conflict):
    code, title = "illegal_transition", "The memory cannot change to that state"


class VersionConflict(DomainError):
    status, code, title = 412, "version_conflict", "The memory has changed since you read it"


class TooLarge(DomainError):
    status, code, title = 413, "too_large", "The content is too large"


class UnsupportedMediaType(DomainError):
    status, code, title = 415, "unsupported_media_type", "Send application/json"


class KeyReused(DomainError):
    status, code, title = 422, "idempotency_key_reused", "This Idempotency-Key was used with another body"


class Held(DomainError):
    status, code, title = 423, "held", "A hold prevents changes to this memory"


class PreconditionRequired(DomainError):
    status, code, title = 428, "precondition_required", "Send If-Match with the version that you read"


class QuotaExceeded(DomainError):
    """`retry_after` is set where waiting helps: the next minute, the next month. A full store does not empty itself."""

    status, code, title = 429, "quota_exceeded", "A quota is used up"


class QuotaExhausted(DomainError):
    """The reads that the contract of a pack allows in this period are used up."""

    status, code, title = 429, "quota_exhausted", "The contract allows no more reads in this period"


class ContractClosed(Forbidden):
    """The contract of a pack does not open its memories to this call; each kind says why."""

    def __init__(self) -> None:
        super().__init__(f"{self.title}.", permission="memory.read", rule="contract")


class ContractForOtherPurposes(ContractClosed):
    code, title = "contract_purpose", "The contract of the pack is for other purposes"


class ContractForbidsExport(ContractClosed):
    code, title = "contract_export", "The contract of the pack does not let its memories leave"


class ContractExpired(ContractClosed):
    code, title = "contract_expired", "The contract of the pack has expired"


class ContractRevoked(ContractClosed):
    code, title = "contract_revoked", "The publisher has revoked the contract of the pack"


class ContractEnded(ContractClosed):
    code, title = "contract_ended", "The contract of the pack has ended"


class TooManyAtOnce(DomainError):
    """The tenant has as many heavy calls at work as one may have; `retry_after` is set."""

    status, code, title = 429, "too_many_at_once", "Too many large calls of this tenant at once"


class TooManyJobs(DomainError):
    """Jobs of one kind that the caller asked for wait already, as many as the kind allows."""

    status, code, title = 429, "too_many_jobs", "Too many of your jobs wait"


class TooManyAttempts(DomainError):
    """Too many failed attempts: nothing is tried before `retry_after` seconds have passed."""

    status, code, title = 429, "too_many_attempts", "Too many attempts; wait before you try again"


class SecondFactorRequired(Forbidden):
    """This organisation lets its members in with a second factor only."""

    code, title = "second_factor_required", "A second factor is required here"


class AddressNotProved(Forbidden):
    """The person's address must be proved before a password or second factor is set."""

    code, title = "address_not_proved", "Prove your address first: open a link that was mailed to it"


class OwnHandNeeded(Forbidden):
    """Two different persons must act here, and another member may control this one."""

    code, title = "own_hand_needed", "Two different persons are needed, and someone else may be acting as you"


class Unavailable(DomainError):
    """A dependency that this request needs is down; nothing was changed."""

    status, code, title = 503, "unavailable", "Temporarily unavailable"


class Reread(Unavailable):
    """A transaction lacks what is read outside of transactions: it is rolled back, and run again within `supply`."""

    def supply(self) -> AbstractContextManager[None]:
        """Read the missing data outside any transaction; within the context it is available."""
        raise NotImplementedError


class AuditUnavailable(Unavailable):
    """The audit entry could not be written, so nothing was changed or returned."""

    code, title = "audit_unavailable", "The audit log cannot be written"


class KeyUnavailable(Unavailable):
    code, title = "key_unavailable", "The key store cannot be reached"


class PiiRefused(Invalid):
    """A policy refuses personal data here. The errors name kinds and places, never values."""

    code, title = "pii_refused", "Personal data is refused here"


class PiiUnavailable(Unavailable):
    """The detector failed, and a policy redacts or refuses personal data, so the text is not stored."""

    code, title = "pii_unavailable", "The text cannot be checked for personal data"
