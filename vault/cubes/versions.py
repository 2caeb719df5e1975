"""Selection of the versions that an actor may read: each stays as private as it was when it was written."""

from collections.abc import Sequence

from django.db.models import F, Q, QuerySet

from governance.access.decisions.rules import sees_private
from governance.actor import Actor
from governance.policies.purposes import denied_by_purpose
from vault.models import Cube, CubeVersion, Namespace
from vault.models.cube import persona_condition
from vault.vocabulary import AccessLevel


def visible_versions(actor: Actor, cube: Cube) -> QuerySet[CubeVersion]:
    """Select the versions that the actor may read of `cube`, which it may read."""
    return readable_versions(actor).filter(cube=cube)


def readable_versions(actor: Actor) -> QuerySet[CubeVersion]:
    """Select the versions that the actor may read; the caller checks that it may read their memories."""
    rows = CubeVersion.objects.filter(_privacy_condition(actor))
    denied = denied_by_purpose(actor, type_field="cube__type")
    return rows if denied is None else rows.exclude(denied)


def present_versions(cubes: Sequence[Cube]) -> list[CubeVersion]:
    """Return the present version of each cube. One query."""
    numbers = {cube.id: cube.version for cube in cubes}
    rows = CubeVersion.objects.filter(cube_id__in=numbers, number__in=set(numbers.values()))
    return [row for row in rows if row.number == numbers[row.cube_id]]


def _privacy_condition(actor: Actor) -> Q:
    """Return the condition that the actor may read the namespace, persona and access level that a version had.

    Versions in the cube's present namespace need no right to it, since a grant on the cube alone opens them.
    """
    place = Q(namespace__in=Namespace.objects.visible_to(actor)) | Q(namespace_id=F("cube__namespace_id"))
    place &= persona_condition(actor)
    if sees_private(actor):
        return place
    same_owner = Q(owner_id=F("cube__owner_id")) | Q(owner_id=None, cube__owner_id=None)
    still_private = Q(cube__access_level=AccessLevel.PRIVATE) & same_owner
    return place & (~Q(access_level=AccessLevel.PRIVATE) | Q(owner_id=actor.member_id) | still_private)
