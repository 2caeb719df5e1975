"""Selectors of the personas that an actor may use."""

from typing import Any
from uuid import UUID

from django.db.models import Case, Q, QuerySet, When

from governance.access.decisions.principal_grants import grants_of, principal_grants
from governance.access.decisions.rules import allowing_actions, denying_actions, reads_content, sees_private
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid, UnknownPersona
from governance.models import Persona
from governance.pages import Pages
from governance.personas.lookup import OBJECT_TYPE, persona_locate, persona_target
from governance.vocabulary import Action, Effect, Permission, PersonaKind, Verb

NO_PERSONA = "no persona of yours has this id or name"


def personas_of(actor: Actor) -> QuerySet[Persona]:
    """Return the actor's own and granted personas and the tenant's agents; all personas for those who govern.

    Denied personas are left out, and a bound key gets only its own. Use inside `acting`.
    """
    rows = Persona.objects.filter(tenant_id=actor.tenant_id, removed_at=None)
    if actor.is_system:
        return rows
    if not sees_private(actor):
        rows = rows.filter(_visibility_condition(actor))
    if actor.binding is not None and actor.binding.persona_id is not None:
        rows = rows.filter(id=actor.binding.persona_id)
    if principal_grants(actor).has(OBJECT_TYPE, Effect.DENY):
        rows = rows.exclude(pk__in=_select_granted_ids(actor, Effect.DENY))
    return rows


def personas_list(*, actor: Actor, pages: Pages, kind: PersonaKind | None = None) -> list[Persona]:
    """Return a page of the personas that the actor may use, newest first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.PERSONA_USE)
    with acting(actor):
        rows = personas_of(actor).order_by("-id")
        page = list(pages.take(rows.filter(kind=kind) if kind else rows))
        record(actor=actor, verb=Verb.PERSONA_READ, object_type=OBJECT_TYPE, object_ids=[row.id for row in page])
        return page


def persona_show(*, actor: Actor, persona_id: UUID) -> Persona:
    """Return one persona. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        persona = persona_locate(actor, persona_id)
        authorize(actor, Permission.PERSONA_USE, persona_target(persona))
        record(actor=actor, verb=Verb.PERSONA_READ, object_type=OBJECT_TYPE, object_ids=[persona.id])
        return persona


def persona_get(*, actor: Actor, reference: str, field: str = "persona", kind: PersonaKind | None = None) -> Persona:
    """Return the persona with this id or name, and of this kind if given. If several have the name, the actor's own.

    A name may have the form of an id, as clients' users have: it is a name unless a persona has this id.
    Raises UnknownPersona, with the same message for a foreign and an unknown one; Invalid where several have the name.
    """
    persona_id = _read_id(reference)
    with acting(actor):
        usable = personas_of(actor).filter(Q(id=persona_id) | Q(name=reference))
        by_id_then_own = Case(When(id=persona_id, then=0), When(member_id=actor.member_id, then=1), default=2)
        found = list((usable.filter(kind=kind) if kind else usable).order_by(by_id_then_own, "id")[:2])
    own = bool(found) and (
        found[0].id == persona_id or (actor.member_id is not None and found[0].member_id == actor.member_id)
    )
    if not found:
        raise UnknownPersona(errors=[FieldError(field, NO_PERSONA)])
    if len(found) != 1 and not own:
        raise Invalid(errors=[FieldError(field, "several personas have this name: give the id")])
    return found[0]


def _read_id(reference: str) -> UUID | None:
    try:
        return UUID(reference)
    except ValueError:
        return None


def _visibility_condition(actor: Actor) -> Q:
    reach = Q(member_id=actor.member_id) | Q(kind=PersonaKind.AGENT) if reads_content(actor) else Q(pk__in=[])
    if principal_grants(actor).has(OBJECT_TYPE, Effect.ALLOW):
        reach |= Q(pk__in=_select_granted_ids(actor, Effect.ALLOW))
    return reach


def _select_granted_ids(actor: Actor, effect: Effect) -> QuerySet[Any]:
    actions = allowing_actions(Action.READ) if effect is Effect.ALLOW else denying_actions(Action.READ)
    return grants_of(actor, OBJECT_TYPE, effect, actions).values("content_object_id")
