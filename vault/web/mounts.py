"""Mounts of a namespace on its page: for a persona or a task."""

from http import HTTPStatus
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, Invalid
from governance.web.pages import draw, post_page, see_other
from governance.web.pagination import uuid_or_none
from vault.namespaces.mounts import MountDraft, mount_create, mount_remove
from vault.namespaces.selectors import namespace_get


@post_page
def mount_add(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """Mount the namespace for the chosen persona or the named task."""
    form = request.POST
    try:
        with acting(actor):
            path = namespace_get(actor=actor, namespace_id=namespace_id).view.namespace.path
            draft = MountDraft(
                namespace=path,
                persona_id=uuid_or_none(form.get("persona", "")),
                task_id=form.get("task_id", "").strip(),
                writable="writable" in form,
            )
            mount_create(actor=actor, draft=draft)
    except (Invalid, Conflict) as failure:
        fault = _("It is mounted there already.") if isinstance(failure, Conflict) else _("Choose a persona or a task.")
        context = {"fault": fault, "namespace_id": namespace_id}
        return draw(request, "vault/namespaces/mount_fault.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("namespace", args=[namespace_id]))


@post_page
def mount_drop(request: HttpRequest, actor: Actor, namespace_id: UUID, mount_id: UUID) -> HttpResponseBase:
    mount_remove(actor=actor, mount_id=mount_id)
    return see_other(reverse("namespace", args=[namespace_id]))
