"""Selectors of the audit log, which holds no content. Each read of the log is recorded as an entry too."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from uuid import UUID

from django.db.models import Count, Max
from django.db.models.functions import TruncDate
from django.utils import timezone

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.checkpoints import checkpoints_outside, public_key
from governance.audit.reading.queries import AuditQuery, query_words
from governance.audit.services import record
from governance.audit.verification import Verification, log_verify
from governance.audit.verifier import PublicKey, Unreadable
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid, NotFound
from governance.models import AuditCheckpoint, AuditEntry, AuditSeal
from governance.object_names import Name, find_id, names_find
from governance.pages import Pages
from governance.replica import reading
from governance.vocabulary import Outcome, Permission, PrincipalKind, Verb

NAMED: dict[str, tuple[str, ...]] = {"principal": ("member", "api_key"), "object": ()}  # filters that take names
VERIFIED_AT_ONCE = 200_000  # seals that one call checks; whoever wants more goes on behind them
CHANGES = frozenset(
    {
        Verb.TENANT_CREATED,
        # members and their sign-in
        Verb.MEMBER_ADDED,
        Verb.MEMBER_ROLE_CHANGED,
        Verb.MEMBER_REMOVED,
        Verb.OPERATOR_CHANGED,
        Verb.INVITATION_CREATED,
        Verb.INVITATION_ACCEPTED,
        Verb.INVITATION_REVOKED,
        Verb.SIGN_IN_LINK_CREATED,
        Verb.SESSION_REVOKED,
        Verb.PASSWORD_SET,
        Verb.SECOND_FACTOR_ADDED,
        Verb.SECOND_FACTOR_REMOVED,
        Verb.RECOVERY_CODES_RENEWED,
        Verb.SIGN_IN_RULES_CHANGED,
        Verb.IDENTITY_LINKED,
        # rights of members, keys and personas
        Verb.APIKEY_CREATED,
        Verb.APIKEY_UPDATED,
        Verb.APIKEY_BOUND,
        Verb.APIKEY_ROTATED,
        Verb.APIKEY_REVOKED,
        Verb.GRANT_CREATED,
        Verb.GRANT_CHANGED,
        Verb.GRANT_REVOKED,
        Verb.PERSONA_CREATED,
        Verb.PERSONA_CHANGED,
        Verb.PERSONA_REMOVED,
        Verb.TEMPLATE_CREATED,
        Verb.TEMPLATE_CHANGED,
        Verb.TEMPLATE_REMOVED,
        Verb.TEMPLATE_APPLIED,
        # namespaces and owners of memory
        Verb.NAMESPACE_CHANGED,
        Verb.NAMESPACE_MOVED,
        Verb.NAMESPACE_DELETED,
        # rules of the tenant
        Verb.POLICY_CREATED,
        Verb.POLICY_CHANGED,
        Verb.POLICY_DISABLED,
        Verb.QUOTA_CHANGED,
        Verb.MEMORY_FROZEN,
        Verb.MEMORY_UNFROZEN,
        Verb.HOLD_CREATED,
        Verb.HOLD_RELEASE_APPROVED,
        Verb.HOLD_RELEASED,
        Verb.AUDIT_SINK_CREATED,
        Verb.AUDIT_SINK_UPDATED,
        Verb.AUDIT_SINK_REMOVED,
        Verb.MODEL_ENDPOINT_CREATED,
        Verb.MODEL_ENDPOINT_UPDATED,
        Verb.MODEL_ENDPOINT_REMOVED,
    }
)
"""What changes who may do what, or what binds everybody: the report of permission changes."""


MOST_READERS = 20  # of one person's memories


@dataclass(frozen=True)
class EntryView:
    """An audit entry and its seal, which is None until the entry is sealed."""

    entry: AuditEntry
    seal: AuditSeal | None


@dataclass(frozen=True)
class ReaderLine:
    """A reader of objects: how many reads, and the last of them. member_id: the member, also behind a key."""

    principal_id: UUID
    principal_kind: PrincipalKind
    member_id: UUID | None
    reads: int
    last: datetime


@dataclass(frozen=True)
class CheckpointView:
    id: UUID
    seq: int
    at: datetime
    text: str


@dataclass(frozen=True)
class LogSummary:
    """The state of the log. seals: the number of sealed entries; checkpoint: the last signed seal."""

    seals: int
    sealed_at: datetime | None
    checkpoint: int | None
    signed_at: datetime | None


def entries_list(*, actor: Actor, query: AuditQuery, pages: Pages, verbs: Collection[str] = ()) -> Sequence[AuditEntry]:
    """Return the matching entries, newest first; with `verbs` only of those. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.AUDIT_READ)
    with reading(actor):
        rows = AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id).order_by("-id")
        rows = rows.filter(verb__in=list(verbs)) if verbs else rows
        page = pages.take(rows)
        _record_read(actor, Verb.AUDIT_LISTED, rows=len(page), filters=" ".join(query_words(query)))
    return page


