"""Services for personas: roles of a member, or assistants. Each has memories of its own."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, clear_transaction_cache
from governance.errors import Conflict, FieldError, Invalid
from governance.ids import uuid7
from governance.models import Member, Persona
from governance.personas.lookup import OBJECT_TYPE, persona_locate, persona_target
from governance.vocabulary import Permission, PersonaKind, Verb

LONGEST_NAME = 200
PERSONA_NAME = f"1 to {LONGEST_NAME} printable characters"
MOST_ATTRIBUTES, LONGEST_ATTRIBUTE = 50, 500
Attributes = Mapping[str, str]


class NameInUse(Conflict):
    """Memories of another member name a persona so."""


# Returns whether memories of somebody else than the member name one of the personas.
UseOfOthers = Callable[[Collection[UUID], UUID | None], bool]
_uses: list[UseOfOthers] = []


@dataclass(frozen=True)
class PersonaDraft:
    """A persona's fields. member_id: its member; None: the actor's. attributes: short texts by name, stored
    unencrypted.
    """

    name: str
    kind: PersonaKind = PersonaKind.USER
    member_id: UUID | None = None
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True)
class PersonaChanges:
    """Changes of a persona. None leaves a field unchanged."""

    name: str | None = None
    attributes: Attributes | None = None


def register_use_of_personas(use: UseOfOthers) -> None:
    """Register the check of a package whose objects name personas."""
    _uses.append(use)


def persona_create(*, actor: Actor, draft: PersonaDraft) -> Persona:
    """Create a persona. One for another member requires the right to manage members.

    Raises Forbidden; Invalid; Conflict if the member has one of this name, or if it is to be an agent and memories of
    another member name a persona of that name. Writes: Persona, AuditEntry.
    """
    authorize(actor, Permission.PERSONA_CREATE)
    if draft.member_id not in {None, actor.member_id}:
        authorize(actor, Permission.MEMBER_MANAGE)
    _check(draft.name, draft.attributes)
    with acting(actor):
        persona = Persona(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            kind=draft.kind,
            name=draft.name,
            member=_member(actor, draft),
            attributes=dict(draft.attributes),
        )
        _check_claim(persona)
        _save(persona, force_insert=True)
        persona.refresh_from_db()  # the database sets the times
        record(
            actor=actor,
            verb=Verb.PERSONA_CREATED,
            object_type=OBJECT_TYPE,
            object_ids=[persona.id],
            detail={"kind": draft.kind},
        )
    return persona


def persona_ensure(*, actor: Actor, name: str) -> tuple[Persona, bool]:
    """Return the actor's own persona of this name, and whether it is new. Raises and writes as `persona_create`."""
    authorize(actor, Permission.PERSONA_CREATE)
    with acting(actor):
        own = Persona.objects.filter(Q(member_id=actor.member_id), member__isnull=False, tenant_id=actor.tenant_id)
        found = own.filter(name=name, removed_at=None).first()
        return (found, False) if found else (persona_create(actor=actor, draft=PersonaDraft(name)), True)


def persona_update(*, actor: Actor, persona_id: UUID, changes: PersonaChanges) -> Persona:
    """Change a persona. Others' memories keep the name of an agent, unless somebody who manages members renames it.

    Raises NotFound; Forbidden; Invalid; Conflict. Writes: Persona, AuditEntry.
    """
    with acting(actor):
        persona = persona_update_ask(actor=actor, persona_id=persona_id)
        if changes.name not in {None, persona.name}:
            _check_rename(actor, persona)
            persona.name = str(changes.name)
            _check_claim(persona)
        persona.attributes = persona.attributes if changes.attributes is None else dict(changes.attributes)
        _check(persona.name, persona.attributes)
        _save(persona, update_fields=["name", "attributes"])
        record(actor=actor, verb=Verb.PERSONA_CHANGED, object_type=OBJECT_TYPE, object_ids=[persona.id])
    return persona


def persona_update_ask(*, actor: Actor, persona_id: UUID) -> Persona:
    """Return the persona, locked, if the actor may change it. Raises NotFound; Forbidden."""
    with acting(actor):
        persona = persona_locate(actor, persona_id, lock=True)
        authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona))
    return persona


def persona_remove(*, actor: Actor, persona_id: UUID, dry_run: bool = False) -> None:
    """Remove a persona and end the API keys bound to it. Its memories keep its name.

    dry_run: only check. Raises NotFound; Forbidden. Writes: Persona, AuditEntry.
    """
    with acting(actor):
        persona = persona_update_ask(actor=actor, persona_id=persona_id)
        if dry_run:
            return
        Persona.objects.filter(id=persona.id).update(removed_at=Now())
        clear_transaction_cache()
        record(actor=actor, verb=Verb.PERSONA_REMOVED, object_type=OBJECT_TYPE, object_ids=[persona.id])


def _member(actor: Actor, draft: PersonaDraft) -> Member | None:
    """Return the member of a new persona; None for an agent that the system makes."""
    member_id = draft.member_id or actor.member_id
    if member_id is None and draft.kind is PersonaKind.AGENT:
        return None
    found = Member.objects.filter(Q(id=member_id), tenant_id=actor.tenant_id, removed_at=None).first()
    if found is None:
        raise Invalid(errors=[FieldError("member", "no member has this id")])
    return found


def _check_claim(persona: Persona) -> None:
    """Raises NameInUse if an agent, which all may speak as, would take a name that another member's memories use."""
    if persona.kind != PersonaKind.AGENT:
        return
    others = Persona.objects.filter(tenant_id=persona.tenant_id, name=persona.name).exclude(id=persona.id)
    taken = list(others.exclude(Q(member_id=persona.member_id)).values_list("id", flat=True))
    if taken and any(use(taken, persona.member_id) for use in _uses):
        raise NameInUse(f"Memories of somebody else use the name {persona.name}.")


def _check_rename(actor: Actor, persona: Persona) -> None:
    """Raises NameInUse if somebody else's memories use the name of an agent, which their clients find them by."""
    if persona.kind != PersonaKind.AGENT or is_allowed(actor, Permission.MEMBER_MANAGE):
        return
    if any(use([persona.id], persona.member_id) for use in _uses):
        raise NameInUse(f"Memories of somebody else use the name {persona.name}.")


def _save(persona: Persona, **options: object) -> None:
    try:
        with transaction.atomic():
            persona.save(**options)  # type: ignore[arg-type]
    except IntegrityError as error:
        raise Conflict(f"There is a persona {persona.name} of this member already.") from error


def is_persona_name(text: str) -> bool:
    """Return whether `text` is a valid name of a persona."""
    return bool(text.strip()) and len(text) <= LONGEST_NAME and text.isprintable()


def _check(name: str, attributes: Attributes) -> None:
    if not is_persona_name(name):
        raise Invalid(errors=[FieldError("name", PERSONA_NAME)])
    check_attributes(attributes, "attributes")


def check_attributes(attributes: Attributes, place: str) -> None:
    """Check the number and length of attributes. Raises Invalid."""
    long = [name for name, value in attributes.items() if not name or len(name) > 100 or len(value) > LONGEST_ATTRIBUTE]
    if len(attributes) > MOST_ATTRIBUTES or long:
        message = f"at most {MOST_ATTRIBUTES}, each a name and a text of at most {LONGEST_ATTRIBUTE} characters"
        raise Invalid(errors=[FieldError(place, message)])
