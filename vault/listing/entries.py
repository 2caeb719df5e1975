"""Look-up of pipeline cache entries by key."""

from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.vocabulary import Permission
from vault.cubes.services import entries_with_key
from vault.models import Cube
from vault.namespaces.management import namespace_locate
from vault.namespaces.services import namespace_target
from vault.vocabulary import NamespaceKind


def entry_find(*, actor: Actor, namespace_id: UUID, key: str) -> Cube:
    """Return the entry of a pipeline cache with this key; its words are not opened.

    Raises NotFound, also if it has expired; Forbidden; KeyUnavailable.
    """
    with acting(actor):
        namespace = namespace_locate(actor, namespace_id)
        authorize(actor, Permission.MEMORY_READ, namespace_target(namespace))
        if namespace.kind != NamespaceKind.PIPELINE_CACHE:
            raise NotFound
        readable = Cube.objects.visible_to(actor).values("id")
        newest = entries_with_key(namespace, key).filter(id__in=readable).order_by("-id").first()
        if newest is None:
            raise NotFound
        return newest
