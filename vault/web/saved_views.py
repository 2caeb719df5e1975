"""Saves the present list of memories as a named view, and removes views."""

from uuid import UUID

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.actor import Actor
from governance.web.pages import post_page, see_other
from vault.listing.views import ViewDraft, view_create, view_remove
from vault.web.memory_forms import ViewForm
from vault.web.memory_list import draw_list


@post_page
def views(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Save a view of the shown list."""
    form = ViewForm(request.POST)
    view = form.made_by(lambda: view_create(actor=actor, draft=ViewDraft(**form.cleaned_data)))
    if view is None:
        return draw_list(request, actor, QueryDict(form.cleaned_data.get("query", "")), form)
    return see_other(f"{reverse('memories')}?{view.query}")


@post_page
def remove(request: HttpRequest, actor: Actor, view_id: UUID) -> HttpResponseBase:
    view_remove(actor=actor, view_id=view_id)
    return see_other(reverse("memories"))
