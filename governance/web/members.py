"""Pages of members and invitations, for members who manage them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.actor import Actor
from governance.members.selectors import (
    MemberView,
    invitation_get,
    invitations_list,
    member_get,
    member_view,
    members_list,
)
from governance.members.services import (
    NewInvitation,
    invitation_create,
    invitation_revoke,
    member_remove,
    member_role_change,
)
from governance.pages import First
from governance.tenants.services import sign_in_link_create
from governance.vocabulary import RoleName
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, post_page, see_other
from governance.web.undo import find_deed, put_message

MOST = 200  # of one page; more are in the API
ROLES: dict[RoleName, Promise] = {
    RoleName.OWNER: gettext_lazy("Owner"),
    RoleName.ADMIN: gettext_lazy("Admin"),
    RoleName.EDITOR: gettext_lazy("Editor"),
    RoleName.VIEWER: gettext_lazy("Viewer"),
    RoleName.AUDITOR: gettext_lazy("Auditor"),
}


class RoleForm(PageForm):
    """The role of a member."""

    conflict_field = "role"

    role = forms.TypedChoiceField(label=gettext_lazy("Role"), choices=list(ROLES.items()), coerce=RoleName)

    def __init__(self, data: Mapping[str, Any] | None = None, *, member: MemberView) -> None:
        super().__init__(data, auto_id=f"{member.id}_%s", initial={"role": member.role})
        self.fields["role"].label = f"{_('Role')}: {member.email}"
        self.fields["role"].widget.attrs["class"] = "form-select form-select-small"


class InvitationForm(PageForm):
    """An address to invite."""

    conflict_field = "email"

    email = forms.EmailField(label=gettext_lazy("E-mail address"), max_length=254)
    role = forms.TypedChoiceField(
        label=gettext_lazy("Role"), choices=list(ROLES.items()), coerce=RoleName, initial=RoleName.VIEWER
    )


@form_page
def members(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the members; POST invites an address."""
    deed = find_deed(request)
    form = InvitationForm(deed["fields"] if deed else values_of(request))
    made = form.made_by(lambda: invitation_create(actor=actor, **form.cleaned_data))
    return _page(request, actor, _describe_invitation(made) if made else {"form": form})


@post_page
def member_role(request: HttpRequest, actor: Actor, member_id: UUID) -> HttpResponseBase:
    """Change a role. Of the reader's own role, which cannot be given back, a question comes first."""
    deed = find_deed(request)
    before = member_view(member_get(actor=actor, member_id=member_id))
    form = RoleForm(deed["fields"] if deed else request.POST, member=before)
    is_own = member_id == actor.member_id
    if is_own and form.is_valid() and request.POST.get("confirmed") != "yes":
        role = form.cleaned_data["role"]
        context = {"member": before, "role": role, "role_words": ROLES[role]}
        return draw(request, "governance/settings/member_own_role.html", context)
    if not form.is_done_by(lambda: member_role_change(actor=actor, member_id=member_id, **form.cleaned_data)):
        return _page(request, actor, {"form": InvitationForm()}, {member_id: form})
    role = form.cleaned_data["role"]
    words = _("%(member)s has the role %(role)s now.") % {"member": before.email, "role": ROLES[role]}
    address = "" if is_own or role == before.role else request.path
    put_message(request, words, address=address, fields={"role": before.role})
    return see_other(reverse("members"))


@form_page
def member_end(request: HttpRequest, actor: Actor, member_id: UUID) -> HttpResponseBase:
    """GET asks for confirmation; POST removes the member."""
    if request.method != "POST":
        view = member_view(member_get(actor=actor, member_id=member_id))
        return draw(request, "governance/settings/member_remove.html", {"member": view})
    member_remove(actor=actor, member_id=member_id)
    return see_other(reverse("members"))


@post_page
def member_link(request: HttpRequest, actor: Actor, member_id: UUID) -> HttpResponseBase:
    """Show a new sign-in link, to be passed on if the installation sends no mail."""
    member = member_get(actor=actor, member_id=member_id)
    link = sign_in_link_create(actor=actor, member=member)
    context = {"link": link.url, "link_for": member.user.email, "link_hours": settings.SIGN_IN_LINK_HOURS}
    return _page(request, actor, context)


@post_page
def invitation_end(request: HttpRequest, actor: Actor, invitation_id: UUID) -> HttpResponseBase:
    """Revoke an invitation. Its undo invites the address again, by a new link."""
    row = invitation_get(actor=actor, invitation_id=invitation_id)
    invitation_revoke(actor=actor, invitation_id=invitation_id)
    words = _("The invitation of %(email)s was revoked.") % {"email": row.email}
    put_message(request, words, address=reverse("members"), fields={"email": row.email, "role": row.role})
    return see_other(reverse("members"))


def _page(
    request: HttpRequest, actor: Actor, more: dict[str, Any], refused: Mapping[UUID, RoleForm] | None = None
) -> HttpResponseBase:
    """Draw the members. refused: the form with errors of one of them."""
    refused = refused or {}
    found = members_list(actor=actor, pages=First(MOST))
    context = {
        "members": [(member, refused.get(member.id) or RoleForm(member=member)) for member in found],
        "invitations": invitations_list(actor=actor, pages=First(MOST)),
        "own_id": actor.member_id,
        "form": InvitationForm(),
        **more,
    }
    status = max(form.status for form in (context["form"], *refused.values()))
    return draw(request, "governance/settings/members.html", context, status=status)


def _describe_invitation(made: NewInvitation) -> dict[str, Any]:
    """Return what the page says of a new invitation; without a mail server the inviter hands its link over."""
    if settings.EMAIL_HOST:
        return {"invited": made.view.email, "link_hours": settings.INVITATION_HOURS}
    return {"link": made.url, "link_for": made.view.email, "link_hours": settings.INVITATION_HOURS}
