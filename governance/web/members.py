"""Pages of members and invitations, for members who manage them."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.actor import Actor
from governance.errors import Conflict, FieldError, Invalid
from governance.members.selectors import invitations_list, member_get, member_view, members_list
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
from governance.web.pages import draw, form_page, post_page, see_other, wants_part

MOST = 200  # of one page; more are in the API


@form_page
def members(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the members; POST invites an address."""
    if request.method != "POST":
        return _page(request, actor)
    email, role = request.POST.get("email", "")[:254], request.POST.get("role", "")
    try:
        made = invitation_create(actor=actor, email=email, role=_role(role))
    except (Invalid, Conflict) as failure:
        context = {"fault": failure, "email": email, "chosen": role}
        return _page(request, actor, context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return _page(request, actor, _describe_invitation(made))


@post_page
def member_role(request: HttpRequest, actor: Actor, member_id: UUID) -> HttpResponseBase:
    member_role_change(actor=actor, member_id=member_id, role=_role(request.POST.get("role", "")))
    return _answer_change(request, actor)


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
    invitation_revoke(actor=actor, invitation_id=invitation_id)
    return _answer_change(request, actor)


def _answer_change(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    if not wants_part(request):
        return see_other(reverse("members"))
    return draw(request, "governance/settings/_members.html", _lists(actor))


def _page(
    request: HttpRequest, actor: Actor, more: dict[str, Any] | None = None, *, status: int = HTTPStatus.OK
) -> HttpResponseBase:
    return draw(request, "governance/settings/members.html", {**_lists(actor), **(more or {})}, status=status)


def _lists(actor: Actor) -> dict[str, Any]:
    return {
        "members": members_list(actor=actor, pages=First(MOST)),
        "invitations": invitations_list(actor=actor, pages=First(MOST)),
        "roles": list(RoleName),
        "own_id": actor.member_id,
    }


def _describe_invitation(made: NewInvitation) -> dict[str, Any]:
    """Return what the page says of a new invitation; without a mail server the inviter hands its link over."""
    if settings.EMAIL_HOST:
        return {"invited": made.view.email, "link_hours": settings.INVITATION_HOURS}
    return {"link": made.url, "link_for": made.view.email, "link_hours": settings.INVITATION_HOURS}


def _role(text: str) -> RoleName:
    if text not in set(RoleName):
        raise Invalid(errors=[FieldError("role", f"one of {', '.join(RoleName)}")])
    return RoleName(text)
