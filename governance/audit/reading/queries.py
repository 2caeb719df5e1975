"""Filters of the audit log, the same for lists, exports and pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from django.db.models import Q

from governance.errors import FieldError, Invalid
from governance.ids import uuid7_floor
from governance.time_range import check_moment
from governance.vocabulary import Outcome, Verb

FILTERS = ("verb", "outcome", "principal", "object", "request_id", "from", "to")
LONGEST_REQUEST_ID = 64
Kind = TypeVar("Kind", bound=StrEnum)
READING = frozenset(
    {
        "read",
        "listed",
        "searched",
        "versions_read",
        "checked",
        "reported",
        "export_read",
        "checkpoint_read",
        "verified",
        "viewed",
    }
)
"""The last parts of the verbs that change nothing."""
READS = sorted(verb for verb in Verb if verb.rpartition(".")[2] in READING)
CLOCKS_DIFFER = timedelta(days=1)  # ids have the application's clock, times the database's


@dataclass(frozen=True)
class AuditQuery:
    """Filters of audit entries; an entry must pass all. `since` is included, `before` is not. is_reading: reads or
    writes only.
    """

    verb: Verb | None = None
    outcome: Outcome | None = None
    principal: UUID | None = None
    object_id: UUID | None = None
    request_id: str = ""
    since: datetime | None = None
    before: datetime | None = None
    is_reading: bool | None = None

    @property
    def is_empty(self) -> bool:
        return self == AuditQuery()

    def condition(self) -> Q:
        """Return the filters as a condition. A filter by member includes its keys. Times also bound the ids, which are
        indexed.
        """
        found = Q()
        if self.verb:
            found &= Q(verb=self.verb)
        if self.outcome:
            found &= Q(outcome=self.outcome)
        if self.principal:
            found &= Q(principal_id=self.principal) | Q(member_id=self.principal)
        if self.object_id:
            found &= Q(object_ids__contains=[self.object_id])
        if self.request_id:
            found &= Q(request_id=self.request_id) | Q(context__causes__contains=[self.request_id])
        if self.is_reading is not None:
            found &= Q(verb__in=READS) if self.is_reading else ~Q(verb__in=READS)
        if self.since:
            found &= Q(at__gte=self.since, id__gte=uuid7_floor(self.since - CLOCKS_DIFFER))
        if self.before:
            found &= Q(at__lt=self.before, id__lt=uuid7_floor(self.before + CLOCKS_DIFFER))
        return found


def query_read(asked: Mapping[str, str]) -> AuditQuery:
    """Return the query in an address, a body or a form; empty values are no filters. Raises Invalid."""
    given = {name: value.strip() for name, value in asked.items() if name in FILTERS and value and value.strip()}
    request_id = given.get("request_id", "")
    if len(request_id) > LONGEST_REQUEST_ID or "\x00" in request_id:
        raise Invalid(errors=[FieldError("request_id", f"at most {LONGEST_REQUEST_ID} characters")])
    since, before = moment(given, "from"), moment(given, "to")
    if since and before and before < since:
        raise Invalid(errors=[FieldError("to", "must not be before from")])
    return AuditQuery(
        verb=_read_choice(given, "verb", Verb),
        outcome=_read_choice(given, "outcome", Outcome),
        principal=_id(given, "principal"),
        object_id=_id(given, "object"),
        request_id=request_id,
        since=since,
        before=before,
    )


def query_words(query: AuditQuery) -> dict[str, str]:
    """Return the query as texts, the inverse of `query_read`."""
    words = {
        "verb": query.verb,
        "outcome": query.outcome,
        "principal": query.principal,
        "object": query.object_id,
        "request_id": query.request_id,
        "from": query.since.isoformat() if query.since else "",
        "to": query.before.isoformat() if query.before else "",
    }
    return {name: str(value) for name, value in words.items() if value}


def moment(given: Mapping[str, str], name: str) -> datetime | None:
    """Return a date, or a time in RFC 3339, in UTC unless the text has a zone. Raises Invalid."""
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign in an address that nobody escaped
        found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(errors=[FieldError(name, "a date or a time, as in 2027-01-31T12:00:00Z")]) from error
    return check_moment(found, name)


def _read_choice(given: Mapping[str, str], name: str, kind: type[Kind]) -> Kind | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError as error:
        raise Invalid(errors=[FieldError(name, f"one of {', '.join(kind)}")]) from error


def _id(given: Mapping[str, str], name: str) -> UUID | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        return UUID(text)
    except ValueError as error:
        raise Invalid(errors=[FieldError(name, "an id")]) from error
