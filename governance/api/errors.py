"""Responses without a view: problems under /api/, pages elsewhere."""

from http import HTTPStatus

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.urls import is_valid_path

from governance.api.problems import problem_json
from governance.errors import DomainError, HostNotAllowed, Invalid, NotFound
from governance.web.middleware import Handler
from governance.web.pages import draw, recognise, refusal

NOWHERE = "There is nothing at this address."


class BodyRefusalMiddleware:
    """Answers where the server refused the body before reading the rest of the request; the connection then ends."""

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
    return _answer(request, NotFound(_nowhere(request)))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        return _answer(request, HostNotAllowed("Name the host of this address in MEMOS_ALLOWED_HOSTS."))
    return _answer(request, Invalid("The request cannot be read."))


def answer_csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form of ours that is too old, or not ours: the one refusal with a page of its own."""
    recognise(request)
    return draw(request, "403_csrf.html", status=HTTPStatus.FORBIDDEN)


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, DomainError("Something went wrong here; the log names this request's id."))


def _nowhere(request: HttpRequest) -> str:
    """A client that follows redirects would turn a POST into a GET; so the address is named, and nothing is lost."""
    whole = f"{request.path_info}/"
    if request.path_info.endswith("/") or not is_valid_path(whole, getattr(request, "urlconf", None)):
        return NOWHERE
    return f"{NOWHERE} Send this to {request.path}/ instead."


def _answer(request: HttpRequest, failure: DomainError) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem_json(failure, request)
    return refusal(request, failure)
