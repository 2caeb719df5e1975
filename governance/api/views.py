"""The base of every REST view, and what its handlers read from an address or a header."""

import re
from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from governance.actor import Actor
from governance.api.authentication import actor_of
from governance.api.idempotency import Commit, idempotent
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.policies.rates import request_count

ETAG = re.compile(r'(?:W/)?"(\d{1,9})"')


class ApiView(APIView):
    """Each handler: the actor, one service, an answer.

    What an address asks for is read once the object was found and the permission asked: 404 and 403 come before 400.
    """

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who calls (401), then whether they call too often (429)."""
        super().initial(request, *args, **kwargs)
        request_count(actor_of(request))

    def actor(self) -> Actor:
        return actor_of(self.request)

    def post_once(self, call: Callable[[Commit], Reply], *, ask: Callable[[], object] = lambda: None) -> Response:
        """Answer a POST under its Idempotency-Key, if it has one.

        `ask` raises what stands against the call; without it the handler has asked already.
        """
        return idempotent(self.request, self.actor(), call, ask)


def expected_version(request: Request) -> int | None:
    """The version that If-Match names; None without the header. Raises Invalid for what is no ETag of ours."""
    header = request.headers.get("If-Match")
    if header is None:
        return None
    found = ETAG.fullmatch(header.strip())
    if not found:
        raise Invalid(errors=[FieldError("If-Match", 'the ETag that was read, as in "3"')])
    return int(found.group(1))


def asked_only(request: Request, *known: str) -> None:
    """Refuse what an address asks beyond `known`: a misspelt one would be lost silently. Raises Invalid."""
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        told = f"unknown; known are {', '.join(sorted(known))}" if known else "unknown; this call knows none"
        raise Invalid(errors=[FieldError(name, told) for name in unknown])


def flag(request: Request, name: str) -> bool:
    """A `?name=true` of the address. Raises Invalid for anything but true and false."""
    text = request.query_params.get(name, "false")
    if text not in {"true", "false"}:
        raise Invalid(errors=[FieldError(name, "true or false")])
    return text == "true"
