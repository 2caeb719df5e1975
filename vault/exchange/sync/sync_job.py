"""A sync: the namespace here and the one at the peer are compared by the versions of their memories, page by page.

Changes of the peer are pulled first, then changes made here are pushed. Each step commits with the state of the next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.vocabulary import Permission, Topic
from vault.exchange.item_drafts import Present
from vault.exchange.sync.client import PeerClient
from vault.exchange.sync.links import conflict_note, link_write
from vault.exchange.sync.peers import key_open, peer_locate, refuse_running
from vault.exchange.sync.received_changes import changes_apply
from vault.exchange.sync.sent_memories import deleted_ids, memories_open_for_peer, select_sendable
from vault.exchange.sync.wire import GONE, MOST_AT_ONCE, Applied, Change, Listing, Sent
from vault.models import Cube, SyncLink, SyncPeer
from vault.reviews.sync_conflicts import sync_conflicts_open
from vault.vocabulary import SyncDirection, SyncOutcome

PULL, PUSH = "pull", "push"
FIRST = UUID(int=0)


@dataclass(frozen=True)
class SyncSettings:
    """peer: the id of the peer."""

    peer: str


@dataclass(frozen=True)
class SyncCounts:
    """Memories of a sync. kept: changed on one side and deleted on the other, where the change wins.

    conflicts: wait in the inbox. left_out: by the code of the reason.
    """

    received: int = 0
    updated_here: int = 0
    deleted_here: int = 0
    sent: int = 0
    updated_there: int = 0
    deleted_there: int = 0
    kept: int = 0
    conflicts: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    def plus(self, name: str) -> "SyncCounts":
        return replace(self, **{name: getattr(self, name) + 1})

    def without(self, reason: str) -> "SyncCounts":
        """Count a memory that was left out."""
        return replace(self, left_out={**self.left_out, reason: self.left_out.get(reason, 0) + 1})


@dataclass(frozen=True)
class Range:
    """A part of one side's list, by id: from behind `after` to `end`; end None: to the end of the list."""

    after: UUID
    end: UUID | None
    count: int

    def bounds(self, name: str) -> dict[str, UUID]:
        upper = {} if self.end is None else {f"{name}__lte": self.end}
        return {f"{name}__gt": self.after, **upper}


@handler(Topic.MEMORIES_SYNC, permission=Permission.OPERATIONS_MANAGE, settings=SyncSettings)
def memories_sync(run: JobRun) -> Step | Callable[[], Step]:
    """Do one step: pull a part of the peer's list, or push a part of the own one. done: memories compared.

    Raises NotFound; Forbidden; Conflict where the peer refuses, or another sync runs; Unavailable where it is down.
    Writes what `changes_apply` writes, and SyncPeer, SyncLink …, Review ….
    """
    with acting(run.actor):
        peer = peer_locate(run.actor, UUID(run.settings["peer"]))
        refuse_running(peer, run.job_id)
        client = PeerClient(peer.address, peer.remote_namespace, key_open(peer))
    phase = run.state.get("phase") or (PUSH if peer.direction == SyncDirection.PUSH else PULL)
    after = UUID(run.state["after"]) if run.state.get("after") else FIRST
    return (_pull_part if phase == PULL else _push_part)(run, peer, client, after)


def _pull_part(run: JobRun, peer: SyncPeer, client: PeerClient, after: UUID) -> Callable[[], Step]:
    with acting(run.actor):
        is_new = not SyncLink.objects.filter(tenant_id=peer.tenant_id, peer=peer).exists()
    try:
        listing = client.list_memories(None if after == FIRST else after)
    except NotFound:
        if not is_new or peer.direction == SyncDirection.PULL:
            raise
        return lambda: _next_step(run, peer, Range(after, None, 0), PULL, SyncCounts(), 0)  # the first push makes it
    with acting(run.actor):
        part, known = _find_wanted(peer, listing, after)
    sent = client.open_memories(known)
    return partial(_store_pulled, run, peer, part, sent, listing.count)


def _find_wanted(peer: SyncPeer, listing: Listing, after: UUID) -> tuple[Range, dict[UUID, int]]:
    """A part of the peer's list with MOST_AT_ONCE memories to read at most: those that differ from the last sync, with
    the version that is known, and linked ones that the list lacks.
    """
    end = None if listing.is_last else listing.memories[-1].id
    links = _load_links(peer, Range(after, end, 0), "remote_id")
    there = {memory.id: memory.version for memory in listing.memories}
    differing = {
        memory_id
        for memory_id, version in there.items()
        if memory_id not in links or links[memory_id].remote_version != version
    }
    wanted = sorted(differing | (links.keys() - there.keys()))
    if len(wanted) > MOST_AT_ONCE:
        end = wanted[MOST_AT_ONCE - 1]
        wanted = wanted[:MOST_AT_ONCE]
    count = sum(end is None or memory_id <= end for memory_id in there)
    return Range(after, end, count), {
        memory_id: links[memory_id].remote_version if memory_id in links else 0 for memory_id in wanted
    }


