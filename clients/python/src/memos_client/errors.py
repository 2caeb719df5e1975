"""Errors of the client. Every error is a `MemosError`."""

from dataclasses import dataclass, field
from typing import Any

import httpx


class MemosError(Exception):
    """Any failure of a call."""


class ConnectionFailed(MemosError):
    """No whole answer came, also after the retries."""


@dataclass(frozen=True)
class FieldError:
    """One field of the request that is at fault, such as `items.3.content`."""

    field: str
    message: str


@dataclass
class ApiError(MemosError):
    """The server refused. `code` is stable; `detail` is a sentence for people; `request_id` finds it in the logs."""

    status: int
    code: str
    detail: str
    request_id: str
    errors: list[FieldError] = field(default_factory=list)
    retry_after: float | None = None

    def __str__(self) -> str:
        fields = "".join(f"\n  {one.field}: {one.message}" for one in self.errors)
        return f"{self.status} {self.code}: {self.detail}{fields}"


class BadRequest(ApiError):
    """400, 413, 422, 428: the request must be changed."""


class InvalidKey(ApiError):
    """401: the API key is missing, wrong, expired or revoked."""


class Forbidden(ApiError):
    """403: the key may not do this."""


class NotFound(ApiError):
    """404: there is no such object, or the key may not see it."""


class Conflict(ApiError):
    """409: the object's state does not allow this."""


class VersionConflict(ApiError):
    """412: somebody changed the memory since you read it. Read it again."""


class Held(ApiError):
    """423: the memory is frozen or under a legal hold."""


class RateLimited(ApiError):
    """429: too many calls, or a quota is used up. `retry_after` is in seconds."""


class ServerError(ApiError):
    """500 and above."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: InvalidKey,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: VersionConflict,
    423: Held,
    429: RateLimited,
}


def error_of(response: httpx.Response) -> ApiError:
    """The error that a response of 400 or above stands for."""
    try:
        problem: dict[str, Any] = response.json()
    except ValueError:
        problem = {}
    status = response.status_code
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else BadRequest)
    return kind(
        status=status,
        code=problem.get("code", "unknown"),
        detail=problem.get("detail") or problem.get("title") or response.reason_phrase,
        request_id=problem.get("request_id", ""),
        errors=[FieldError(one["field"], one["message"]) for one in problem.get("errors", [])],
        retry_after=retry_after_of(response),
    )


def retry_after_of(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None
