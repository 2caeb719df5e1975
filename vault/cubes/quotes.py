"""Passages of other memories that are stored as references and opened for each reader."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.utils.timezone import localtime

from governance.actor import Actor
from vault.content.words import Quote
from vault.cubes.passages import Passage
from vault.cubes.reader_words import open_for_reader, seal_versions
from vault.cubes.versions import visible_versions
from vault.lexicon.calendar_units import midnight
from vault.lexicon.normal import fold_name
from vault.models import Cube, CubeVersion
from vault.models.cube import happens_at
from vault.vocabulary import MessageRole


def quotes_open(
    actor: Actor, quotes: Iterable[Quote], *, is_shown: bool = True, leaves: bool = False
) -> dict[Quote, Passage]:
    """Open the quotes that the actor may read now. Three queries, and one for each memory that was changed since.

    is_shown, leaves: as `open_for_reader` has them. Raises KeyUnavailable. The caller writes the audit entry.
    """
    wanted: dict[tuple[UUID, int], list[Quote]] = {}
    for quote in quotes:
        wanted.setdefault((UUID(quote.source), quote.version), []).append(quote)
    if not wanted:
        return {}
    cubes = {cube.id: cube for cube in Cube.objects.visible_to(actor).filter(id__in={cube_id for cube_id, _ in wanted})}
    found: dict[Quote, Passage] = {}
    versions = {(row.cube_id, row.number): row for row in _load_versions(actor, cubes, wanted)}
    opened = open_for_reader(actor, seal_versions(actor, [*versions.values()]), is_shown=is_shown, leaves=leaves)
    for key, words in opened.items():
        version, cube = versions[key], cubes[key[0]]
        for quote in wanted.get((version.cube_id, version.number), ()):
            if text := words.content[quote.start : quote.end]:
                found[quote] = Passage(
                    text,
                    words.speaker,
                    localtime(cube.said_at or version.event_time or cube.created_at),
                    happens=localise_event(happens_at(cube.said_at, version.event_time)),
                    is_own=is_from_reader(actor, cube, words.speaker),
                )
    return found


def is_from_reader(actor: Actor, cube: Cube, speaker: str) -> bool:
    """Return whether a memory is the reader's own message: without a name, or with a name of the persona in whose scope
    they read.
    """
    names = actor.persona_scope.names if actor.persona_scope else frozenset[str]()
    return fold_name(speaker) in names or (speaker.casefold() == MessageRole.USER and cube.owner_id == actor.member_id)


def localise_event(moment: datetime | None) -> datetime | None:
    """Convert the time of an event to the reader's time zone; a day, which begins at 0:00 UTC, is the same in every
    zone.
    """
    return moment if moment is None or moment == midnight(moment) else localtime(moment)


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
