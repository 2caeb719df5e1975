"""What every request gets: an id, and a strict content security policy."""

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from governance.ids import uuid7

Handler = Callable[[HttpRequest], HttpResponse]
ACCEPTABLE_ID = re.compile(r"(?!(?:cli|job)-)[A-Za-z0-9_.:-]{8,64}")  # those two are the product's own
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class RequestIdMiddleware:
    """`X-Request-ID`: the caller's when it is a sane one, else a new one; echoed, audited, and in every problem."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        offered = request.headers.get("X-Request-ID", "")
        request_id = offered if ACCEPTABLE_ID.fullmatch(offered) else str(uuid7())
        request.request_id = request_id  # type: ignore[attr-defined]
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response


class ContentSecurityPolicyMiddleware:
    """No inline script or style, nothing from elsewhere. Views may set a policy of their own (the API docs do)."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Content-Security-Policy", POLICY)
        return response