def newest_entry_id(*, actor: Actor, query: AuditQuery) -> UUID | None:
    """Return the id of the newest matching entry, by which a page notices new ones. Raises Forbidden."""
    authorize(actor, Permission.AUDIT_READ)
    with reading(actor):
        rows = AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id).order_by("-id")
        return rows.values_list("id", flat=True).first()


def entries_by_day(*, actor: Actor, query: AuditQuery, verbs: Collection[str], days: int) -> list[int]:
    """Count the entries with these verbs on each of the last `days` days of the current time zone, today last.

    Raises Forbidden. Writes: AuditEntry. One query over the entries of those days.
    """
    authorize(actor, Permission.AUDIT_READ)
    with reading(actor):
        today = timezone.localtime(database_now()).replace(hour=0, minute=0, second=0, microsecond=0)
        first = today - timedelta(days=days - 1)
        query = replace(query, since=first)
        rows = AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id, verb__in=list(verbs))
        counted = rows.annotate(day=TruncDate("at")).values_list("day").annotate(entries=Count("id")).order_by("day")
        found: dict[date, int] = dict(counted.values_list("day", "entries"))
        _record_read(actor, Verb.AUDIT_LISTED, rows=sum(found.values()), filters=" ".join(query_words(query)))
    return [found.get((first + timedelta(days=at)).date(), 0) for at in range(days)]


def readers_list(*, actor: Actor, object_ids: Collection[UUID], verbs: Collection[str], days: int) -> list[ReaderLine]:
    """Return who read any of the objects in the last `days` days, the most frequent first. Raises Forbidden.

    verbs: those that count as reading. Writes: AuditEntry. One query over the entries of those days.
    """
    authorize(actor, Permission.AUDIT_READ)
    with reading(actor):
        query = AuditQuery(since=database_now() - timedelta(days=days), outcome=Outcome.DONE)
        rows = AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id, verb__in=list(verbs))
        read = rows.filter(object_ids__overlap=list(object_ids)).order_by()
        counted = read.values_list("principal_id", "principal_kind", "member_id").annotate(
            reads=Count("id"), last=Max("at")
        )
        lines = [ReaderLine(*row) for row in counted.order_by("-reads", "principal_id")[:MOST_READERS]]
        _record_read(actor, Verb.AUDIT_LISTED, rows=len(lines))
    return lines


def entry_get(*, actor: Actor, entry_id: UUID) -> EntryView:
    """Return one entry. Raises Forbidden; NotFound. Writes: AuditEntry."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        entry = AuditEntry.objects.filter(tenant_id=actor.tenant_id, id=entry_id).first()
        if entry is None:
            raise NotFound
        authorize(actor, Permission.AUDIT_READ, Target("audit_entry", entry.id, entry.tenant_id))
        seal = AuditSeal.objects.filter(tenant_id=actor.tenant_id, entry_id=entry_id).first()
        record(actor=actor, verb=Verb.AUDIT_READ, object_type="audit_entry", object_ids=[entry_id])
    return EntryView(entry=entry, seal=seal)


def names_of(*, actor: Actor, ids: Collection[UUID]) -> dict[UUID, Name]:
    """Return the names of members, keys and other objects by their ids. One query. Raises Forbidden."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        return names_find(actor.tenant_id, ids)


