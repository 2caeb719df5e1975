"""The memories that a memory's words were taken from. It is readable where each of them is (vault/models/cube.py)."""

from collections.abc import Collection, Sequence
from uuid import UUID

from vault.content.drafts import SourceRef
from vault.cubes.writer.building import Built
from vault.models import CubeLink, CubeSource
from vault.vocabulary import LinkKind, Source, SourceKind


def sources_insert(new: Sequence[Built]) -> None:
    """Name the sources of new memories, and theirs; in the transaction of the write.

    Writes: CubeSource …, CubeLink … (the direct ones; an answer cites them in its turn). Three queries.
    """
    derived = [one for one in new if one.sources]
    if not derived:
        return
    above = _above({source.id for one in derived for source in one.sources})
    above |= {one.cube.id: _whole(one.sources, above) for one in derived}
    rows = [
        CubeSource(cube=one.cube, tenant_id=one.cube.tenant_id, source_id=ref.id, version=ref.version, kind=ref.kind)
        for one in derived
        for ref in _whole(one.sources, above)
    ]
    CubeSource.objects.bulk_create(rows)
    links = [
        CubeLink(tenant_id=one.cube.tenant_id, source=one.cube, target_id=ref.id, kind=LinkKind.DERIVED)
        for one in derived
        for ref in one.sources
        if one.cube.source != Source.CHAT or ref.kind is SourceKind.EXTRACT
    ]
    CubeLink.objects.bulk_create(links)


def sources_reworded(built: Built) -> None:
    """Note that memories which quoted others have their own text now, which may repeat the quote.

    Writes: CubeSource ….
    """
    if built.cube.has_sources and not built.words.quotes:
        CubeSource.objects.filter(cube_id=built.cube.id, kind=SourceKind.QUOTE).update(kind=SourceKind.TEXT)


def sources_of(cube_ids: Collection[UUID]) -> list[SourceRef]:
    """All that these memories rest on, directly and through others, and they themselves not. One query."""
    return list({one.id: one for some in _above(cube_ids).values() for one in some}.values())


def _whole(direct: Sequence[SourceRef], above: dict[UUID, Sequence[SourceRef]]) -> list[SourceRef]:
    """The direct sources and those behind them, each once; what is behind one is followed as that one is."""
    found: dict[UUID, SourceRef] = {}
    for ref in direct:
        found.setdefault(ref.id, ref)
        for behind in above.get(ref.id, ()):
            found.setdefault(behind.id, SourceRef(behind.id, behind.version, ref.kind))
    return list(found.values())


def _above(cube_ids: Collection[UUID]) -> dict[UUID, Sequence[SourceRef]]:
    found: dict[UUID, list[SourceRef]] = {}
    for row in CubeSource.objects.filter(cube_id__in=cube_ids):
        ref = SourceRef(row.source_id, row.version, SourceKind(row.kind))
        found.setdefault(row.cube_id, []).append(ref)
    return dict(found)
