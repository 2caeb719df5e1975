"""A cookie with the page to return to after signing in, so that the steps of a sign-in need not pass it on."""

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.encoding import iri_to_uri
from django.utils.http import url_has_allowed_host_and_scheme

NEXT_SECONDS = 3600
LONGEST_NEXT = 3000  # a cookie has 4096 bytes; requests of applications to connect are the longest


def next_keep(request: HttpRequest, response: HttpResponseBase) -> None:
    """Store the page that `?next=` names, if it is on this site."""
    wanted = request.GET.get("next", "")
    if is_here(request, wanted):
        response.set_cookie(
            _cookie_name(),
            iri_to_uri(wanted),  # a cookie is ASCII
            max_age=NEXT_SECONDS,
            path=reverse("sign_in"),
            httponly=True,
            secure=request.is_secure(),
            samesite="Lax",
        )


def next_page(request: HttpRequest) -> str:
    wanted = request.COOKIES.get(_cookie_name(), "")
    return wanted if is_here(request, wanted) else ""


def next_forget(response: HttpResponseBase) -> None:
    response.delete_cookie(_cookie_name(), path=reverse("sign_in"), samesite="Lax")


def is_here(request: HttpRequest, address: str) -> bool:
    """Return whether `address` is a page of this site."""
    return 0 < len(address) <= LONGEST_NEXT and url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )


def _cookie_name() -> str:
    return f"memos_next_{settings.INSTALLATION_TAG}"
