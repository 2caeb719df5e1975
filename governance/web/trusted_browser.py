"""A cookie by which a browser proves that its person has signed in there before (OWASP: device cookies).

Its sign-in attempts are counted separately, so that guesses from elsewhere cannot lock the person out.
"""

from secrets import token_urlsafe
from uuid import UUID

from django.conf import settings
from django.core.signing import BadSignature, dumps, loads
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.accounts.rules import FirstFactor, TrustedBrowser

SALT = "memos trusted browser"
SECONDS = 180 * 24 * 3600


def find_trusted_browser(request: HttpRequest) -> TrustedBrowser | None:
    try:
        user_id, nonce = loads(request.COOKIES.get(_cookie_name(), ""), salt=SALT, max_age=SECONDS)
    except BadSignature:
        return None
    return TrustedBrowser(user_id=UUID(user_id), nonce=nonce)


def browser_trust(request: HttpRequest, response: HttpResponseBase, first: FirstFactor) -> None:
    """Set the cookie, unless the sign-in is bound to one tenant, whose admin may have signed in instead."""
    if first.bound_to is not None:
        return
    before = find_trusted_browser(request)
    nonce = before.nonce if before and before.user_id == first.user_id else token_urlsafe(16)
    response.set_cookie(
        _cookie_name(),
        dumps([str(first.user_id), nonce], salt=SALT),
        max_age=SECONDS,
        path=reverse("sign_in"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _cookie_name() -> str:
    return f"memos_browser_{settings.INSTALLATION_TAG}"
