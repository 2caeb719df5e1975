"""Pages of personas: the reader's own, and the tenant's agents."""

from typing import TYPE_CHECKING
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, DomainError
from governance.personas.selectors import persona_show, personas_list
from governance.personas.services import (
    LONGEST_NAME,
    NameInUse,
    PersonaDraft,
    persona_create,
    persona_remove,
)
from governance.vocabulary import PersonaKind
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, see_other
from governance.web.pagination import NewestOf

if TYPE_CHECKING:
    from governance.models import Persona

PERSONAS = 50  # of one page


class PersonaNameForm(PageForm):
    """The name of a persona."""

    name = forms.CharField(label=_("Name"), max_length=LONGEST_NAME)

    def blame(self, failure: DomainError) -> None:
        if isinstance(failure, NameInUse):
            self.add_error("name", _("Memories of somebody else use this name. Choose another."))
        elif isinstance(failure, Conflict):
            self.add_error("name", _("You have a persona of this name."))
        else:
            super().blame(failure)


class PersonaForm(PersonaNameForm):
    """A persona to create."""

    kind = forms.TypedChoiceField(
        label=_("Kind"),
        required=False,
        choices=[(PersonaKind.USER, _("a part of me")), (PersonaKind.AGENT, _("an assistant for everybody"))],
        coerce=PersonaKind,
        empty_value=PersonaKind.USER,
    )


@form_page
def personas(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List personas; POST creates one."""
    form = PersonaForm(values_of(request))
    if form.is_done_by(lambda: persona_create(actor=actor, draft=PersonaDraft(**form.cleaned_data))):
        return see_other(reverse("personas"))
    take = NewestOf(PERSONAS, request.GET.get("before", ""))
    with acting(actor):
        found: list[Persona] = personas_list(actor=actor, pages=take)
        context = {"personas": found, "older": take.older, "form": form}
        return draw(request, "governance/personas/list.html", context, status=form.status)


@form_page
def persona_delete(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    """GET shows the effect of the deletion; POST deletes the persona."""
    with acting(actor):
        persona_remove(actor=actor, persona_id=persona_id, dry_run=request.method != "POST")
        if request.method == "POST":
            return see_other(reverse("personas"))
        known = persona_show(actor=actor, persona_id=persona_id)
    return draw(request, "governance/personas/delete.html", {"persona": known})
