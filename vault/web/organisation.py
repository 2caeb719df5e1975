"""The page on which an owner deletes the organisation, or cancels the deletion."""

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from governance.actor import Actor
from governance.errors import Held
from governance.web.page_forms import ConfirmationForm, values_of
from governance.web.pages import draw, form_page, post_page, see_other
from vault.deletion.services import deletion_cancel, deletion_get, deletion_preview, deletion_request


class DeletionForm(ConfirmationForm):
    """The confirmation that the organisation is deleted."""

    understood = forms.BooleanField(
        label=_("I understand that nobody can bring this organisation back."),
        error_messages={"required": _("Confirm that you understand what is deleted.")},
    )


@form_page
def organisation(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the page; POST requests the deletion, confirmed by typing the organisation's short name."""
    view = deletion_get(actor=actor)
    form = DeletionForm(values_of(request), name="slug", word=view.slug)
    try:
        if form.is_done_by(lambda: deletion_request(actor=actor, slug=form.cleaned_data["slug"])):
            return see_other(reverse("organisation"))
    except Held:
        form.add_error(None, _("Holds keep memories of this organisation. End them first."))
    context = {"deletion": view, "preview": None if view.job else deletion_preview(actor=actor), "form": form}
    return draw(request, "vault/organisation.html", context, status=form.status)


@post_page
def cancel(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    deletion_cancel(actor=actor)
    return see_other(reverse("organisation"))
