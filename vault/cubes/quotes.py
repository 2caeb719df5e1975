"""Passages of other memories that are stored as references and opened for each reader."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.utils.timezone import localtime

from governance.actor import Actor
from vault.content.words import Quote, words_open
from vault.cubes.passages import Passage
from vault.cubes.versions import visible_versions
from vault.models import Cube, CubeVersion


def quotes_open(actor: Actor, quotes: Iterable[Quote]) -> dict[Quote, Passage]:
    """Open the quotes that the actor may read now. Two queries, and one for each memory that was changed since.

    Raises KeyUnavailable. The caller writes the audit entry.
    """
    wanted: dict[tuple[UUID, int], list[Quote]] = {}
    for quote in quotes:
        wanted.setdefault((UUID(quote.source), quote.version), []).append(quote)
    if not wanted:
        return {}
    cubes = {cube.id: cube for cube in Cube.objects.visible_to(actor).filter(id__in={cube_id for cube_id, _ in wanted})}
    found: dict[Quote, Passage] = {}
    for version in _load_versions(actor, cubes, wanted):
        words = words_open(
            tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, blob=version.sealed
        )
        cube = cubes[version.cube_id]
        moment = localise_moment(version.event_time or cube.created_at, is_resolved=cube.has_sources)
        for quote in wanted.get((version.cube_id, version.number), ()):
            if text := words.content[quote.start : quote.end]:
                found[quote] = Passage(text, words.speaker, moment, is_resolved=cube.has_sources)
    return found


def localise_moment(moment: datetime, *, is_resolved: bool) -> datetime:
    """Convert the time of a statement to the reader's time zone; a resolved date is the same in every zone."""
    return moment if is_resolved else localtime(moment)


def _load_versions(
    actor: Actor, cubes: Mapping[UUID, Cube], wanted: Mapping[tuple[UUID, int], Sequence[Quote]]
) -> list[CubeVersion]:
    """Return the quoted versions: current ones, and earlier ones that the actor may read."""
    present = CubeVersion.objects.filter(cube_id__in=cubes, number=F("cube__version"))
    found = [row for row in present if (row.cube_id, row.number) in wanted]
    known = {(row.cube_id, row.number) for row in found}
    for cube_id, number in wanted:
        if cube_id in cubes and (cube_id, number) not in known:
            found += visible_versions(actor, cubes[cube_id]).filter(number=number)
    return found
