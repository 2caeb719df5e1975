"""Integrations: connections of agents, and the tenant's webhooks. Each form works without JavaScript."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix, reverse
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.access.grants.selectors import objects_readable
from governance.actor import Actor
from governance.errors import Conflict
from governance.pages import First
from governance.vocabulary import Permission
from governance.web.hosts import list_hosts
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, post_page, safe_page, see_other
from governance.web.pagination import Newest, uuid_or_none
from governance.web.verb_words import verb_groups, verb_words
from governance.webhooks.rules import event_names
from governance.webhooks.services import (
    MOST_WEBHOOKS,
    WebhookDraft,
    deliveries_list,
    delivery_get,
    delivery_replay,
    webhook_create,
    webhook_get,
    webhook_remove,
    webhook_rotate,
    webhook_test,
    webhook_update,
    webhooks_list,
)

ROWS = 50
PATHS = 200  # suggested
LONGEST_PATH = 200


class WebhookForm(PageForm):
    """A webhook to add. Its events are shown by groups, outside of the other fields."""

    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        help_text=_("It receives a signed POST with the ids of what changed, never their content."),
        widget=forms.TextInput(attrs={"placeholder": "https://agent.example/memos"}),
    )
    namespace = forms.CharField(
        label=_("Only memories in this namespace (may be left empty)"),
        required=False,
        max_length=LONGEST_PATH,
        widget=forms.TextInput(attrs={"placeholder": "/team/notes", "list": "webhook-places"}),
    )
    events = forms.MultipleChoiceField(label=_("Events"), choices=lambda: [(name, name) for name in event_names()])

    def draft(self) -> WebhookDraft:
        filters = {"namespace": self.cleaned_data["namespace"]} if self.cleaned_data["namespace"] else {}
        return WebhookDraft(url=self.cleaned_data["url"], events=self.cleaned_data["events"], filters=filters)


@safe_page
def integrations(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the ways to connect an agent, with the address of this installation, and the webhooks."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    context = {
        "hosts": list_hosts(request.build_absolute_uri(get_script_prefix()).rstrip("/")),
        "webhooks": webhooks_list(actor=actor, pages=First(MOST_WEBHOOKS)),
    }
    return draw(request, "governance/integrations/list.html", context)


@form_page
def webhook_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.OPERATIONS_MANAGE)
    form = WebhookForm(values_of(request))
    made = form.made_by(lambda: webhook_create(actor=actor, draft=form.draft()))
    if made is not None:
        return _page(request, actor, made.webhook.id, {"secret": made.secret})
    context = {
        "form": form,
        "event_groups": verb_groups(event_names()),
        "first_group": verb_words("memory.*"),
        "chosen": form["events"].value() or (),
        "places": objects_readable(actor=actor, object_type="namespace", most=PATHS),
    }
    return draw(request, "governance/integrations/new.html", context, status=form.status)


@safe_page
def webhook(request: HttpRequest, actor: Actor, webhook_id: UUID) -> HttpResponseBase:
    return _page(request, actor, webhook_id)


@post_page
def webhook_try(request: HttpRequest, actor: Actor, webhook_id: UUID) -> HttpResponseBase:
    error = webhook_test(actor=actor, webhook_id=webhook_id)
    return _page(request, actor, webhook_id, {"is_tried": True, "error": error})


@post_page
def webhook_rotate_secret(request: HttpRequest, actor: Actor, webhook_id: UUID) -> HttpResponseBase:
    made = webhook_rotate(actor=actor, webhook_id=webhook_id)
    return _page(request, actor, webhook_id, {"secret": made.secret})


@post_page
def webhook_switch(request: HttpRequest, actor: Actor, webhook_id: UUID) -> HttpResponseBase:
    enabled = request.POST.get("enabled") == "yes"
    webhook_update(actor=actor, webhook_id=webhook_id, changes={"enabled": enabled})
    return see_other(reverse("webhook", args=[webhook_id]))


@post_page
def webhook_end(request: HttpRequest, actor: Actor, webhook_id: UUID) -> HttpResponseBase:
    webhook_remove(actor=actor, webhook_id=webhook_id)
    return see_other(reverse("integrations"))


@post_page
def delivery_retry(request: HttpRequest, actor: Actor, delivery_id: UUID) -> HttpResponseBase:
    delivery = delivery_get(actor=actor, delivery_id=delivery_id)
    with suppress(Conflict):  # of one that waits to be sent already; the page shows that
        delivery_replay(actor=actor, delivery_id=delivery_id)
    return see_other(reverse("webhook", args=[delivery.webhook_id]))


def _page(request: HttpRequest, actor: Actor, webhook_id: UUID, more: dict[str, Any] | None = None) -> HttpResponseBase:
    take = Newest(size=ROWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    context = {
        "webhook": webhook_get(actor=actor, webhook_id=webhook_id),
        "deliveries": deliveries_list(actor=actor, webhook_id=webhook_id, pages=take),
        "older": take.older,
        **(more or {}),
    }
    return draw(request, "governance/integrations/webhook.html", context)
