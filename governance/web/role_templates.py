"""Pages of role templates and their application."""

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.access.role_templates.selectors import applicable, template_get, templates_list
from governance.access.role_templates.services import (
    LONGEST_NAME,
    TemplateDraft,
    draft_of,
    template_apply,
    template_ask,
    template_create,
    template_remove,
    template_update,
)
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, DomainError, FieldError, Invalid, NotFound
from governance.vocabulary import GranteeKind, RoleName, Scope
from governance.web.access_words import describe_holders
from governance.web.pages import draw, form_page, post_page, see_other
from governance.web.pagination import NewestOf

if TYPE_CHECKING:
    from governance.models import RoleTemplate

ROLE_TEMPLATES = 50  # of one page
ROLES = [role for role in RoleName if role is not RoleName.OWNER]


@form_page
def role_templates(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List role templates; POST creates one."""
    if request.method != "POST":
        return _draw_list(request, actor)
    try:
        template_create(actor=actor, draft=_draft(request.POST))
    except (Invalid, Conflict) as failure:
        return _draw_list(request, actor, fault=_fault_text(failure))
    return see_other(reverse("role_templates"))


@form_page
def role_template(request: HttpRequest, actor: Actor, template_id: UUID) -> HttpResponseBase:
    """Show one role template; POST changes it."""
    if request.method != "POST":
        return _draw_template(request, actor, template_id)
    try:
        with acting(actor):
            row = template_ask(actor=actor, template_id=template_id)
            template_update(actor=actor, template_id=template_id, draft=_keep_attributes(row, _draft(request.POST)))
    except (Invalid, Conflict) as failure:
        return _draw_template(request, actor, template_id, fault=_fault_text(failure))
    return see_other(reverse("role_templates"))


@post_page
def role_template_apply(request: HttpRequest, actor: Actor, template_id: UUID) -> HttpResponseBase:
    template_ask(actor=actor, template_id=template_id)
    kind, _separator, holder = request.POST.get("holder", "").partition(":")
    try:
        if kind not in set(GranteeKind):
            raise Invalid(errors=[FieldError("holder", kind)])
        template_apply(actor=actor, template_id=template_id, kind=GranteeKind(kind), holder_id=_id(holder))
    except (Invalid, Conflict) as failure:
        return _draw_template(request, actor, template_id, fault=_fault_text(failure))
    return see_other(f"{reverse('role_template', args=[template_id])}?applied=1")


@post_page
def role_template_remove(request: HttpRequest, actor: Actor, template_id: UUID) -> HttpResponseBase:
    template_remove(actor=actor, template_id=template_id)
    return see_other(reverse("role_templates"))


def _draw_list(request: HttpRequest, actor: Actor, *, fault: str = "") -> HttpResponseBase:
    take = NewestOf(ROLE_TEMPLATES, request.GET.get("before", ""))
    with acting(actor):
        found = templates_list(actor=actor, pages=take)
        context = {"role_templates": found, "older": take.older, **_form(_read_form(request.POST), fault)}
        return draw(request, "governance/role_templates/list.html", context, status=_status(fault))


def _draw_template(request: HttpRequest, actor: Actor, template_id: UUID, *, fault: str = "") -> HttpResponseBase:
    with acting(actor):
        row = template_get(actor=actor, template_id=template_id)
        draft = _read_form(request.POST) if "name" in request.POST else draft_of(row)
        context = {
            "role_template": row,
            "holders": describe_holders(applicable(actor=actor)),
            "applied": "applied" in request.GET,
            **_form(draft, fault),
        }
        return draw(request, "governance/role_templates/role_template.html", context, status=_status(fault))


def _form(draft: TemplateDraft, fault: str) -> dict[str, Any]:
    return {"draft": draft, "fault": fault, "roles": ROLES, "scopes": list(Scope), "longest": LONGEST_NAME}


def _draft(form: QueryDict) -> TemplateDraft:
    """Return the role template in the form. Raises Invalid."""
    if form.get("role", "") not in {"", *ROLES} or not set(form.getlist("scopes")) <= set(Scope):
        raise Invalid(errors=[FieldError("role", "?")])
    return _read_form(form)


def _read_form(form: QueryDict) -> TemplateDraft:
    """Return the role template in the form without checks, to be shown again with errors."""
    role = form.get("role", "")
    return TemplateDraft(
        name=form.get("name", "").strip(),
        role=RoleName(role) if role in set(ROLES) else None,
        namespaces=tuple(form.get("namespaces", "").split()),
        purpose=form.get("purpose", "").strip(),
        scopes=tuple(Scope(scope) for scope in form.getlist("scopes") if scope in set(Scope)),
    )


def _keep_attributes(row: "RoleTemplate", draft: TemplateDraft) -> TemplateDraft:
    """Return the draft with the stored attributes of personas, which the form lacks."""
    return TemplateDraft(**{**vars(draft), "persona_attributes": row.persona_attributes})


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound from error


def _status(fault: str) -> int:
    return HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK


def _fault_text(failure: DomainError) -> str:
    return "; ".join(f"{fault.field}: {fault.message}" for fault in failure.errors) or failure.detail
