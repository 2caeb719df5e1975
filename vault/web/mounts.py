"""Mounts of a namespace on its page: for a persona or a task."""

from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.actor import Actor
from governance.database import acting
from governance.web.pages import post_page, see_other
from vault.namespaces.mounts import MountDraft, mount_create, mount_remove
from vault.namespaces.selectors import namespace_get
from vault.web.namespaces import MountForm, draw_namespace


@post_page
def mount_add(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """Mount the namespace for the chosen persona or the named task."""
    form = MountForm(request.POST)

    def mount() -> None:
        with acting(actor):
            path = namespace_get(actor=actor, namespace_id=namespace_id).view.namespace.path
            values = dict(form.cleaned_data)
            mount_create(actor=actor, draft=MountDraft(namespace=path, persona_id=values.pop("persona"), **values))

    if form.is_done_by(mount):
        return see_other(reverse("namespace", args=[namespace_id]))
    return draw_namespace(request, actor, namespace_id, mount_form=form)


@post_page
def mount_drop(request: HttpRequest, actor: Actor, namespace_id: UUID, mount_id: UUID) -> HttpResponseBase:
    mount_remove(actor=actor, mount_id=mount_id)
    return see_other(reverse("namespace", args=[namespace_id]))