def filters_resolve(*, actor: Actor, asked: Mapping[str, str]) -> dict[str, str]:
    """Replace names in the filters of a form by the ids that `query_read` takes. Raises Forbidden; Invalid."""
    authorize(actor, Permission.AUDIT_READ)
    found, faults = dict(asked), list[FieldError]()
    for name, kinds in NAMED.items():
        text = found.get(name, "").strip()
        if text:
            try:
                with acting(actor):
                    found[name] = str(find_id(actor.tenant_id, text, field=name, kinds=kinds))
            except Invalid as failure:
                faults += failure.errors
    if faults:
        raise Invalid(errors=faults)
    return found


def log_summary(*, actor: Actor) -> LogSummary:
    """Return how far the log is sealed and signed. Two queries by index. Raises Forbidden."""
    authorize(actor, Permission.AUDIT_READ)
    with reading(actor):
        seal = AuditSeal.objects.filter(tenant_id=actor.tenant_id).order_by("-seq").first()
        checkpoint = AuditCheckpoint.objects.filter(tenant_id=actor.tenant_id).order_by("-seq").first()
    return LogSummary(
        seals=seal.seq if seal else 0,
        sealed_at=_moment(seal),
        checkpoint=checkpoint.seq if checkpoint else None,
        signed_at=_moment(checkpoint),
    )


def verify(*, actor: Actor, after: int = 0) -> Verification:
    """Verify up to VERIFIED_AT_ONCE seals after `after`, against the checkpoints in the database and the newest file.

    Raises Forbidden; Invalid; KeyUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.AUDIT_READ)
    try:
        checkpoints = checkpoints_outside(actor.tenant_id, newest_file=True)
        found = log_verify(actor.tenant_id, checkpoints=checkpoints, after=after, most=VERIFIED_AT_ONCE)
    except Unreadable as error:
        raise Invalid(errors=[FieldError("after", str(error))]) from error
    with acting(actor):
        _record_read(actor, Verb.AUDIT_VERIFIED, seals=found.seals, upto=found.upto, intact=found.intact)
    return found


def checkpoints_list(*, actor: Actor, pages: Pages) -> list[CheckpointView]:
    """Return the checkpoints, newest first. Raises Forbidden."""
    authorize(actor, Permission.AUDIT_READ)
    with reading(actor):
        return [_view(row) for row in pages.take(AuditCheckpoint.objects.filter(tenant_id=actor.tenant_id))]


def checkpoint_get(*, actor: Actor, checkpoint_id: UUID) -> CheckpointView:
    """Return one checkpoint. Raises Forbidden; NotFound. Writes: AuditEntry."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        row = AuditCheckpoint.objects.filter(tenant_id=actor.tenant_id, id=checkpoint_id).first()
        if row is None:
            raise NotFound
        authorize(actor, Permission.AUDIT_READ, Target("audit_checkpoint", row.id, row.tenant_id))
        record(actor=actor, verb=Verb.AUDIT_CHECKPOINT_READ, object_type="audit_checkpoint", object_ids=[row.id])
    return _view(row)


def public_key_get(*, actor: Actor) -> PublicKey:
    """Return the public key of the tenant's checkpoints, for auditors to keep. Raises Forbidden; KeyUnavailable."""
    authorize(actor, Permission.AUDIT_READ)
    return public_key(actor.tenant_id)


def permission_changes(*, actor: Actor, query: AuditQuery, pages: Pages) -> Sequence[AuditEntry]:
    """Return the entries with a verb of CHANGES within `query`. Raises Forbidden.

    Writes: AuditEntry.
    """
    authorize(actor, Permission.AUDIT_READ)
    with reading(actor):
        rows = AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id, verb__in=CHANGES)
        page = pages.take(rows.order_by("-id"))
        _record_read(actor, Verb.AUDIT_REPORTED, rows=len(page), filters=" ".join(query_words(query)))
    return page


def _moment(row: AuditSeal | AuditCheckpoint | None) -> datetime | None:
    return row.created_at if row is not None and isinstance(row.created_at, datetime) else None


def _view(row: AuditCheckpoint) -> CheckpointView:
    assert isinstance(row.created_at, datetime)
    return CheckpointView(id=row.id, seq=row.seq, at=row.created_at, text=row.text)


def _record_read(actor: Actor, verb: Verb, **detail: str | int | bool) -> None:
    record(actor=actor, verb=verb, object_type="audit", object_ids=[actor.tenant_id], detail=detail)
