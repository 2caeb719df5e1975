"""Audit sinks: receivers to which a tenant's audit log is forwarded, set by its admins."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Max
from django.db.models.functions import Now

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.ids import uuid7
from governance.keys.services import GENERAL, seal_for
from governance.models import AuditSeal, AuditSink
from governance.outbound import Refused, refuse_plaintext, refuse_private_literal
from governance.pages import Pages
from governance.vocabulary import Permission, SinkKind, Verb

SCHEMES = {
    SinkKind.WEBHOOK: {"https": 443, "http": 80},
    SinkKind.SYSLOG: {"syslog+tls": 6514, "syslog+tcp": 601, "syslog+udp": 514},
}
WHOLE = {  # how an address is written, up to LONGEST_ADDRESS characters
    SinkKind.WEBHOOK: "a whole address, as in https://host/path",
    SinkKind.SYSLOG: "a whole address, as in syslog+tls://host:6514",
}
LONGEST_ADDRESS, LONGEST_NAME, LONGEST_SECRET = 500, 100, 200
SHORTEST_SECRET = 16
MOST_SINKS = 10  # of a tenant


@dataclass(frozen=True)
class SinkDraft:
    """The settings of a sink. `address`: https://host/path, or syslog+tls, syslog+tcp, syslog+udp://host:port.
    `secret`: only for webhooks.
    """

    name: str
    kind: SinkKind
    address: str
    secret: str = ""


@dataclass(frozen=True)
class SinkView:
    """A sink. waiting: the number of seals that are not delivered yet."""

    id: UUID
    name: str
    kind: SinkKind
    address: str
    delivered_seq: int
    waiting: int
    failures: int
    last_error: str
    delivered_at: datetime | None
    created_at: datetime | None


def sinks_list(*, actor: Actor, pages: Pages) -> list[SinkView]:
    """Return the sinks. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        last = _last_seal(actor)
        rows = AuditSink.objects.filter(tenant_id=actor.tenant_id, removed_at=None).order_by("-id")
        return [_view(row, last) for row in pages.take(rows)]


def sink_create(*, actor: Actor, draft: SinkDraft) -> SinkView:
    """Forward the audit log to an address, from its first seal on.

    Raises Forbidden; Invalid; Conflict if there are MOST_SINKS already; KeyUnavailable. Writes: AuditSink, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    _check(draft)
    sink = AuditSink(id=uuid7(), tenant_id=actor.tenant_id, name=draft.name, kind=draft.kind, address=draft.address)
    if draft.secret:
        sink.sealed_secret = seal_for(
            tenant_id=actor.tenant_id, scope=GENERAL, place=secret_context(sink.id), plaintext=draft.secret.encode()
        )
    with acting(actor):
        if AuditSink.objects.filter(tenant_id=actor.tenant_id, removed_at=None).count() >= MOST_SINKS:
            raise Conflict(f"There are {MOST_SINKS} sinks already. Remove one first.")
        sink.save(force_insert=True)
        _record_change(actor, Verb.AUDIT_SINK_CREATED, sink)
        return _view(sink, _last_seal(actor))


def sink_get(*, actor: Actor, sink_id: UUID) -> SinkView:
    """Return one sink. Raises Forbidden; NotFound."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return _view(_sink(actor, sink_id), _last_seal(actor))


def sink_retry(*, actor: Actor, sink_id: UUID) -> SinkView:
    """End the pause of a sink, so that it is tried again now. Raises Forbidden; NotFound. Writes: AuditSink,
    AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        sink = _sink(actor, sink_id)
        AuditSink.objects.filter(id=sink.id).update(next_at=Now(), failures=0)
        sink.failures = 0
        _record_change(actor, Verb.AUDIT_SINK_UPDATED, sink)
        return _view(sink, _last_seal(actor))


def sink_remove(*, actor: Actor, sink_id: UUID) -> None:
    """Remove a sink. Raises Forbidden; NotFound. Writes: AuditSink, AuditEntry."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        sink = _sink(actor, sink_id)
        AuditSink.objects.filter(id=sink.id).update(removed_at=Now(), sealed_secret=None)
        _record_change(actor, Verb.AUDIT_SINK_REMOVED, sink)


def secret_context(sink_id: UUID) -> bytes:
    return b"sink" + sink_id.bytes


def _check(draft: SinkDraft) -> None:
    """Check the address and the secret. Raises Invalid. The host is resolved at each delivery, as its address may
    change.
    """
    faults = []
    if not 1 <= len(draft.name.strip()) <= LONGEST_NAME:
        faults.append(FieldError("name", f"1 to {LONGEST_NAME} characters"))
    if not _is_address(draft):
        faults.append(FieldError("address", WHOLE[draft.kind]))
    elif refusal := _find_address_fault(draft):
        faults.append(FieldError("address", refusal))
    if draft.kind is SinkKind.WEBHOOK and not SHORTEST_SECRET <= len(draft.secret) <= LONGEST_SECRET:
        faults.append(FieldError("secret", f"{SHORTEST_SECRET} to {LONGEST_SECRET} characters, to sign with"))
    if draft.kind is SinkKind.SYSLOG and draft.secret:
        faults.append(FieldError("secret", "syslog has none"))
    if faults:
        raise Invalid(errors=faults)


def _is_address(draft: SinkDraft) -> bool:
    try:
        parts = urlsplit(draft.address)
        port = parts.port
    except ValueError:
        return False
    known = parts.scheme in SCHEMES[draft.kind] and bool(parts.hostname) and port != 0
    plain = draft.address.isascii() and draft.address.isprintable() and " " not in draft.address
    return known and plain and len(draft.address) <= LONGEST_ADDRESS and not parts.username and not parts.fragment


def _find_address_fault(draft: SinkDraft) -> str:
    """Return the reason why the form of this address rules out delivery; empty if it does not."""
    parts = urlsplit(draft.address)
    try:
        if draft.kind is SinkKind.WEBHOOK:
            refuse_plaintext(tls=parts.scheme == "https")
        refuse_private_literal(parts.hostname or "", parts.port or SCHEMES[draft.kind][parts.scheme])
    except Refused as refusal:
        return str(refusal)
    return ""


def _sink(actor: Actor, sink_id: UUID) -> AuditSink:
    sink = AuditSink.objects.filter(tenant_id=actor.tenant_id, id=sink_id, removed_at=None).first()
    if sink is None:
        raise NotFound
    authorize(actor, Permission.OPERATIONS_MANAGE, Target("audit_sink", sink.id, sink.tenant_id))
    return sink


def _last_seal(actor: Actor) -> int:
    found: int | None = AuditSeal.objects.filter(tenant_id=actor.tenant_id).aggregate(last=Max("seq"))["last"]
    return found or 0


def _view(sink: AuditSink, last: int) -> SinkView:
    return SinkView(
        id=sink.id,
        name=sink.name,
        kind=SinkKind(sink.kind),
        address=sink.address,
        delivered_seq=sink.delivered_seq,
        waiting=last - sink.delivered_seq,
        failures=sink.failures,
        last_error=sink.last_error,
        delivered_at=sink.delivered_at,
        created_at=sink.created_at if isinstance(sink.created_at, datetime) else None,
    )


def _record_change(actor: Actor, verb: Verb, sink: AuditSink) -> None:
    host = urlsplit(sink.address).hostname or ""
    record(
        actor=actor, verb=verb, object_type="audit_sink", object_ids=[sink.id], detail={"kind": sink.kind, "host": host}
    )
