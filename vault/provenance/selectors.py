"""Where a memory comes from, and what was made of it."""

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
from vault.cubes.locating import locate_readable
from vault.cubes.selectors import versions_open
from vault.models import Cube, CubeLink, CubeVersion
from vault.vocabulary import LinkKind

LINEAGE = (LinkKind.DERIVED, LinkKind.PARENT)
MOST = 200  # versions, and links of either direction; all versions are a list of their own


@dataclass(frozen=True)
class Author:
    """name: a member's, or the prefix of an API key; empty for the system."""

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
class ProvenanceView:
    """reader: what made the memory of what was sent. Parents and derived: those that the actor may read."""

    memory_id: UUID
    source: str
    reader: str
    created_at: datetime
    versions: tuple[VersionFact, ...]
    parents: tuple[LinkFact, ...]
    derived: tuple[LinkFact, ...]


def provenance_get(*, actor: Actor, cube_id: UUID) -> ProvenanceView:
    """The lineage of a memory that the actor may read, the newest version first; no content.

    Raises NotFound; Forbidden. Writes: AuditEntry.
    """
    with acting(actor):
        cube = locate_readable(actor, cube_id)
        rows = list(versions_open(actor, cube).defer("terms").order_by("-number")[:MOST])
        record(actor=actor, verb=Verb.PROVENANCE_READ, object_type="memory", object_ids=[cube.id], version=cube.version)
        names = _names(rows)
        return ProvenanceView(
            memory_id=cube.id,
            source=cube.source,
            reader=cube.reader,
            created_at=cube.created_at,
            versions=tuple(_fact(row, names) for row in rows),
            parents=_links(actor, Q(source=cube), "target_id"),
            derived=_links(actor, Q(target=cube), "source_id"),
        )


def _links(actor: Actor, which: Q, other: str) -> tuple[LinkFact, ...]:
    seen = Cube.objects.visible_to(actor).values("id")
    rows = CubeLink.objects.filter(which, kind__in=LINEAGE, **{f"{other}__in": seen}).order_by("id")
    return tuple(LinkFact(memory_id, LinkKind(kind)) for memory_id, kind in rows.values_list(other, "kind")[:MOST])


def _names(rows: Iterable[CubeVersion]) -> dict[UUID, str]:
    ids = {row.principal_id for row in rows}
    members = dict(Member.objects.filter(id__in=ids).values_list("id", "display_name"))
    return members | dict(ApiKey.objects.filter(id__in=ids).values_list("id", "prefix"))


def _fact(row: CubeVersion, names: dict[UUID, str]) -> VersionFact:
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
