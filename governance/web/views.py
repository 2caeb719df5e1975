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
from governance.tenants.selectors import sign_in_link_works
from governance.tenants.services import member_sign_out, sign_in_link_use
from governance.vocabulary import Channel
from governance.web.pages import answered, draw, page, see_other
from governance.web.roles import first_page, rights_of, role_label
from governance.web.sessions import actor_of_session, client_address, request_id, sign_in

NEXT_COOKIE = "after_sign_in"  # where to go once the link, which knows of no page, has been opened
NEXT_SECONDS = 3600
LONGEST_NEXT = 500


@require_http_methods(["GET", "HEAD"])
@answered
def home(request: HttpRequest) -> HttpResponseBase:
    """The bare address leads to the work, or to the way in."""
    actor = _actor(request)
    return see_other(first_page(actor) if actor else reverse("sign_in"))


@require_http_methods(["GET", "HEAD"])
@page
def you(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Who is signed in and what their role may do: the first page of those for whom the product has no other."""
    return draw(request, "governance/you.html", {"role": role_label(actor.role), "rights": rights_of(actor)})


@require_http_methods(["GET", "HEAD"])
@answered
def sign_in_page(request: HttpRequest) -> HttpResponseBase:
    """Tells how to get a link. Remembers, in this browser, which page was wanted."""
    if actor := _actor(request):
        return see_other(first_page(actor))
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
    if request.method == "POST":
        response = _spend(request, token)
    elif sign_in_link_works(token=token):
        response = draw(request, "governance/sign_in_link.html")
    else:
        response = _spent(request)
    # Never the address, which is a secret. Not `no-referrer`: browsers then send `Origin: null`, which CSRF refuses.
    response["Referrer-Policy"] = "strict-origin"
    return response


@require_POST
@page
def sign_out(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    member_sign_out(actor=actor)
    request.session.flush()
    return see_other(reverse("sign_in"))


def _spend(request: HttpRequest, token: str) -> HttpResponseBase:
    try:
        actor = sign_in_link_use(token=token, request_id=request_id(request), address=client_address(request))
    except NotFound:
        return _spent(request)
    wanted = request.COOKIES.get(NEXT_COOKIE, "")
    sign_in(request, actor)
    response = see_other(wanted if _is_here(request, wanted) else first_page(actor))
    response.delete_cookie(NEXT_COOKIE, path=reverse("sign_in"), samesite="Lax")
    return response


def _spent(request: HttpRequest) -> HttpResponseBase:
    context = {"hours": settings.SIGN_IN_LINK_HOURS}
    return draw(request, "governance/sign_in_link_spent.html", context, status=HTTPStatus.NOT_FOUND)


def _actor(request: HttpRequest) -> Actor | None:
    return actor_of_session(request, CallContext(channel=Channel.WEB, address=client_address(request)))


def _is_here(request: HttpRequest, address: str) -> bool:
    """Whether `address` is a page of this very site."""
    return 0 < len(address) <= LONGEST_NEXT and url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
