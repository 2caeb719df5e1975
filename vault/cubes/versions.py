"""The versions of a memory that an actor may read: each is as private as it was when it was written."""

from django.db.models import Q, QuerySet

from governance.access.decisions.rules import sees_private
from governance.actor import Actor
from governance.policies.purposes import denied_by_purpose
from vault.models import Cube, CubeVersion, Namespace
from vault.vocabulary import AccessLevel


def versions_visible(actor: Actor, cube: Cube) -> QuerySet[CubeVersion]:
    """The versions of `cube`, which the actor may read, that it may read too."""
    rows = CubeVersion.objects.filter(_as_open_as_then(actor, cube), cube=cube)
    denied = denied_by_purpose(actor, type_field="cube__type")
    return rows if denied is None else rows.exclude(denied)


def _as_open_as_then(actor: Actor, cube: Cube) -> Q:
    """A version is as private as it was when it was written, in the namespace of then, wherever the cube is now.

    The namespace of now is open to whoever reads the cube: a grant on the cube alone opens what it was there.
    """
    place = Q(namespace__in=Namespace.objects.visible_to(actor)) | Q(namespace_id=cube.namespace_id)
    if actor.binding is not None and actor.binding.persona_id is not None:
        place &= Q(persona_id=actor.binding.persona_id)
    if sees_private(actor):
        return place
    kept = Q(access_level=AccessLevel.PRIVATE) & ~Q(owner_id=actor.member_id)
    if cube.access_level == AccessLevel.PRIVATE:
        kept &= ~Q(owner_id=cube.owner_id)
    return place & ~kept