def _store_pulled(run: JobRun, peer: SyncPeer, part: Range, sent: Sequence[Sent], total: int) -> Step:
    """Store the pulled memories, and delete those that were deleted at the peer and not changed here."""
    links = {
        memory.remote_id: memory for memory in _select_links(peer).filter(remote_id__in=[link.id for link in sent])
    }
    dead = deleted_ids(run.actor, [link.cube_id for link in links.values()])
    counts = _load_counts(run)
    changes: list[tuple[Sent, Change]] = []
    for memory in sent:
        link = links.get(memory.id)
        if link is not None and link.cube_id in dead:
            link.delete()  # deleted here: what was changed there comes back, what is gone there stays gone
            link = None
        if memory.stays == GONE:
            if link is not None:
                changes.append((memory, Change(None, link.cube_id, link.version)))
        elif memory.stays or memory.item is None:
            counts = counts.without(memory.stays or "empty")
        elif link is None:
            changes.append((memory, Change(memory)))
        else:
            changes.append((memory, Change(memory, link.cube_id, link.version)))
    applied = changes_apply(
        actor=run.actor,
        namespace=peer.namespace,
        changes=[change for _, change in changes],
        linked=_find_origins(peer, sent),
    )
    for (memory, change), outcome in zip(changes, applied, strict=True):
        counts = _record_outcome_here(run.actor, peer, counts, memory, change, outcome)
    return _next_step(run, peer, part, PULL, counts, total)


def _record_outcome_here(
    actor: Actor, peer: SyncPeer, counts: SyncCounts, sent: Sent, change: Change, applied: Applied
) -> SyncCounts:
    """Note the outcome of a change from the peer. Writes: SyncLink, Review?."""
    if applied.outcome is SyncOutcome.REFUSED:
        return counts.without(applied.reason)
    if change.sent is None:
        _select_links(peer).filter(remote_id=sent.id).delete()
        return counts.plus("deleted_here" if applied.outcome is SyncOutcome.DELETED else "kept")
    assert applied.id is not None
    assert applied.version is not None
    assert sent.item is not None
    if applied.outcome is SyncOutcome.CONFLICT:
        reason = conflict_note(actor, peer, cube_id=applied.id, remote_id=sent.id, item=sent.item, number=sent.version)
        return counts.without(reason) if reason else counts.plus("conflicts")
    link_write(peer, cube_id=applied.id, version=applied.version, remote_id=sent.id, remote_version=sent.version)
    names = {SyncOutcome.STORED: "received", SyncOutcome.UPDATED: "updated_here"}
    return counts.plus(names[applied.outcome]) if applied.outcome in names else counts


def _push_part(run: JobRun, peer: SyncPeer, client: PeerClient, after: UUID) -> Callable[[], Step]:
    with acting(run.actor):
        part, changes, counts, total = _find_changes_to_send(run, peer, after)
    applied = client.send_changes([change for _, change in changes])
    return partial(_store_push_results, run, peer, part, list(zip(changes, applied, strict=True)), counts, total)


def _find_changes_to_send(
    run: JobRun, peer: SyncPeer, after: UUID
) -> tuple[Range, list[tuple[UUID, Change]], SyncCounts, int]:
    """The next memories here that differ from the last sync, as changes, by their ids here."""
    try:
        rows = select_sendable(run.actor, peer.namespace)
    except NotFound:
        return Range(after, None, 0), [], _load_counts(run), 0  # nothing was stored here yet
    page = list(rows.filter(id__gt=after).order_by("id").values_list("id", "version")[: MOST_AT_ONCE + 1])
    end = None if len(page) <= MOST_AT_ONCE else page[MOST_AT_ONCE - 1][0]
    here = dict(page[:MOST_AT_ONCE])
    part = Range(after, end, len(here))
    links = _load_links(peer, part, "cube_id")
    waiting = sync_conflicts_open(actor=run.actor, cube_ids=list(here))
    differing = [
        cube_id
        for cube_id, version in here.items()
        if cube_id not in waiting and (cube_id not in links or links[cube_id].version != version)
    ]
    known = {cube_id: links[cube_id].version if cube_id in links else 0 for cube_id in differing}
    counts, changes = _load_counts(run), list[tuple[UUID, Change]]()
    origins = _remote_origins(peer)
    for sent in memories_open_for_peer(actor=run.actor, namespace=peer.namespace, known=known):
        if sent.item is None:
            counts = counts.without(sent.stays)
            continue
        link = links.get(sent.id)
        translated = replace(sent, item=replace(sent.item, made_from=origins(sent.item.made_from)))
        changes.append(
            (sent.id, Change(translated, link.remote_id, link.remote_version) if link else Change(translated))
        )
    for deleted_id in deleted_ids(run.actor, [link for link in links if link not in here]):
        changes.append((deleted_id, Change(None, links[deleted_id].remote_id, links[deleted_id].remote_version)))
    return part, changes, counts, rows.count()


