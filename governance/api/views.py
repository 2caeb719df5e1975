"""The base of every REST view, and the calls that belong to the law."""

import re
from collections.abc import Callable
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from governance.actor import Actor
from governance.api.authentication import actor_of
from governance.api.idempotency import Reply, idempotent
from governance.api.representations import me_json
from governance.api.schema import MeSchema, problems
from governance.errors import FieldError, Invalid
from governance.tenants.selectors import me_get

ETAG = re.compile(r'(?:W/)?"(\d{1,9})"')


class ApiView(APIView):
    """Each handler: the actor, one service, an answer."""

    def actor(self) -> Actor:
        return actor_of(self.request)

    def post_once(self, call: Callable[[Callable[[Reply], None]], Reply]) -> Response:
        """Answer a POST under its Idempotency-Key, if it has one."""
        return idempotent(self.request, self.actor(), call)


def expected_version(request: Request) -> int | None:
    """The version that If-Match names; None without the header. Raises Invalid for what is no ETag of ours."""
    header = request.headers.get("If-Match")
    if header is None:
        return None
    found = ETAG.fullmatch(header.strip())
    if not found:
        raise Invalid(errors=[FieldError("If-Match", 'the ETag that was read, as in "3"')])
    return int(found.group(1))


def flag(request: Request, name: str) -> bool:
    """A `?name=true` of the address. Raises Invalid for anything but true and false."""
    text = request.query_params.get(name, "false")
    if text not in {"true", "false"}:
        raise Invalid(errors=[FieldError(name, "true or false")])
    return text == "true"


class MeView(ApiView):
    @extend_schema(operation_id="me", responses={200: MeSchema, **problems(401, 405, 429, 503)}, tags=["me"])
    def get(self, request: Request) -> Response:
        """Who the caller is: principal, tenant, roles, scopes, personas, limits."""
        actor = self.actor()
        limits: dict[str, Any] = {
            "content_characters": settings.MAX_CONTENT_CHARACTERS,
            "metadata_bytes": settings.MAX_METADATA_BYTES,
            "items_per_call": settings.MAX_ITEMS_PER_CALL,
            "top_k": settings.MAX_TOP_K,
            "page_size": settings.MAX_PAGE_SIZE,
        }
        return Response(me_json(actor, me_get(actor=actor)) | {"limits": limits})
