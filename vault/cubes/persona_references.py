"""References to personas in the filters of lists and searches."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, UnknownPersona
from governance.personas.selectors import NO_PERSONA, personas_of
from governance.vocabulary import Permission
from vault.models import Cube


def refuse_unknown_personas(*, actor: Actor, references: Iterable[str], field: str) -> None:
    """Refuse an id or name of no persona that the actor may use, and of none whose memories it reads.

    A persona of which the actor may not know is refused like a missing one. Raises UnknownPersona; Forbidden.
    One query if the actor may use all personas.
    """
    authorize(actor, Permission.MEMORY_READ)
    wanted = set(references)
    if not wanted:
        return
    with acting(actor):
        usable = personas_of(actor).filter(_naming(wanted)).values_list("id", "name")
        wanted -= {text for persona_id, name in usable for text in (str(persona_id), name)}
        reached = Cube.objects.in_reach_of(actor)
        for reference in sorted(wanted):
            if not reached.filter(_naming({reference}, prefix="persona__")).exists():
                raise UnknownPersona(errors=[FieldError(field, NO_PERSONA)])


def _naming(references: set[str], prefix: str = "") -> Q:
    condition = Q(**{f"{prefix}name__in": references})
    ids = [UUID(text) for text in references if _is_id(text)]
    return condition | Q(**{f"{prefix}id__in": ids}) if ids else condition


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
