"""Error responses (RFC 9457): turns any exception into `application/problem+json`."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import Error as DatabaseFailure
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from governance.actor import Actor
from governance.denials import record_and_return_denial
from governance.errors import (
    DomainError,
    FieldError,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnsupportedMediaType,
)
from governance.failures import database_failure

CONTENT_TYPE = "application/problem+json"


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the response for an exception, as DRF's exception handler.

    Returns None for unknown exceptions: Django logs them and `server_error` answers.
    """
    request = context["request"]
    failure = as_domain_error(error)
    if failure is None:
        return None
    actor = _find_actor(request)
    if isinstance(failure, Forbidden) and actor is not None:
        failure = record_and_return_denial(actor=actor, denial=failure, path=request.path)
    response = Response(
        problem(failure, request), status=failure.status, headers=headers(failure), content_type=CONTENT_TYPE
    )
    if isinstance(failure, MethodNotAllowed):
        response["Allow"] = ", ".join(context["view"].allowed_methods)
    return response


def _find_actor(request: Request) -> Actor | None:
    """Return the actor, or None before authentication; `request.user` would authenticate again."""
    actor: Actor | None = request.caller.actor  # type: ignore[attr-defined]
    return actor


def problem(failure: DomainError, request: HttpRequest) -> dict[str, Any]:
    """Return the body of a problem: type, title, status, detail, code, request_id, and errors if fields are invalid."""
    body: dict[str, Any] = {
        "type": f"urn:memos:problem:{failure.code}",
        "title": failure.title,
        "status": failure.status,
        "detail": _sendable(_detail(failure)),
        "code": failure.code,
        "request_id": getattr(request, "request_id", ""),
    }
    if failure.errors:
        body["errors"] = [
            {"field": _sendable(fault.field), "message": _sendable(fault.message)} for fault in failure.errors
        ]
    return body


def _detail(failure: DomainError) -> str:
    """Return the sentence of a failure; of one that only names fields, the cause at the first field."""
    if not failure.errors or failure.detail != failure.title:
        return failure.detail
    first = failure.errors[0]
    others = f" ({len(failure.errors) - 1} more in `errors`)" if len(failure.errors) > 1 else ""
    return f"{first.field}: {first.message}{others}"


def _sendable(text: str) -> str:
    """Return the caller's text without incomplete characters, so that it can be encoded."""
    return text.encode("utf-8", "replace").decode()


def headers(failure: DomainError) -> dict[str, str]:
    if isinstance(failure, Unauthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if failure.retry_after is not None:
        return {"Retry-After": str(failure.retry_after)}
    if isinstance(failure, Unavailable):
        return {"Retry-After": "5"}
    return {}


def problem_json(failure: DomainError, request: HttpRequest) -> JsonResponse:
    """Return the problem response outside DRF: for unknown addresses and failures of the server."""
    return JsonResponse(
        problem(failure, request), status=failure.status, headers=headers(failure), content_type=CONTENT_TYPE
    )


def as_domain_error(error: Exception) -> DomainError | None:
    """Return an exception of DRF, Django or the database as a DomainError; None if it is none of them."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, exceptions.ValidationError):
        return Invalid(errors=field_errors(error.detail))
    if isinstance(error, exceptions.ParseError):
        return Invalid("The body is not valid JSON.")
    if isinstance(error, exceptions.UnsupportedMediaType):
        return UnsupportedMediaType("Send the body as application/json.")
    if isinstance(error, exceptions.NotAcceptable):
        return NotAcceptable("Accept application/json, or anything.")
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
    return database_failure(error) if isinstance(error, DatabaseFailure) else None


def field_errors(detail: Any, path: str = "") -> Sequence[FieldError]:
    """Return DRF's nested error detail as a flat list with dotted paths (`items.3.content`)."""
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
