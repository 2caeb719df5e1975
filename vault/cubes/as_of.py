"""Memories as of a time: what was known then, what was true then, and in the words of then.

Known is what was said, or stored, by then. A statement stored later counts from the begin of the validity, or from the
time of the event, that its writer gave it, because it tells of that time; a message never counts before it was said.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q

from governance.actor import Actor
from vault.cubes.rows import CubeRow
from vault.cubes.versions import readable_versions
from vault.models import CubeVersion, PastDeletion

FIELDS = (
    "semantic_type",
    "sensitivity",
    "tags",
    "importance",
    "priority",
    "event_time",
    "valid_from",
    "valid_to",
    "expires_at",
)


def as_of_condition(at: datetime) -> Q:
    """Return the condition on cubes that they were known, true and not deleted at a time."""
    stored = Q(valid_from=None) & (Q(created_at__lte=at) | Q(event_time__lte=at))
    since = stored | Q(valid_from__lte=at)
    said = Q(said_at=None) & since | Q(said_at__lte=at) & (Q(valid_from=None) | Q(valid_from__lte=at))
    undone = PastDeletion.objects.filter(cube_id=OuterRef("id"), deleted_at__lte=at, created_at__gt=at)
    return said & (Q(valid_to=None) | Q(valid_to__gt=at)) & Q(~Exists(undone))


def rows_at(actor: Actor, rows: Mapping[UUID, CubeRow], at: datetime) -> dict[UUID, CubeRow]:
    """Replace each row by the version that the memory had at a time; leave out those that the actor may not read.

    A memory stored later has its present version, or its first one if it is a message. Two queries; none if no memory
    ever changed.
    """
    changed = [row.cube for row in rows.values() if row.cube.version > 1]
    if not changed:
        return dict(rows)
    wanted = CubeVersion.objects.filter(cube_id__in=[cube.id for cube in changed])
    wanted = wanted.filter(Q(created_at__lte=at) | Q(number=1, cube__said_at__isnull=False))
    later = Q(cube__said_at=None, cube__created_at__gt=at, number=F("cube__version"))
    numbers: dict[UUID, int] = {}
    every = wanted | CubeVersion.objects.filter(later, cube_id__in=[cube.id for cube in changed])
    for cube_id, number in every.values_list("cube_id", "number"):
        numbers[cube_id] = max(number, numbers.get(cube_id, 0))
    past = readable_versions(actor).filter(cube_id__in=numbers, number__in=set(numbers.values()))
    versions = {row.cube_id: row for row in past if row.number == numbers[row.cube_id] and row.sealed}
    unchanged = {cube_id: row for cube_id, row in rows.items() if row.cube.version == 1}
    return unchanged | {cube_id: _row_at(rows[cube_id], version) for cube_id, version in versions.items()}


def _row_at(row: CubeRow, version: CubeVersion) -> CubeRow:
    if version.number == row.cube.version:
        return row
    cube = copy(row.cube)
    for name in FIELDS:
        setattr(cube, name, getattr(version, name))
    cube.version, cube.superseded_by = version.number, None
    return replace(row, cube=cube, sealed=bytes(version.sealed))
