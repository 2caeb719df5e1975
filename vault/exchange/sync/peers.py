"""Peers of a tenant: the namespaces of other installations that its own are kept in step with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.ids import uuid7
from governance.jobs.schedules import ScheduleDraft, schedule_create
from governance.jobs.selectors import JobView, job_view
from governance.jobs.services import job_create
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.models import Job, Schedule
from governance.outbound import Refused, refuse_plaintext, refuse_private_literal
from governance.vocabulary import JobStatus, Permission, Topic, Verb
from vault.models import SyncPeer
from vault.namespaces.rules import PathError, check_path
from vault.vocabulary import SyncDirection

OBJECT_TYPE = "sync_peer"
MOST_PEERS = 20  # of a tenant
LONGEST_NAME, LONGEST_ADDRESS, LONGEST_KEY, LONGEST_PATH = 100, 500, 500, 200
PORTS = {"https": 443, "http": 80}
OPEN = (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.CANCELLING)


@dataclass(frozen=True)
class PeerDraft:
    """address: of the other installation, as https://host. key: an API key there. Both namespaces are paths."""

    name: str
    address: str
    key: str = field(repr=False)
    namespace: str
    remote_namespace: str
    direction: SyncDirection = SyncDirection.BOTH


@dataclass(frozen=True)
class PeerView:
    """A peer without its key. last_job: the newest sync. cron, timezone: of its schedule; empty without one."""

    id: UUID
    name: str
    address: str
    namespace: str
    remote_namespace: str
    direction: SyncDirection
    created_at: datetime | None
    last_job: JobView | None
    cron: str = ""
    timezone: str = ""


def peers_list(*, actor: Actor) -> list[PeerView]:
    """The tenant's peers by name. Raises Forbidden. Two queries."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        schedules = {str(list_schedule.settings.get("peer")): list_schedule for list_schedule in _list_schedules(actor)}
        rows = SyncPeer.objects.filter(tenant_id=actor.tenant_id).select_related("last_job").order_by("name")
        return [_view(row, schedules.get(str(row.id))) for row in rows]


def peer_get(*, actor: Actor, peer_id: UUID) -> PeerView:
    """Return one peer. Raises Forbidden; NotFound."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        row = peer_locate(actor, peer_id)
        return _view(row, _list_schedules(actor).filter(settings__peer=str(row.id)).first())


def peer_create(*, actor: Actor, draft: PeerDraft) -> PeerView:
    """Raises Forbidden; Invalid; Conflict for a name that is taken, and with MOST_PEERS there already; KeyUnavailable.

    Writes: SyncPeer, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    _check_draft(draft)
    row = SyncPeer(id=uuid7(), tenant_id=actor.tenant_id)
    _fill_peer(row, draft)
    with acting(actor):
        if SyncPeer.objects.filter(tenant_id=actor.tenant_id).count() >= MOST_PEERS:
            raise Conflict(f"There are {MOST_PEERS} peers already. Remove one first.")
        _refuse_taken_name(row)
        row.save(force_insert=True)
        _record_change(actor, Verb.SYNC_PEER_CREATED, row)
        return _view(row, None)


def peer_update(*, actor: Actor, peer_id: UUID, changes: Mapping[str, Any]) -> PeerView:
    """Change name, address, key or direction. The namespaces stay: what is linked lies there.

    Raises Forbidden; NotFound; Invalid; Conflict for a name that is taken; KeyUnavailable.
    Writes: SyncPeer, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        row = peer_locate(actor, peer_id, lock=True)
        present = PeerDraft(
            row.name, row.address, key_open(row), row.namespace, row.remote_namespace, SyncDirection(row.direction)
        )
        draft = replace(present, **changes)
        _check_draft(draft)
        _fill_peer(row, draft)
        _refuse_taken_name(row)
        row.save(force_update=True)
        _record_change(actor, Verb.SYNC_PEER_CHANGED, row)
    return peer_get(actor=actor, peer_id=peer_id)


def peer_remove(*, actor: Actor, peer_id: UUID) -> None:
    """Forget a peer, its key and its schedules. The memories stay on both sides.

    Raises Forbidden; NotFound. Writes: AuditEntry; deletes SyncPeer, SyncLink …, Schedule ….
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        row = peer_locate(actor, peer_id, lock=True)
        _list_schedules(actor).filter(settings__peer=str(row.id)).delete()
        _record_change(actor, Verb.SYNC_PEER_REMOVED, row)
        row.delete()


def peer_sync(*, actor: Actor, peer_id: UUID) -> JobView:
    """Start a sync now. Raises Forbidden; NotFound; Conflict while one runs. Writes: Job, AuditEntry, OutboxEvent."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        row = peer_locate(actor, peer_id, lock=True)
        refuse_running(row, None)
        job = job_create(actor=actor, kind=Topic.MEMORIES_SYNC, settings={"peer": str(row.id)})
        SyncPeer.objects.filter(id=row.id).update(last_job_id=job.id)
        return job


