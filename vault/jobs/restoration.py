"""A namespace with all below it as it was at a time: looked at, compared, and restored by a job."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Verb
from vault.content.blobs import with_blobs
from vault.cubes.past import FIRST, PastRow, PastSummary, past_restore, past_rows, past_summary
from vault.cubes.selectors import VersionView, versions_view
from vault.cubes.versions import readable_versions
from vault.cubes.writer.prepared_texts import provide_texts, read_version_texts
from vault.models import Cube, Namespace, PastDeletion
from vault.namespaces.management import namespace_locate, subtree
from vault.namespaces.services import namespace_target
from vault.vocabulary import PastChange

PART = 200  # memories of one step
PAGE = 30
LOOKED_AT = 300  # memories of one page that may be passed over, as the reader may not read them
MOST_SKIPPED = 100


class PastEventKind(StrEnum):
    DELETED = "deleted"
    RESTORED = "restored"
    EXPIRED = "expired"


@dataclass(frozen=True)
class PastEvent:
    """A deletion, restoration or expiry of a memory after the time that is looked at."""

    kind: PastEventKind
    at: datetime


@dataclass(frozen=True)
class PastMemory:
    """A memory as it was, opened. change: what became of it since; events: its ends and returns, in order."""

    row: PastRow
    then: VersionView = field(repr=False)
    events: tuple[PastEvent, ...] = ()

    @property
    def change(self) -> PastChange:
        return self.row.change


@dataclass(frozen=True)
class PastPage:
    """next: where the next page begins; None: this is the last."""

    memories: tuple[PastMemory, ...]
    next: UUID | None


@with_blobs
def namespace_past(*, actor: Actor, namespace_id: UUID, as_of: datetime, after: UUID | None = None) -> PastPage:
    """A page of the memories that lay in a namespace and below it at a time, and that the actor may read now and then.

    What was deleted or has expired since is included for who may restore it. What the contract of a pack closes is left
    out.
    Raises NotFound; Forbidden; Invalid for a time to come.
    Writes: AuditEntry.
    """
    with acting(actor):
        namespace = namespace_locate(actor, namespace_id)
        authorize(actor, Permission.MEMORY_READ, namespace_target(namespace))
        _check_time(as_of)
        visible = Namespace.objects.visible_to(actor)
        ids = list(subtree(actor, namespace.path).filter(id__in=visible.values("id")).values_list("id", flat=True))
        rows = past_rows(actor, ids, as_of, after=after or FIRST, limit=LOOKED_AT)
        readable = _open_versions(actor, rows)
        shown = [row for row in rows if row.was_inside and row.past_id in readable][:PAGE]
        views = versions_view(actor, [readable[row.past_id] for row in shown if row.past_id])
        record(actor=actor, verb=Verb.VERSIONS_READ, object_type="memory", object_ids=[row.cube_id for row in shown])
        is_whole = len(rows) < LOOKED_AT and len(shown) < PAGE
        last = shown[-1] if len(shown) == PAGE else rows[-1] if rows else None
        events = _load_events([row.cube_id for row in shown], as_of)
        memories = tuple(
            PastMemory(row, view, events.get(row.cube_id, ()))
            for row, view in zip(shown, views, strict=True)
            if not view.is_closed
        )
        return PastPage(memories, None if is_whole or last is None else last.cube_id)


def namespace_restore_ask(*, actor: Actor, namespace_id: UUID) -> list[Namespace]:
    """The namespace with all below it, if the actor may add, change and delete there. Raises NotFound; Forbidden."""
    with acting(actor):
        root = namespace_locate(actor, namespace_id)
        rows = [root, *subtree(actor, root.path).exclude(id=root.id).order_by("path")]
        for row in rows:
            for permission in (Permission.MEMORY_CREATE, Permission.MEMORY_UPDATE, Permission.MEMORY_DELETE):
                authorize(actor, permission, namespace_target(row))
    return rows


def namespace_restore_preview(*, actor: Actor, namespace_id: UUID, as_of: datetime) -> PastSummary:
    """Return the changes that `namespace_restore_later` would make; the dry run. Raises NotFound; Forbidden; Invalid.
    Writes nothing.
    """
    with acting(actor):
        rows = namespace_restore_ask(actor=actor, namespace_id=namespace_id)
        _check_time(as_of)
        return past_summary(actor, [row.id for row in rows], as_of)


def namespace_restore_later(*, actor: Actor, namespace_id: UUID, as_of: datetime) -> JobView:
    """Ask for the job. Raises NotFound; Forbidden; Invalid. Writes: Job, AuditEntry …, OutboxEvent."""
    with acting(actor):
        rows = namespace_restore_ask(actor=actor, namespace_id=namespace_id)
        _check_time(as_of)
        ids = [row.id for row in rows]
        settings = {"namespaces": [str(namespace_id) for namespace_id in ids], "as_of": as_of.isoformat()}
        summary = past_summary(actor, ids, as_of)
        record(
            actor=actor,
            verb=Verb.NAMESPACE_RESTORED,
            object_type="namespace",
            object_ids=ids,
            detail={"as_of": as_of.isoformat()},
        )
        total = sum(summary.counts.values())
        return job_create(actor=actor, kind=Topic.NAMESPACE_RESTORE, settings=settings, total=total)


@handler(Topic.NAMESPACE_RESTORE, permission=Permission.MEMORY_UPDATE)
def namespaces_restore(run: JobRun) -> Callable[[], Step]:
    """Restore the next PART memories. done: memories looked at. Writes what `past_restore` writes."""
    with acting(run.actor):
        rows = _next_part(run)
    differing = [row for row in rows if row.change is not PastChange.UNCHANGED and not row.obstacle]
    wanted = {row.past_id for row in differing if row.past_id}
    texts = read_version_texts(actor=run.actor, version_ids=wanted)

    def write() -> Step:
        with provide_texts(texts), acting(run.actor):
            present = _next_part(run)  # as they are now that this transaction has begun
            as_of = datetime.fromisoformat(run.settings["as_of"])
            changed, skipped = past_restore(actor=run.actor, rows=present, as_of=as_of)
            return _do_step(run, present, len(changed), skipped)

    return write


def _next_part(run: JobRun) -> list[PastRow]:
    namespaces = [UUID(text) for text in run.settings["namespaces"]]
    as_of = datetime.fromisoformat(run.settings["as_of"])
    after = UUID(run.state["after"]) if "after" in run.state else FIRST
    return past_rows(run.actor, namespaces, as_of, after=after, limit=PART)


def _do_step(run: JobRun, rows: Sequence[PastRow], changed: int, skipped: Sequence[tuple[UUID, str]]) -> Step:
    codes = Counter(run.result.get("codes", {})) + Counter(code for _, code in skipped)
    named = [{"id": str(cube_id), "code": code} for cube_id, code in skipped]
    result: dict[str, Any] = {
        "changed": run.result.get("changed", 0) + changed,
        "codes": dict(codes),
        "skipped": [*run.result.get("skipped", ()), *named][:MOST_SKIPPED],
    }
    done = run.done + len(rows)
    if len(rows) < PART:
        emit(actor=run.actor, topic=Topic.EXPORTS_DUE, payload={"event": "namespace"})
        return Step(done=done, total=done, result=result)
    return Step(state={"after": str(rows[-1].cube_id)}, done=done, result=result)


def _open_versions(actor: Actor, rows: Sequence[PastRow]) -> dict[UUID, Any]:
    """The versions of then that the actor may read, of memories that it may read or restore now, by their ids."""
    ids = [row.cube_id for row in rows]
    cubes = set(Cube.objects.visible_to(actor).filter(id__in=ids).values_list("id", flat=True))
    if is_allowed(actor, Permission.MEMORY_DELETE):
        cubes |= set(Cube.objects.inactive_for(actor).filter(id__in=ids).values_list("id", flat=True))
    versions = readable_versions(actor).filter(id__in=[row.past_id for row in rows if row.past_id])
    return {version.id: version for version in versions.filter(cube__in=cubes).select_related("namespace")}


def _load_events(cube_ids: Sequence[UUID], as_of: datetime) -> dict[UUID, tuple[PastEvent, ...]]:
    """Return the deletions, restorations and expiry of each memory since a time. Two queries."""
    now, events = database_now(), defaultdict[UUID, list[PastEvent]](list)
    for past in PastDeletion.objects.filter(cube_id__in=cube_ids, created_at__gt=as_of):
        if past.deleted_at > as_of:
            events[past.cube_id].append(PastEvent(PastEventKind.DELETED, past.deleted_at))
        events[past.cube_id].append(PastEvent(PastEventKind.RESTORED, past.created_at))
    for cube_id, deleted_at, expires_at in Cube.objects.filter(id__in=cube_ids).values_list(
        "id", "deleted_at", "expires_at"
    ):
        if deleted_at is not None:
            events[cube_id].append(PastEvent(PastEventKind.DELETED, deleted_at))
        if expires_at is not None and expires_at <= now:
            events[cube_id].append(PastEvent(PastEventKind.EXPIRED, expires_at))
    return {cube_id: tuple(sorted(found, key=lambda event: event.at)) for cube_id, found in events.items()}


def _check_time(as_of: datetime) -> None:
    if as_of > database_now():
        raise Invalid(errors=[FieldError("as_of", "must be in the past")])
