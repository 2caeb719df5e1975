"""The form that stores one memory."""

from http import HTTPStatus

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.vocabulary import Permission
from governance.web.page_forms import values_of
from governance.web.pages import draw, form_page, see_other
from governance.web.sessions import persona_of_session
from vault.content.drafts import CubeDraft
from vault.cubes.services import AddedCube, cubes_add
from vault.cubes.writer.builder import texts_index
from vault.listing.selectors import paths_list
from vault.namespaces.rules import LONGEST_PATH
from vault.reconciliation.services import relations_store, statements_relate
from vault.web.memory_forms import MemoryForm, unconfirmed_path


class AddForm(MemoryForm):
    """A memory to store."""

    namespace = forms.CharField(
        label=_("Namespace"),
        required=False,
        max_length=LONGEST_PATH,
        widget=forms.TextInput(attrs={"list": "places", "placeholder": _("Your private one")}),
    )

    def draft(self, persona: str | None) -> CubeDraft:
        values = self.cleaned_data | {"namespace": self.cleaned_data["namespace"] or None}
        return CubeDraft(**values, persona=persona)


@form_page
def memory_add(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the form, filled from `?content=`; POST stores a memory and redirects to it."""
    authorize(actor, Permission.MEMORY_CREATE)
    form = AddForm(values_of(request), auto_id="add-%s", initial={"content": request.GET.get("content", "")})
    persona = persona_of_session(request)

    def store() -> AddedCube:
        drafts = [form.draft(persona["id"] if persona else None)]
        reconciled, texts = statements_relate(actor=actor, drafts=drafts), texts_index(actor.tenant_id, drafts)
        with acting(actor):
            added = cubes_add(actor=actor, drafts=drafts, texts=texts)
            relations_store(actor=actor, added=added, relations=reconciled.relations)
        return added[0]

    new_path = unconfirmed_path(actor, request.POST) if form.is_valid() else ""
    if not new_path and (added := form.made_by(store)):
        return see_other(reverse("memory", args=[added.cube.id]))
    with acting(actor):
        context = {"form": form, "new_path": new_path, "places": paths_list(actor=actor), "persona": persona}
        status = HTTPStatus.UNPROCESSABLE_ENTITY if new_path else form.status
        return draw(request, "vault/memories/add.html", context, status=status)
