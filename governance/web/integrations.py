"""Integrations: connections of agents, and the tenant's webhooks. Each form works without JavaScript."""

from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix, reverse

from governance.access.decisions.services import authorize
from governance.access.grants.selectors import objects_readable
from governance.actor import Actor
from governance.errors import Conflict, FieldError, Invalid
from governance.pages import First
from governance.vocabulary import Permission
from governance.web.faults import fault_texts
from governance.web.hosts import list_hosts
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
    if request.method != "POST":
        return _form(request, actor)
    namespace = request.POST.get("namespace", "").strip()
    events = request.POST.getlist("events")
    draft = WebhookDraft(
        url=request.POST.get("url", "").strip(), events=events, filters={"namespace": namespace} if namespace else {}
    )
    try:
        made = webhook_create(actor=actor, draft=draft)
    except Invalid as failure:
        return _form(request, actor, failure.errors)
    except Conflict as failure:
        return _form(request, actor, [FieldError("url", failure.detail)])
    return _page(request, actor, made.webhook.id, {"secret": made.secret})


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


def _form(request: HttpRequest, actor: Actor, faults: Sequence[FieldError] = ()) -> HttpResponseBase:
    context = {
        "event_groups": verb_groups(event_names()),
        "first_group": verb_words("memory.*"),
        "asked": {name: request.POST.get(name, "") for name in ("url", "namespace")},
        "places": objects_readable(actor=actor, object_type="namespace", most=PATHS),
        "chosen": request.POST.getlist("events"),
        "faults": fault_texts(faults),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if faults else HTTPStatus.OK
    return draw(request, "governance/integrations/new.html", context, status=status)


def _page(request: HttpRequest, actor: Actor, webhook_id: UUID, more: dict[str, Any] | None = None) -> HttpResponseBase:
    take = Newest(size=ROWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    context = {
        "webhook": webhook_get(actor=actor, webhook_id=webhook_id),
        "deliveries": deliveries_list(actor=actor, webhook_id=webhook_id, pages=take),
        "older": take.older,
        **(more or {}),
    }
    return draw(request, "governance/integrations/webhook.html", context)
