"""Look-up of the persona that a call names, with the facts that decisions need."""

from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import refuse_missing
from governance.actor import Actor
from governance.models import Persona
from governance.vocabulary import PersonaKind

OBJECT_TYPE = "persona"


def persona_locate(actor: Actor, persona_id: UUID, *, lock: bool = False) -> Persona:
    """Return a persona of the actor's tenant. Raises NotFound. The caller must call `authorize` next."""
    rows = Persona.objects.filter(tenant_id=actor.tenant_id, id=persona_id, removed_at=None)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        refuse_missing(actor, OBJECT_TYPE, persona_id)
    return found


def persona_target(persona: Persona) -> Target:
    """Return the target of a persona: a member's is private; an agent is open to all and changed by its creator."""
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
