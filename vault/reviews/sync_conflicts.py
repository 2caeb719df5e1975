"""Conflicts of memories changed both here and at a peer since their last sync: both texts wait for a decision."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Conflict
from governance.keys.services import open_sealed, seal_for
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.content.words import key_scope
from vault.cubes.lookup import cube_target, locate
from vault.cubes.services import cube_update, prepare_changed_texts
from vault.models import Cube, CubeVersion, Review, SyncLink
from vault.screening.screen import screen_note
from vault.vocabulary import ReviewKind, ReviewStatus, SemanticType, Sensitivity

MOMENTS = ("event_time", "valid_from", "valid_to")
REASON = "A sync found changes on both sides."


@dataclass(frozen=True)
class Theirs:
    """The peer's present version. values: its fields by the names of CubeChanges, as JSON."""

    peer_id: UUID
    peer: str
    version: int
    values: Mapping[str, Any] = field(repr=False)

    @property
    def content(self) -> str:
        return str(self.values["content"])

    @property
    def title(self) -> str:
        return str(self.values["title"])


def sync_conflict_propose(*, actor: Actor, cube_id: UUID, theirs: Theirs) -> bool:
    """Open a review of a sync conflict about the present version, or update the open one with the peer's newer version.

    Returns False if a conflict with another peer is open already. Use inside `acting`.
    Raises NotFound; Forbidden; PiiRefused; KeyUnavailable. Writes: Review.
    """
    cube = locate(actor, cube_id, lock=True)
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    version = CubeVersion.objects.get(cube=cube, number=cube.version)
    rows = Review.objects.select_for_update().filter(tenant_id=actor.tenant_id, cube=cube, kind=ReviewKind.SYNC)
    waiting = rows.filter(status=ReviewStatus.OPEN).first()
    if waiting is not None and (there := theirs_open(waiting)) is not None and there.peer_id != theirs.peer_id:
        return False
    review = waiting or rows.filter(version=version).first()
    if review is None:
        review = Review(tenant_id=actor.tenant_id, kind=ReviewKind.SYNC, cube=cube)
    review.version, review.status = version, ReviewStatus.OPEN
    review.decided_at, review.decided_by, review.decided_kind = None, None, ""
    review.sealed = _seal_theirs(actor, cube, review, theirs)
    review.save()
    return True


def sync_conflicts_open(*, actor: Actor, cube_ids: list[UUID]) -> set[UUID]:
    """Return the memories that have an open sync conflict. Use inside `acting`. One query."""
    authorize(actor, Permission.MEMORY_READ)
    rows = Review.objects.filter(tenant_id=actor.tenant_id, kind=ReviewKind.SYNC, status=ReviewStatus.OPEN)
    return set(rows.filter(cube_id__in=cube_ids).values_list("cube_id", flat=True))


def sync_conflict_accept(*, actor: Actor, review: Review, cube: Cube, content: str | None = None) -> None:
    """Take the peer's words, or `content`, which the next sync sends. Use inside `acting`.

    Raises Forbidden; Held; Invalid; Conflict if the peer's words were erased. Writes: as `cube_update`, SyncLink.
    """
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    theirs = theirs_open(review)
    if theirs is None:
        raise Conflict("The other text was erased. Reject this conflict, and sync again.")
    written = cube_update(
        actor=actor,
        cube_id=cube.id,
        expected_versions={cube.version},
        changes=_compose_changes(theirs, content),
        reason=REASON,
    )
    equal = {"version": written.version} if content is None else {}
    _select_links(actor, cube.id, theirs).update(remote_version=theirs.version, **equal)


def sync_conflict_reject(*, actor: Actor, review: Review, cube: Cube) -> None:
    """Keep the local words, which the next sync sends. Use inside `acting`. Raises Forbidden. Writes: SyncLink."""
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    theirs = theirs_open(review)
    if theirs is not None:
        _select_links(actor, cube.id, theirs).update(remote_version=theirs.version)


def theirs_open(review: Review) -> Theirs | None:
    """Return the peer's version; None after a decision or an erasure. Raises KeyUnavailable."""
    if not review.sealed:
        return None
    plaintext = open_sealed(tenant_id=review.tenant_id, place=_encryption_context(review), blob=review.sealed)
    if not plaintext:
        return None
    told = json.loads(plaintext)
    return Theirs(UUID(told["peer_id"]), told["peer"], told["version"], told["values"])


@contextmanager
def sync_texts_prepare(*, actor: Actor, review: Review, content: str | None) -> Iterator[None]:
    """Read the texts of `sync_conflict_accept` before its transaction. Raises KeyUnavailable; Unavailable."""
    authorize(actor, Permission.MEMORY_READ)
    theirs = theirs_open(review)
    if theirs is None:
        yield
        return
    changes = _compose_changes(theirs, content)
    with prepare_changed_texts(actor=actor, cube_id=review.cube_id, changes=changes, reason=REASON):
        yield


def _compose_changes(theirs: Theirs, content: str | None) -> CubeChanges:
    if content is not None:
        return CubeChanges(content=content)
    values: dict[str, Any] = dict(theirs.values)
    for name in MOMENTS:
        values[name] = datetime.fromisoformat(values[name]) if values[name] else None
    values["tags"] = tuple(values["tags"])
    values["semantic_type"] = SemanticType(values["semantic_type"])
    values["sensitivity"] = Sensitivity(values["sensitivity"])
    return CubeChanges(**values)


def _select_links(actor: Actor, cube_id: UUID, theirs: Theirs) -> Any:
    return SyncLink.objects.filter(tenant_id=actor.tenant_id, peer_id=theirs.peer_id, cube_id=cube_id)


def _seal_theirs(actor: Actor, cube: Cube, review: Review, theirs: Theirs) -> bytes:
    """Seal the peer's texts with the memory's key, so that they are erased with it. Raises PiiRefused;
    KeyUnavailable."""
    texts = {
        name: screen_note(
            actor=actor,
            name=name,
            text=theirs.values[name],
            namespace_path=cube.namespace.path,
            sensitivity=cube.sensitivity,
        )
        for name in ("content", "title")
    }
    told = {
        "peer_id": str(theirs.peer_id),
        "peer": theirs.peer,
        "version": theirs.version,
        "values": {**theirs.values, **texts},
    }
    scope = key_scope(subject_id=cube.subject_id, persona_member_id=cube.persona.member_id if cube.persona else None)
    return seal_for(
        tenant_id=cube.tenant_id, scope=scope, place=_encryption_context(review), plaintext=json.dumps(told).encode()
    )


def _encryption_context(review: Review) -> bytes:
    return b"sync conflict" + review.id.bytes
