"""Coming in by a mailed link: a new password, or an invitation."""

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
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
from governance.errors import Invalid, NotFound
from governance.members.services import Invited, invitation_accept, invitation_by_token
from governance.web.pages import answered, draw, see_other
from governance.web.sessions import client_address, request_id
from governance.web.views import proceed

SPENT = "governance/link_spent.html"


@require_http_methods(["GET", "HEAD", "POST"])
@answered
def forgotten(request: HttpRequest) -> HttpResponseBase:
    """Ask for a link to set a new password. The answer is the same for every address."""
    if request.method != "POST":
        return draw(request, "governance/forgotten.html")
    password_reset_ask(
        email=request.POST.get("email", "")[:254], request_id=request_id(request), address=client_address(request)
    )
    return draw(request, "governance/forgotten.html", {"sent": True, "hours": settings.PASSWORD_RESET_HOURS})


@require_http_methods(["GET", "HEAD", "POST"])
@answered
def reset(request: HttpRequest, token: str) -> HttpResponseBase:
    """The page behind a mailed link: a new password, then the ordinary way in."""
    try:
        response = _reset(request, token)
    except NotFound:
        response = draw(request, SPENT, status=HTTPStatus.NOT_FOUND)
    response["Referrer-Policy"] = "strict-origin"
    return response


def _reset(request: HttpRequest, token: str) -> HttpResponseBase:
    reset_find(token)
    if request.method != "POST":
        return draw(request, "governance/reset.html")
    try:
        password_reset_use(
            token=token,
            new=request.POST.get("new", ""),
            request_id=request_id(request),
            address=client_address(request),
        )
    except Invalid as failure:
        context = {"faults": [fault.message for fault in failure.errors]}
        return draw(request, "governance/reset.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("sign_in"))


@require_http_methods(["GET", "HEAD", "POST"])
@answered
def invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    """The page behind an invitation. Its button makes a member, and with a first password an account."""
    try:
        response = _invitation(request, token)
    except NotFound:
        response = draw(request, SPENT, status=HTTPStatus.NOT_FOUND)
    response["Referrer-Policy"] = "strict-origin"
    return response


def _invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    invited = invitation_by_token(token=token)
    context = {"invited": invited, "needs_password": not email_has_password(invited.email)}
    if request.method != "POST":
        return draw(request, "governance/invitation.html", context)
    new = request.POST.get("new", "")
    if context["needs_password"]:
        try:
            password_check(new)
        except Invalid as failure:
            context["faults"] = [fault.message for fault in failure.errors]
            return draw(request, "governance/invitation.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return proceed(request, _accept(request, token, invited, new))


def _accept(request: HttpRequest, token: str, invited: Invited, new: str) -> FirstFactor:
    """The member, and what the link has shown: by mail the address itself, else just what this organisation says."""
    actor = invitation_accept(token=token, request_id=request_id(request), address=client_address(request))
    user_id = member_user(actor=actor)
    bound_to = None if invited.proves_address else invited.tenant_id
    if new:
        password_begin(user_id=user_id, new=new, bound_to=bound_to)
    return FirstFactor(user_id=user_id, bound_to=bound_to, way=Way.INVITATION)
