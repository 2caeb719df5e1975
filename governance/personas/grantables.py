"""Personas as objects of grants, registered at start."""

from uuid import UUID

from django.db.models import Q

from governance.access.decisions.grantables import Grantable, declare
from governance.access.decisions.rules import Target
from governance.actor import Actor
from governance.models import PersonaGrant
from governance.personas.lookup import OBJECT_TYPE, persona_locate, persona_target
from governance.personas.selectors import personas_of
from governance.vocabulary import Action, Permission


def declare_personas() -> None:
    permissions = {
        Action.READ: Permission.PERSONA_USE,
        Action.WRITE: Permission.PERSONA_UPDATE,
        Action.SHARE: Permission.ACCESS_SHARE,
        Action.GOVERN: Permission.ACCESS_GOVERN,
    }
    declare(Grantable(OBJECT_TYPE, OBJECT_TYPE, PersonaGrant, _target, permissions, _bonds_condition, personas_of))


def _target(actor: Actor, persona_id: UUID) -> Target:
    return persona_target(persona_locate(actor, persona_id))


def _bonds_condition(actor: Actor) -> Q:
    bound = actor.binding.persona_id if actor.binding else None
    return Q() if bound is None else Q(content_object_id=bound)