def _store_push_results(
    run: JobRun,
    peer: SyncPeer,
    part: Range,
    results: Sequence[tuple[tuple[UUID, Change], Applied]],
    counts: SyncCounts,
    total: int,
) -> Step:
    for (cube_id, change), applied in results:
        counts = _record_outcome_there(run.actor, peer, counts, cube_id, change, applied)
    return _next_step(run, peer, part, PUSH, counts, total)


def _record_outcome_there(
    actor: Actor, peer: SyncPeer, counts: SyncCounts, cube_id: UUID, change: Change, applied: Applied
) -> SyncCounts:
    """Note the peer's outcome of a change from here. Writes: SyncLink, Review?."""
    links = _select_links(peer).filter(cube_id=cube_id)
    if applied.outcome is SyncOutcome.REFUSED:
        if applied.reason == GONE:  # deleted there: what was changed here is sent anew
            links.delete()
            return counts.plus("kept")
        return counts.without(applied.reason)
    if change.sent is None:
        links.delete()  # changed there: the next pull brings it back
        return counts.plus("deleted_there" if applied.outcome is SyncOutcome.DELETED else "kept")
    if applied.id is None or applied.version is None:
        return counts.without("malformed")
    if applied.outcome is SyncOutcome.CONFLICT:
        if applied.theirs is None:
            return counts.without("malformed")
        reason = conflict_note(
            actor, peer, cube_id=cube_id, remote_id=applied.id, item=applied.theirs, number=applied.version
        )
        return counts.without(reason) if reason else counts.plus("conflicts")
    link_write(peer, cube_id=cube_id, version=change.sent.version, remote_id=applied.id, remote_version=applied.version)
    names = {SyncOutcome.STORED: "sent", SyncOutcome.UPDATED: "updated_there"}
    return counts.plus(names[applied.outcome]) if applied.outcome in names else counts


def _next_step(run: JobRun, peer: SyncPeer, part: Range, phase: str, counts: SyncCounts, total: int) -> Step:
    """Record the end of this step, and return the state of the next one."""
    SyncPeer.objects.filter(id=peer.id).update(last_job_id=run.job_id)
    state: dict[str, Any] | None = {"phase": phase, "after": str(part.end)}
    if part.end is None:
        is_over = phase == PUSH or peer.direction == SyncDirection.PULL
        state = None if is_over else {"phase": PUSH}
    done = run.done + part.count
    totals = {**run.result.get("totals", {}), phase: total}
    whole = max(sum(totals.values()), done)
    return Step(state=state, done=done, total=whole, result={"counts": asdict(counts), "totals": totals})


def _load_counts(run: JobRun) -> SyncCounts:
    return SyncCounts(**run.result.get("counts", {}))


def _select_links(peer: SyncPeer) -> Any:
    return SyncLink.objects.filter(tenant_id=peer.tenant_id, peer=peer)


def _load_links(peer: SyncPeer, part: Range, name: str) -> dict[UUID, SyncLink]:
    """The links of a part of one side's list, by the id there."""
    return {getattr(select_link, name): select_link for select_link in _select_links(peer).filter(**part.bounds(name))}


def _find_origins(peer: SyncPeer, sent: Sequence[Sent]) -> dict[str, Present]:
    """The memories here that the peer's ids of origins stand for."""
    named = {origin.id for memory in sent if memory.item for origin in memory.item.made_from}
    links = _select_links(peer).filter(remote_id__in=[UUID(text) for text in named if _is_uuid(text)])
    here = {link.cube_id: str(link.remote_id) for link in links}
    cubes = Cube.objects.filter(tenant_id=peer.tenant_id, id__in=here, deleted_at=None)
    return {here[cube.id]: Present(cube.id, cube.version, bytes(cube.content_hash)) for cube in cubes}


def _remote_origins(peer: SyncPeer) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that names origins by their ids at the peer, where they have one."""

    def translate(origins: Sequence[Any]) -> tuple[Any, ...]:
        if not origins:
            return ()
        links = _select_links(peer).filter(cube_id__in=[UUID(origin.id) for origin in origins])
        there = {str(link.cube_id): str(link.remote_id) for link in links}
        return tuple(replace(origin, id=there.get(origin.id, origin.id)) for origin in origins)

    return translate


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False
