"""Pages of role templates and their application."""

from typing import TYPE_CHECKING
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

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
from governance.errors import NotFound
from governance.vocabulary import GranteeKind, RoleName, Scope
from governance.web.access_words import describe_holders
from governance.web.keys import SCOPES
from governance.web.members import ROLES
from governance.web.page_forms import LinesInput, PageForm, values_of
from governance.web.pages import draw, form_page, post_page, see_other
from governance.web.pagination import NewestOf, uuid_or_none

if TYPE_CHECKING:
    from governance.models import RoleTemplate

ROLE_TEMPLATES = 50  # of one page


class TemplateForm(PageForm):
    """A role template."""

    conflict_field = "name"

    name = forms.CharField(label=_("Name"), max_length=LONGEST_NAME)
    role = forms.TypedChoiceField(
        label=_("Role of a member"),
        required=False,
        choices=[("", _("as it is")), *(choice for choice in ROLES.items() if choice[0] is not RoleName.OWNER)],
        coerce=RoleName,
        empty_value=None,
    )
    namespaces = forms.CharField(
        label=_("Namespaces, one a line"), required=False, widget=LinesInput(attrs={"rows": 3})
    )
    purpose = forms.CharField(label=_("Purpose"), required=False, max_length=200)
    scopes = forms.TypedMultipleChoiceField(
        label=_("Scopes of an API key"),
        required=False,
        choices=SCOPES,
        coerce=Scope,
        widget=forms.CheckboxSelectMultiple(),
    )

    def draft(self, row: "RoleTemplate | None" = None) -> TemplateDraft:
        """Return the draft, with the stored attributes of personas, which the form lacks."""
        values = self.cleaned_data
        values |= {"scopes": tuple(values["scopes"]), "namespaces": tuple(values["namespaces"].splitlines())}
        return TemplateDraft(**values, persona_attributes=row.persona_attributes if row else {})


class ApplyForm(PageForm):
    """To whom a role template is applied: a kind and an id."""

    conflict_field = "holder"
    field_names = {"kind": "holder"}

    holder = forms.CharField(
        label=_("To"),
        help_text=_("Everybody who may use a shared assistant gets what you grant to it."),
        widget=forms.Select(),
    )

    def apply(self, actor: Actor, template_id: UUID) -> None:
        """Apply the template. Raises Forbidden; Invalid; Conflict; NotFound, also for a text that names nobody."""
        kind, _separator, holder = self.cleaned_data["holder"].partition(":")
        holder_id = uuid_or_none(holder)
        if kind not in set(GranteeKind) or holder_id is None:
            raise NotFound
        template_apply(actor=actor, template_id=template_id, kind=GranteeKind(kind), holder_id=holder_id)


@form_page
def role_templates(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List role templates; POST creates one."""
    form = TemplateForm(values_of(request))
    if form.is_done_by(lambda: template_create(actor=actor, draft=form.draft())):
        return see_other(reverse("role_templates"))
    take = NewestOf(ROLE_TEMPLATES, request.GET.get("before", ""))
    with acting(actor):
        context = {"role_templates": templates_list(actor=actor, pages=take), "older": take.older, "form": form}
        return draw(request, "governance/role_templates/list.html", context, status=form.status)


@form_page
def role_template(request: HttpRequest, actor: Actor, template_id: UUID) -> HttpResponseBase:
    """Show one role template; POST changes it."""
    form = TemplateForm(values_of(request))

    def change() -> None:
        with acting(actor):
            row = template_ask(actor=actor, template_id=template_id)
            template_update(actor=actor, template_id=template_id, draft=form.draft(row))

    if form.is_done_by(change):
        return see_other(reverse("role_templates"))
    return _draw_template(request, actor, template_id, form, ApplyForm())


@post_page
def role_template_apply(request: HttpRequest, actor: Actor, template_id: UUID) -> HttpResponseBase:
    template_ask(actor=actor, template_id=template_id)
    form = ApplyForm(request.POST)
    if form.is_done_by(lambda: form.apply(actor, template_id)):
        return see_other(f"{reverse('role_template', args=[template_id])}?applied=1")
    return _draw_template(request, actor, template_id, TemplateForm(), form)


@post_page
def role_template_remove(request: HttpRequest, actor: Actor, template_id: UUID) -> HttpResponseBase:
    template_remove(actor=actor, template_id=template_id)
    return see_other(reverse("role_templates"))


def _draw_template(
    request: HttpRequest, actor: Actor, template_id: UUID, form: TemplateForm, apply_form: ApplyForm
) -> HttpResponseBase:
    with acting(actor):
        row = template_get(actor=actor, template_id=template_id)
        form.initial = vars(draft_of(row)) | {"namespaces": "\n".join(row.namespaces)}
        holders = describe_holders(applicable(actor=actor))
        apply_form.fields["holder"].widget.choices = [(value, f"{kind}: {name}") for value, kind, name in holders]
        context = {
            "role_template": row,
            "applied": "applied" in request.GET,
            "form": form,
            "apply_form": apply_form,
        }
        status = max(form.status, apply_form.status)
        return draw(request, "governance/role_templates/role_template.html", context, status=status)
