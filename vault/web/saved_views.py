"""Saves the present list of memories as a named view, and removes views."""

from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.actor import Actor
from governance.web.pages import post_page, see_other
from vault.listing.views import ViewDraft, view_create, view_remove
from vault.web.memory_forms import query_part


@post_page
def views(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Save a view. `query`: the address of the list, whose query string is saved."""
    query = query_part(request.POST.get("query", ""))
    view = view_create(actor=actor, draft=ViewDraft(name=request.POST.get("name", ""), query=query))
    return see_other(f"{reverse('memories')}?{view.query}")


@post_page
def remove(request: HttpRequest, actor: Actor, view_id: UUID) -> HttpResponseBase:
    view_remove(actor=actor, view_id=view_id)
    return see_other(reverse("memories"))
