"""Lineage of a memory: its sources, and the memories made of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.models import ApiKey, Member
from governance.vocabulary import PrincipalKind, Verb
from vault.cubes.lookup import locate_readable
from vault.cubes.selectors import CubeView, cubes_read
from vault.cubes.versions import visible_versions
from vault.models import Cube, CubeLink, CubeVersion
from vault.vocabulary import LinkKind

LINEAGE = (LinkKind.DERIVED, LinkKind.PARENT)
MOST_DRAWN = 6  # neighbours on either side of a drawing
MOST = 200  # versions, and links of either direction; all versions are a list of their own


@dataclass(frozen=True)
class Author:
    """The writer of a memory. name: a member's, or the prefix of an API key; empty for the system."""

    kind: PrincipalKind
    id: UUID
    name: str


@dataclass(frozen=True)
class VersionFact:
    number: int
    author: Author
    reason: str
    hash: bytes
    previous_hash: bytes | None
    redacted: bool
    created_at: datetime


@dataclass(frozen=True)
class LinkFact:
    memory_id: UUID
    kind: LinkKind


@dataclass(frozen=True)
class Lineage:
    """The decrypted sources of a memory, and memories derived from it: at most MOST_DRAWN of either."""

    sources: tuple[CubeView, ...]
    derived: tuple[CubeView, ...]


@dataclass(frozen=True)
class ProvenanceView:
    """The provenance of a memory. reader: the MemReader that made the memory from a text. Only readable parents and
    derived memories.
    """

    memory_id: UUID
    source: str
    reader: str
    created_at: datetime
    versions: tuple[VersionFact, ...]
    parents: tuple[LinkFact, ...]
    derived: tuple[LinkFact, ...]


def provenance_get(*, actor: Actor, cube_id: UUID) -> ProvenanceView:
    """Return the lineage of a memory that the actor may read, newest version first; no content.

    Raises NotFound; Forbidden. Writes: AuditEntry.
    """
    with acting(actor):
        cube = locate_readable(actor, cube_id)
        rows = list(visible_versions(actor, cube).defer("terms").order_by("-number")[:MOST])
        record(actor=actor, verb=Verb.PROVENANCE_READ, object_type="memory", object_ids=[cube.id], version=cube.version)
        names = _load_names(rows)
        return ProvenanceView(
            memory_id=cube.id,
            source=cube.source,
            reader=cube.reader,
            created_at=cube.created_at,
            versions=tuple(_make_fact(row, names) for row in rows),
            parents=_load_links(actor, Q(source=cube), "target_id"),
            derived=_load_links(actor, Q(target=cube), "source_id"),
        )


def lineage_open(actor: Actor, cube: Cube) -> Lineage:
    """Return the neighbours of `cube` that the actor may read; it must be able to read `cube`. Use inside `acting`.

    Raises KeyUnavailable. Writes: AuditEntry if there are any. Queries: one, two more if there are any.
    """
    visible = Cube.objects.visible_to(actor).values("id")
    near = Q(source=cube, target__in=visible) | Q(target=cube, source__in=visible)
    rows = CubeLink.objects.filter(near, kind__in=LINEAGE).order_by("id").values_list("source_id", "target_id")
    links = list(rows[: 4 * MOST_DRAWN])
    sources = [target for source, target in links if source == cube.id][:MOST_DRAWN]
    derived = [source for source, target in links if target == cube.id][:MOST_DRAWN]
    if not links:
        return Lineage((), ())
    views = cubes_read(actor=actor, cube_ids=[*sources, *derived], verb=Verb.MEMORY_LISTED, is_use=False)
    opened = {view.cube.id: view for view in views}
    return Lineage(
        tuple(opened[cube_id] for cube_id in sources if cube_id in opened),
        tuple(opened[cube_id] for cube_id in derived if cube_id in opened),
    )


def _load_links(actor: Actor, which: Q, other: str) -> tuple[LinkFact, ...]:
    visible = Cube.objects.visible_to(actor).values("id")
    rows = CubeLink.objects.filter(which, kind__in=LINEAGE, **{f"{other}__in": visible}).order_by("id")
    return tuple(LinkFact(memory_id, LinkKind(kind)) for memory_id, kind in rows.values_list(other, "kind")[:MOST])


def _load_names(rows: Iterable[CubeVersion]) -> dict[UUID, str]:
    ids = {row.principal_id for row in rows}
    members = dict(Member.objects.filter(id__in=ids).values_list("id", "display_name"))
    return members | dict(ApiKey.objects.filter(id__in=ids).values_list("id", "prefix"))


def _make_fact(row: CubeVersion, names: dict[UUID, str]) -> VersionFact:
    kind = PrincipalKind(row.principal_kind)
    return VersionFact(
        number=row.number,
        author=Author(kind=kind, id=row.principal_id, name=names.get(row.principal_id, "")),
        reason=row.reason,
        hash=bytes(row.hash),
        previous_hash=bytes(row.previous_hash) if row.previous_hash else None,
        redacted=not row.sealed,
        created_at=row.created_at,
    )