def peer_schedule(*, actor: Actor, peer_id: UUID, cron: str, timezone: str = "UTC") -> PeerView:
    """Sync at the times of `cron`, in place of the times before; never by itself where it is empty.

    Raises Forbidden; NotFound; Invalid. Writes: Schedule?, AuditEntry?; deletes Schedule ….
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        row = peer_locate(actor, peer_id, lock=True)
        _list_schedules(actor).filter(settings__peer=str(row.id)).delete()
        if cron:
            settings = {"peer": str(row.id)}
            draft = ScheduleDraft(Topic.MEMORIES_SYNC, cron, timezone, settings=settings)
            schedule_create(actor=actor, draft=draft)
    return peer_get(actor=actor, peer_id=peer_id)


def peer_locate(actor: Actor, peer_id: UUID, *, lock: bool = False) -> SyncPeer:
    """Return the row of one peer. Raises NotFound; Forbidden. Use inside `acting`."""
    rows = SyncPeer.objects.filter(tenant_id=actor.tenant_id, id=peer_id)
    row = (rows.select_for_update(of=("self",)) if lock else rows).select_related("last_job").first()
    if row is None:
        raise NotFound
    authorize(actor, Permission.OPERATIONS_MANAGE, Target(OBJECT_TYPE, row.id, row.tenant_id))
    return row


def refuse_running(peer: SyncPeer, job_id: UUID | None) -> None:
    """Raises Conflict while another sync of the peer than `job_id` is open."""
    last = peer.last_job
    if last is not None and last.id != job_id and last.status in OPEN:
        raise Conflict("A sync with this peer is running. Wait for its end.")


def key_open(peer: SyncPeer) -> str:
    """The API key at the peer. Raises KeyUnavailable."""
    opened = open_sealed(tenant_id=peer.tenant_id, place=_encryption_context(peer.id), blob=peer.sealed_key)
    return opened.decode() if opened else ""


def _encryption_context(peer_id: UUID) -> bytes:
    return b"sync peer" + peer_id.bytes


def _fill_peer(row: SyncPeer, draft: PeerDraft) -> None:
    row.name, row.address, row.direction = draft.name.strip(), draft.address.rstrip("/"), draft.direction
    row.namespace, row.remote_namespace = draft.namespace, draft.remote_namespace
    row.sealed_key = seal_for(
        tenant_id=row.tenant_id, scope=GENERAL, place=_encryption_context(row.id), plaintext=draft.key.encode()
    )


def _refuse_taken_name(row: SyncPeer) -> None:
    if SyncPeer.objects.filter(tenant_id=row.tenant_id, name=row.name).exclude(id=row.id).exists():
        raise Conflict("Another peer has this name. Choose another name.")


def _list_schedules(actor: Actor) -> Any:
    return Schedule.objects.filter(tenant_id=actor.tenant_id, kind=Topic.MEMORIES_SYNC).order_by("id")


def _view(row: SyncPeer, schedule: Schedule | None) -> PeerView:
    return PeerView(
        id=row.id,
        name=row.name,
        address=row.address,
        namespace=row.namespace,
        remote_namespace=row.remote_namespace,
        direction=SyncDirection(row.direction),
        created_at=row.created_at if isinstance(row.created_at, datetime) else None,
        last_job=job_view(row.last_job) if isinstance(row.last_job, Job) else None,
        cron=schedule.cron if schedule and schedule.enabled else "",
        timezone=schedule.timezone if schedule and schedule.enabled else "",
    )


def _record_change(actor: Actor, verb: Verb, row: SyncPeer) -> None:
    detail = {"host": urlsplit(row.address).hostname or "", "direction": str(row.direction)}
    record(actor=actor, verb=verb, object_type=OBJECT_TYPE, object_ids=[row.id], detail=detail)


def _check_draft(draft: PeerDraft) -> None:
    """Check the draft. Raises Invalid. Where a name leads is checked at each call: that changes."""
    faults = []
    name = draft.name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        faults.append(FieldError("name", f"1 to {LONGEST_NAME} characters"))
    if not _is_address(draft.address):
        faults.append(FieldError("address", "the address of an installation, as in https://host"))
    elif refusal := _find_refusal(draft.address):
        faults.append(FieldError("address", refusal))
    if not (1 <= len(draft.key) <= LONGEST_KEY and draft.key.isascii() and draft.key.isprintable()):
        faults.append(FieldError("key", f"1 to {LONGEST_KEY} printable ASCII characters"))
    for field_name, path in (("namespace", draft.namespace), ("remote_namespace", draft.remote_namespace)):
        try:
            check_path(path)
        except PathError as fault:
            faults.append(FieldError(field_name, str(fault)))
    if faults:
        raise Invalid(errors=faults)


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    usable = parts.scheme in PORTS and bool(parts.hostname) and port != 0
    plain = address.isascii() and address.isprintable() and " " not in address and len(address) <= LONGEST_ADDRESS
    bare = not (parts.username or parts.password or parts.query or parts.fragment)
    return usable and plain and bare


def _find_refusal(address: str) -> str:
    """Return the reason why this address is never called, by its form."""
    parts = urlsplit(address)
    try:
        refuse_plaintext(tls=parts.scheme == "https")
        refuse_private_literal(parts.hostname or "", parts.port or PORTS[parts.scheme])
    except Refused as refusal:
        return str(refusal)
    return ""
