"""Pages behind mailed links: a new password, and an invitation."""

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from governance.accounts.passwords import (
    password_begin,
    password_check,
    password_reset_ask,
    password_reset_use,
    reset_find,
)
from governance.accounts.rules import FirstFactor, Way
from governance.accounts.selectors import email_has_password, member_user
from governance.errors import NotFound
from governance.members.services import Invited, invitation_accept, invitation_by_token
from governance.web.account_forms import AddressForm, NewPasswordForm
from governance.web.page_forms import values_of
from governance.web.pages import answer_errors, draw
from governance.web.sessions import client_address, request_id
from governance.web.views import proceed

SPENT = "governance/link_spent.html"


@require_http_methods(["GET", "HEAD", "POST"])
@answer_errors
def password_forgotten(request: HttpRequest) -> HttpResponseBase:
    """Ask for a link to set a new password. The answer is the same for every address."""
    form = AddressForm(values_of(request))
    if not form.is_valid():
        return draw(request, "governance/forgotten.html", {"form": form}, status=form.status)
    password_reset_ask(**form.cleaned_data, request_id=request_id(request), address=client_address(request))
    return draw(request, "governance/forgotten.html", {"sent": True, "hours": settings.PASSWORD_RESET_HOURS})


@require_http_methods(["GET", "HEAD", "POST"])
@answer_errors
def reset(request: HttpRequest, token: str) -> HttpResponseBase:
    """Set a new password by a mailed link, after the second factor, if the person has one."""
    try:
        response = _reset(request, token)
    except NotFound:
        response = draw(request, SPENT, status=HTTPStatus.NOT_FOUND)
    response["Referrer-Policy"] = "strict-origin"
    return response


def _reset(request: HttpRequest, token: str) -> HttpResponseBase:
    reset_find(token)
    form = NewPasswordForm(values_of(request))
    first = form.made_by(
        lambda: password_reset_use(
            token=token,
            new=form.cleaned_data["new"],
            request_id=request_id(request),
            address=client_address(request),
        )
    )
    if first is None:
        return draw(request, "governance/reset.html", {"form": form}, status=form.status)
    return proceed(request, first)


@require_http_methods(["GET", "HEAD", "POST"])
@answer_errors
def invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show an invitation. At its mailed link, a button makes the person a member; a new person sets a password first.

    The inviter's link reveals nothing about the person, since the inviter may open it. It only shows the invitation;
    without a mail server it makes the person a member, and sets up nothing.
    """
    try:
        response = _invitation(request, token)
    except NotFound:
        response = draw(request, SPENT, status=HTTPStatus.NOT_FOUND)
    response["Referrer-Policy"] = "strict-origin"
    return response


def _invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    invited = invitation_by_token(token=token)
    needs_password = invited.proves_address and not email_has_password(invited.email)
    form = NewPasswordForm(values_of(request))
    if request.method != "POST" or (
        needs_password and not form.is_done_by(lambda: password_check(form.cleaned_data["new"]))
    ):
        context = {"invited": invited, "needs_password": needs_password, "form": form}
        return draw(request, "governance/invitation.html", context, status=form.status)
    return proceed(request, _accept(request, invited, token, form.cleaned_data["new"] if needs_password else ""))


def _accept(request: HttpRequest, invited: Invited, token: str, new: str) -> FirstFactor:
    actor = invitation_accept(token=token, request_id=request_id(request), address=client_address(request))
    user_id = member_user(actor=actor)
    if not invited.proves_address:
        return FirstFactor(user_id=user_id, bound_to=actor.tenant_id, way=Way.INVITATION)
    if new:
        password_begin(user_id=user_id, new=new)
    return FirstFactor(user_id=user_id, bound_to=None, way=Way.INVITATION)
