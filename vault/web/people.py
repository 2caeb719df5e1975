"""Pages of people: everything about a persona in one place, and who read the memories of a persona or data subject."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.access.decisions.services import authorize, is_allowed
from governance.access.grants.selectors import GrantFilter, grants_list
from governance.actor import Actor
from governance.audit.reading.selectors import ReaderLine, names_of, readers_list
from governance.database import acting
from governance.errors import Invalid
from governance.object_names import Name
from governance.pages import First
from governance.personas.lookup import persona_target
from governance.personas.selectors import persona_get, persona_show
from governance.personas.services import LONGEST_NAME, PersonaChanges, persona_update
from governance.vocabulary import GranteeKind, Permission, PrincipalKind
from governance.web.grant_lines import describe_grants
from governance.web.page_forms import values_of
from governance.web.pages import draw, form_page, safe_page, see_other
from governance.web.pagination import NewestMerged
from governance.web.personas import PersonaNameForm
from vault.layers.persona import profile_get, traits_list
from vault.layers.selectors import streams_list
from vault.listing.selectors import MemoryPage
from vault.subjects.people import PersonKind, PersonMemories, person_memories, person_memory_ids
from vault.subjects.selectors import SubjectLine, subject_get, subjects_list
from vault.web.layers import group_traits
from vault.web.memory_access import USES
from vault.web.memory_rows import rows_make
from vault.web.validity import FIELDS as PROFILE_FIELDS

STREAMS, GRANTS, FACTS, TRAITS = 5, 6, 8, 6  # shown
DAYS = 30  # in which readers are counted


@safe_page
def person(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Redirect from a name to its page: of a persona, else of a data subject, else what is known around the name."""
    name = request.GET.get("name", "").strip()[:LONGEST_NAME]
    try:
        return see_other(reverse("persona", args=[persona_get(actor=actor, reference=name).id]))
    except Invalid:
        subject = _find_subject(actor, name)
    if subject is not None:
        return see_other(reverse("subject", args=[subject.id]))
    return see_other(f"{reverse('graph')}?{urlencode({'around': name})}")


def _find_subject(actor: Actor, reference: str) -> SubjectLine | None:
    if not reference or not is_allowed(actor, Permission.SUBJECT_MANAGE):
        return None
    return next(iter(subjects_list(actor=actor, pages=First(1), reference=reference)), None)


@form_page
def persona(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    """Show everything about a persona; POST renames it."""
    known = persona_show(actor=actor, persona_id=persona_id)
    form = PersonaNameForm(values_of(request), initial={"name": known.name})
    if form.is_done_by(
        lambda: persona_update(
            actor=actor, persona_id=persona_id, changes=PersonaChanges(name=form.cleaned_data["name"])
        )
    ):
        return see_other(reverse("persona", args=[persona_id]))
    context: dict[str, Any] = {"persona": known, "form": form}
    with acting(actor):
        if is_allowed(actor, Permission.MEMORY_READ):
            context |= memories_context(actor, PersonKind.PERSONA, persona_id)
            context["more"] = f"{reverse('memories')}?persona={persona_id}"
            context |= _mind_context(actor, persona_id, is_agent=known.is_agent)
        if is_allowed(actor, Permission.ACCESS_SHARE, persona_target(known)):
            wanted = GrantFilter(object_type="persona", object_id=persona_id)
            found = grants_list(actor=actor, wanted=wanted, pages=NewestMerged(GRANTS, ""))
            context["grants"] = describe_grants(actor, found)
            to_persona = GrantFilter(holder_kind=GranteeKind.PERSONA, holder=str(persona_id))
            held = grants_list(actor=actor, wanted=to_persona, pages=NewestMerged(GRANTS, ""))
            context["held_grants"] = describe_grants(actor, held)
        context["subject"] = _find_subject(actor, known.name)
        return draw(request, "vault/people/persona.html", context, status=form.status)


@safe_page
def persona_readers(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    """Show who read the memories of a persona in the last days, as a part of its page."""
    persona_show(actor=actor, persona_id=persona_id)
    return _draw_readers(request, actor, PersonKind.PERSONA, persona_id)


@safe_page
def subject_readers(request: HttpRequest, actor: Actor, subject_id: UUID) -> HttpResponseBase:
    """Show who read the memories about a data subject in the last days, as a part of its page."""
    subject_get(actor=actor, subject_id=subject_id)
    return _draw_readers(request, actor, PersonKind.SUBJECT, subject_id)


def _draw_readers(request: HttpRequest, actor: Actor, kind: PersonKind, person_id: UUID) -> HttpResponseBase:
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        ids = person_memory_ids(actor=actor, kind=kind, person_id=person_id)
        lines = readers_list(actor=actor, object_ids=ids, verbs=USES, days=DAYS)
        names = names_of(actor=actor, ids={id for line in lines for id in (line.principal_id, line.member_id) if id})
        rows = [
            (_name(names.get(line.principal_id), line.principal_kind), _member(names, line), line) for line in lines
        ]
        return draw(request, "vault/people/_readers.html", {"rows": rows, "days": DAYS})


def memories_context(actor: Actor, kind: PersonKind, person_id: UUID) -> dict[str, Any]:
    """Return the context of the newest memories of a person, and the address of their readers for auditors."""
    found: PersonMemories = person_memories(actor=actor, kind=kind, person_id=person_id)
    rows = rows_make(MemoryPage(views=found.newest, next=None), "")
    address = reverse(f"{kind}_readers", args=[person_id]) if is_allowed(actor, Permission.AUDIT_READ) else ""
    return {"found": found, "newest": rows, "readers": address}


def _mind_context(actor: Actor, persona_id: UUID, *, is_agent: bool) -> dict[str, Any]:
    profile = profile_get(actor=actor, persona_id=persona_id)
    shown = {"profile": [(PROFILE_FIELDS.get(field.name, field.name), field) for field in profile[:FACTS]]}
    if is_agent:
        return shown
    traits = group_traits(traits_list(actor=actor, persona_id=persona_id)[:TRAITS])
    return shown | {"traits": traits, "streams": streams_list(actor=actor, persona_id=persona_id, limit=STREAMS)}


def _member(names: Mapping[UUID, Name], line: ReaderLine) -> str:
    """Return the name of the member behind a key, else nothing."""
    is_key = line.principal_kind == PrincipalKind.API_KEY and line.member_id in names
    return str(names[line.member_id]) if is_key and line.member_id else ""


def _name(name: object, kind: PrincipalKind) -> str:
    return "MemOS" if kind == PrincipalKind.SYSTEM else str(name or "…")
