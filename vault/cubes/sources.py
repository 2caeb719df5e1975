"""Sources of memories: a derived memory is readable if each of its sources is (vault/models/cube.py)."""

from collections.abc import Collection, Sequence
from uuid import UUID

from vault.content.drafts import SourceRef
from vault.cubes.writer.builder import BuiltCube
from vault.models import CubeLink, CubeSource
from vault.vocabulary import LinkKind, Source, SourceKind


def sources_insert(new: Sequence[BuiltCube]) -> None:
    """Store the direct and indirect sources of new memories, in the transaction of the write.

    Writes: CubeSource …, CubeLink … (to direct sources; an answer cites its own in its turn). Three queries.
    """
    derived = [item for item in new if item.sources]
    if not derived:
        return
    above = _load_sources({source.id for item in derived for source in item.sources})
    above |= {item.cube.id: _merge_sources(item.sources, above) for item in derived}
    rows = [
        CubeSource(cube=item.cube, tenant_id=item.cube.tenant_id, source_id=ref.id, version=ref.version, kind=ref.kind)
        for item in derived
        for ref in _merge_sources(item.sources, above)
    ]
    CubeSource.objects.bulk_create(rows)
    links = [
        CubeLink(tenant_id=item.cube.tenant_id, source=item.cube, target_id=ref.id, kind=LinkKind.DERIVED)
        for item in derived
        for ref in item.sources
        if item.cube.source != Source.CHAT or ref.kind is SourceKind.EXTRACT
    ]
    CubeLink.objects.bulk_create(links)


def mark_quotes_as_text(built: BuiltCube) -> None:
    """Mark the quotes of a memory as part of its own text, if its new version quotes no other memory.

    Writes: CubeSource ….
    """
    if built.cube.has_sources and not built.words.quotes:
        CubeSource.objects.filter(cube_id=built.cube.id, kind=SourceKind.QUOTE).update(kind=SourceKind.TEXT)


def sources_of(cube_ids: Collection[UUID]) -> list[SourceRef]:
    """Return the direct and indirect sources of these memories, without the memories themselves. One query."""
    return list({ref.id: ref for some in _load_sources(cube_ids).values() for ref in some}.values())


def _merge_sources(direct: Sequence[SourceRef], above: dict[UUID, Sequence[SourceRef]]) -> list[SourceRef]:
    """Return direct and indirect sources, each once; an indirect source has the kind of its direct one."""
    found: dict[UUID, SourceRef] = {}
    for ref in direct:
        found.setdefault(ref.id, ref)
        for behind in above.get(ref.id, ()):
            found.setdefault(behind.id, SourceRef(behind.id, behind.version, ref.kind))
    return list(found.values())


def _load_sources(cube_ids: Collection[UUID]) -> dict[UUID, Sequence[SourceRef]]:
    found: dict[UUID, list[SourceRef]] = {}
    for row in CubeSource.objects.filter(cube_id__in=cube_ids):
        ref = SourceRef(row.source_id, row.version, SourceKind(row.kind))
        found.setdefault(row.cube_id, []).append(ref)
    return dict(found)
