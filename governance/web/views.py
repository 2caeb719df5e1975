"""Signing in by a one-time link, and out again."""

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.encoding import iri_to_uri
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from governance.actor import Actor, CallContext
from governance.errors import NotFound
from governance.policies.purposes import purposes_known
from governance.tenants.services import member_sign_out, sign_in_link_use
from governance.vocabulary import Channel
from governance.web.pages import answered, draw, page, see_other
from governance.web.sessions import PURPOSE, actor_of_session, client_address, request_id, sign_in

FIRST_PAGE = "chat"  # the name of the product's first page
NEXT_COOKIE = "after_sign_in"  # where to go once the link, which knows of no page, has been opened
NEXT_SECONDS = 3600
LONGEST_NEXT = 500
LONGEST_PURPOSE = 200


@require_http_methods(["GET", "HEAD"])
@answered
def home(request: HttpRequest) -> HttpResponseBase:
    """The bare address leads to the work, or to the way in."""
    return see_other(reverse(FIRST_PAGE if _actor(request) else "sign_in"))


@require_http_methods(["GET", "HEAD"])
@answered
def sign_in_page(request: HttpRequest) -> HttpResponseBase:
    """Tells how to get a link. Remembers, in this browser, which page was wanted."""
    if _actor(request):
        return see_other(reverse(FIRST_PAGE))
    response = draw(request, "governance/sign_in.html", {"hours": settings.SIGN_IN_LINK_HOURS})
    wanted = request.GET.get("next", "")
    if _is_here(request, wanted):
        response.set_cookie(
            NEXT_COOKIE,
            iri_to_uri(wanted),  # a cookie is ASCII
            max_age=NEXT_SECONDS,
            path=reverse("sign_in"),
            httponly=True,
            secure=request.is_secure(),
            samesite="Lax",
        )
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@answered
def sign_in_link(request: HttpRequest, token: str) -> HttpResponseBase:
    """The page behind a link. Only its button spends the link: mail scanners and previews open addresses too."""
    response = _spend(request, token) if request.method == "POST" else draw(request, "governance/sign_in_link.html")
    # Never the address, which is a secret. Not `no-referrer`: browsers then send `Origin: null`, which CSRF refuses.
    response["Referrer-Policy"] = "strict-origin"
    return response


@require_POST
@page
def sign_out(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    member_sign_out(actor=actor)
    request.session.flush()
    return see_other(reverse("sign_in"))


@require_http_methods(["GET", "HEAD", "POST"])
@page
def purpose(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """What this browser reads for from now on: memory that is bound to purposes stays closed to any other."""
    if request.method == "POST":
        said = request.POST.get("purpose", "").strip()
        if len(said) > LONGEST_PURPOSE or not (said.isprintable() or not said):
            context = {"purpose": said[:LONGEST_PURPOSE], "known": purposes_known(actor), "longest": LONGEST_PURPOSE}
            return draw(request, "governance/purpose.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        request.session[PURPOSE] = said
        return see_other(reverse("purpose"))
    known = {"purpose": actor.context.purpose, "known": purposes_known(actor), "longest": LONGEST_PURPOSE}
    return draw(request, "governance/purpose.html", known)


def _spend(request: HttpRequest, token: str) -> HttpResponseBase:
    try:
        actor = sign_in_link_use(token=token, request_id=request_id(request), address=client_address(request))
    except NotFound:
        context = {"hours": settings.SIGN_IN_LINK_HOURS}
        return draw(request, "governance/sign_in_link_spent.html", context, status=HTTPStatus.NOT_FOUND)
    wanted = request.COOKIES.get(NEXT_COOKIE, "")
    sign_in(request, actor)
    response = see_other(wanted if _is_here(request, wanted) else reverse(FIRST_PAGE))
    response.delete_cookie(NEXT_COOKIE, path=reverse("sign_in"), samesite="Lax")
    return response


def _actor(request: HttpRequest) -> Actor | None:
    return actor_of_session(request, CallContext(channel=Channel.WEB, address=client_address(request)))


def _is_here(request: HttpRequest, address: str) -> bool:
    """Whether `address` is a page of this very site."""
    return 0 < len(address) <= LONGEST_NEXT and url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
