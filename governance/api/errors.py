"""What answers when no view does: problems under /api/, pages elsewhere."""

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse

from governance.api.problems import problem_json
from governance.errors import DomainError, HostNotAllowed, Invalid, NotFound
from governance.web.pages import refusal


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, NotFound("There is nothing at this address."))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        return _answer(request, HostNotAllowed("Name the host of this address in MEMOS_ALLOWED_HOSTS."))
    return _answer(request, Invalid("The request cannot be read."))


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, DomainError("Something went wrong here; the log names this request's id."))


def _answer(request: HttpRequest, failure: DomainError) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem_json(failure, request)
    return refusal(request, failure)
