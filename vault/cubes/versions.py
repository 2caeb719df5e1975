"""The versions of a memory that an actor may read: each is as private as it was when it was written."""

from collections.abc import Sequence

from django.db.models import F, Q, QuerySet

from governance.access.decisions.rules import sees_private
from governance.actor import Actor
from governance.policies.purposes import denied_by_purpose
from vault.models import Cube, CubeVersion, Namespace
from vault.vocabulary import AccessLevel


def versions_visible(actor: Actor, cube: Cube) -> QuerySet[CubeVersion]:
    """The versions of `cube`, which the actor may read, that it may read too."""
    return versions_open_to(actor).filter(cube=cube)


def versions_open_to(actor: Actor) -> QuerySet[CubeVersion]:
    """The versions of any memory that the actor may read, if it may read the memory: the caller sees to that."""
    rows = CubeVersion.objects.filter(_as_open_as_then(actor))
    denied = denied_by_purpose(actor, type_field="cube__type")
    return rows if denied is None else rows.exclude(denied)


def versions_present(cubes: Sequence[Cube]) -> list[CubeVersion]:
    """The present version of each cube. One query."""
    numbers = {cube.id: cube.version for cube in cubes}
    rows = CubeVersion.objects.filter(cube_id__in=numbers, number__in=set(numbers.values()))
    return [row for row in rows if row.number == numbers[row.cube_id]]


def _as_open_as_then(actor: Actor) -> Q:
    """A version is as private as it was when it was written, in the namespace of then, wherever the cube is now.

    The namespace of now is open to whoever reads the cube: a grant on the cube alone opens what it was there.
    """
    place = Q(namespace__in=Namespace.objects.visible_to(actor)) | Q(namespace_id=F("cube__namespace_id"))
    if actor.binding is not None and actor.binding.persona_id is not None:
        place &= Q(persona_id=actor.binding.persona_id)
    if sees_private(actor):
        return place
    same_owner = Q(owner_id=F("cube__owner_id")) | Q(owner_id=None, cube__owner_id=None)
    still_private = Q(cube__access_level=AccessLevel.PRIVATE) & same_owner
    return place & (~Q(access_level=AccessLevel.PRIVATE) | Q(owner_id=actor.member_id) | still_private)
