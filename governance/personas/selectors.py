"""Who speaks: the personas that an actor may use."""

from uuid import UUID

from django.db.models import Q, QuerySet

from governance.actor import Actor
from governance.authz.rules import sees_private
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.models import Persona
from governance.vocabulary import PersonaKind


def personas_of(actor: Actor) -> QuerySet[Persona]:
    """The actor's own personas and the tenant's agents; all of them for those who govern. Use inside `acting`."""
    rows = Persona.objects.filter(tenant_id=actor.tenant_id)
    return rows if sees_private(actor) else rows.filter(Q(member_id=actor.member_id) | Q(kind=PersonaKind.AGENT))


def persona_get(*, actor: Actor, reference: str, field: str = "persona", kind: PersonaKind | None = None) -> Persona:
    """The persona with this id or name, of this kind if one is asked for.

    Raises Invalid, in the same words for a foreign and for an unknown one.
    """
    try:
        wanted = Q(id=UUID(reference))
    except ValueError:
        wanted = Q(name=reference)
    with acting(actor):
        usable = personas_of(actor).filter(wanted)
        found = list((usable.filter(kind=kind) if kind else usable).order_by("id")[:2])
    if len(found) != 1:
        known = (
            "no persona of yours has this id or name" if not found else "several personas have this name: give the id"
        )
        raise Invalid(errors=[FieldError(field, known)])
    return found[0]
