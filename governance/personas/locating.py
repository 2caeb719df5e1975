"""Finding the one persona that a call names, and what the law must know of it."""

from uuid import UUID

from django.db.models import Q

from governance.actor import Actor
from governance.authz.grantables import Grantable, declare
from governance.authz.rules import Target
from governance.errors import NotFound
from governance.models import Persona, PersonaGrant
from governance.vocabulary import Action, Permission, PersonaKind

OBJECT_TYPE = "persona"


def persona_locate(actor: Actor, persona_id: UUID, *, lock: bool = False) -> Persona:
    """A persona of the actor's tenant. Raises NotFound. The caller asks `authorize` next."""
    rows = Persona.objects.filter(tenant_id=actor.tenant_id, id=persona_id, removed_at=None)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise NotFound
    return found


def persona_target(persona: Persona) -> Target:
    """A member's persona is theirs alone; an agent is everybody's to use and its maker's to change."""
    own = persona.kind == PersonaKind.USER
    return Target(
        object_type=OBJECT_TYPE,
        object_id=persona.id,
        tenant_id=persona.tenant_id,
        private_to=frozenset({persona.member_id}) if own else frozenset(),
        owner_id=persona.member_id,
        curated=True,
        persona_id=persona.id,
    )


def declare_personas() -> None:
    permissions = {
        Action.READ: Permission.PERSONA_USE,
        Action.WRITE: Permission.PERSONA_UPDATE,
        Action.SHARE: Permission.ACCESS_SHARE,
        Action.GOVERN: Permission.ACCESS_GOVERN,
    }
    declare(Grantable(OBJECT_TYPE, OBJECT_TYPE, PersonaGrant, _target, permissions, _within_bonds))


def _target(actor: Actor, persona_id: UUID) -> Target:
    return persona_target(persona_locate(actor, persona_id))


def _within_bonds(actor: Actor) -> Q:
    bound = actor.binding.persona_id if actor.binding else None
    return Q() if bound is None else Q(content_object_id=bound)
