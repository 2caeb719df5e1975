"""RFC 9457: one place turns what went wrong into `application/problem+json`."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from governance.actor import Actor
from governance.audit.services import record_denial
from governance.errors import (
    Conflict,
    DomainError,
    FieldError,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

CONTENT_TYPE = "application/problem+json"
logger = logging.getLogger(__name__)


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler. Unknown exceptions are None: Django logs them and `server_error` answers."""
    request = context["request"]
    failure = as_domain_error(error)
    if failure is None:
        return None
    if isinstance(failure, Forbidden) and isinstance(request.user, Actor):
        failure = _told(failure, request.user, request.path)
    response = Response(
        problem(failure, request._request), status=failure.status, headers=headers(failure), content_type=CONTENT_TYPE
    )
    if isinstance(failure, MethodNotAllowed):
        response["Allow"] = ", ".join(context["view"].allowed_methods)
    return response


def problem(failure: DomainError, request: HttpRequest) -> dict[str, Any]:
    """The body of a problem: type, title, status, detail, code, request_id, and errors when fields are at fault."""
    body: dict[str, Any] = {
        "type": f"urn:memos:problem:{failure.code}",
        "title": failure.title,
        "status": failure.status,
        "detail": failure.detail,
        "code": failure.code,
        "request_id": getattr(request, "request_id", ""),
    }
    if failure.errors:
        body["errors"] = [{"field": fault.field, "message": fault.message} for fault in failure.errors]
    return body


def headers(failure: DomainError) -> dict[str, str]:
    if isinstance(failure, Unauthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if failure.retry_after is not None:
        return {"Retry-After": str(failure.retry_after)}
    if isinstance(failure, Unavailable):
        return {"Retry-After": "5"}
    return {}


def problem_json(failure: DomainError, request: HttpRequest) -> JsonResponse:
    """The same, outside DRF: unknown addresses and failures of the server itself."""
    return JsonResponse(
        problem(failure, request), status=failure.status, headers=headers(failure), content_type=CONTENT_TYPE
    )


def as_domain_error(error: Exception) -> DomainError | None:
    """What DRF, Django and the database raise, in the words of the contract."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, exceptions.ValidationError):
        return Invalid(errors=field_errors(error.detail))
    if isinstance(error, exceptions.ParseError):
        return Invalid("The body is not valid JSON.")
    if isinstance(error, exceptions.UnsupportedMediaType):
        return Invalid("Send application/json.")
    if isinstance(error, exceptions.NotAcceptable):
        return Invalid("This address answers application/json.")
    if isinstance(error, (exceptions.NotAuthenticated, exceptions.AuthenticationFailed)):
        return Unauthenticated()
    if isinstance(error, exceptions.MethodNotAllowed):
        return MethodNotAllowed()
    if isinstance(error, (Http404, exceptions.NotFound)):
        return NotFound()
    if isinstance(error, (PermissionDenied, exceptions.PermissionDenied)):
        return Forbidden("You may not do this.")
    if isinstance(error, RequestDataTooBig):
        return TooLarge("The body is too large.")
    return _database_error(error)


def _database_error(error: Exception) -> DomainError | None:
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("the database does not answer: %s", type(error).__name__)
        return Unavailable("The database does not answer.")
    if isinstance(error, DatabaseError) and getattr(error.__cause__, "sqlstate", "") in {"40001", "40P01", "23505"}:
        return Conflict("Another request changed the same rows at the same time; try again.")
    return None


def field_errors(detail: Any, path: str = "") -> Sequence[FieldError]:
    """DRF's nested error detail as a flat list with dotted paths (`items.3.content`)."""
    if isinstance(detail, Mapping):
        return [fault for name, part in detail.items() for fault in field_errors(part, _join(path, str(name)))]
    if isinstance(detail, list) and any(isinstance(part, (Mapping, list)) for part in detail):
        return [fault for index, part in enumerate(detail) for fault in field_errors(part, _join(path, str(index)))]
    if isinstance(detail, list):
        return [FieldError(path or "body", str(part)) for part in detail]
    return [FieldError(path or "body", str(detail))]


def _join(path: str, name: str) -> str:
    name = "" if name == "non_field_errors" else name
    return ".".join(part for part in (path, name) if part)


def _told(denial: Forbidden, actor: Actor, path: str) -> DomainError:
    """Denials are recorded too; if that fails, the answer is that nothing can be answered now."""
    try:
        record_denial(actor=actor, denial=denial, path=path)
    except Unavailable as failure:
        return failure
    except OperationalError:
        return Unavailable("The database does not answer.")
    return denial
