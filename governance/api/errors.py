"""Error responses outside of views: problems under /api/, pages elsewhere."""

from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import REASON_BAD_ORIGIN
from django.urls import is_valid_path

from governance.api.problems import problem_json
from governance.errors import DomainError, HostNotAllowed, Invalid, NotFound
from governance.web.middleware import Handler
from governance.web.pages import draw, recognise, refusal

NOWHERE = "There is nothing at this address."


class BodyRefusalMiddleware:
    """Responds when the server refused a body before reading the rest of the request; the connection then ends."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        failure: DomainError | None = getattr(request, "body_refusal", None)
        if failure is None:
            return self.get_response(request)
        is_page = "text/html" in request.headers.get("Accept", "")
        response = _answer(request, failure) if is_page else problem_json(failure, request)
        response["Connection"] = "close"
        return response


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    recognise(request)
    return _answer(request, NotFound(_describe_unknown_address(request)))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        return _answer(request, HostNotAllowed("Name the host of this address in MEMOS_ALLOWED_HOSTS."))
    return _answer(request, Invalid("The request cannot be read."))


def answer_csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the error page for a form whose CSRF token is outdated or foreign.

    The page names the public address where the form can work nowhere else: its cookies need HTTPS, or the browser
    names a site that is not this one.
    """
    recognise(request)
    is_elsewhere = reason == REASON_BAD_ORIGIN % request.META.get("HTTP_ORIGIN")
    is_plain = settings.CSRF_COOKIE_SECURE and not request.is_secure()
    context = {"address": settings.PUBLIC_URL if is_elsewhere or is_plain else ""}
    return draw(request, "403_csrf.html", context, status=HTTPStatus.FORBIDDEN)


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, DomainError("Something went wrong here; the log names this request's id."))


def _describe_unknown_address(request: HttpRequest) -> str:
    """Return the detail of a 404, with the address that has a final slash: a redirect would turn a POST into a GET."""
    whole = f"{request.path_info}/"
    if request.path_info.endswith("/") or not is_valid_path(whole, getattr(request, "urlconf", None)):
        return NOWHERE
    return f"{NOWHERE} Send this to {request.path}/ instead."


def _answer(request: HttpRequest, failure: DomainError) -> HttpResponse:
    if request.path_info.startswith("/api/"):
        return problem_json(failure, request)
    return refusal(request, failure)
