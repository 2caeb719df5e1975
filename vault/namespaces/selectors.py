"""Where memory lies, as its owner has it."""

from governance.actor import Actor
from governance.database import acting
from vault.models import Namespace
from vault.namespaces.rules import PRIVATE_ROOT
from vault.vocabulary import NamespaceKind


def private_path_of(*, actor: Actor) -> str:
    """The path of the actor's private namespace; the root of all private ones before it is made."""
    with acting(actor):
        mine = Namespace.objects.visible_to(actor).filter(owner_id=actor.member_id, kind=NamespaceKind.PRIVATE)
        path = mine.order_by("id").values_list("path", flat=True).first()
    return path or PRIVATE_ROOT
