"""Descriptions of calls in the OpenAPI document, and parsers of their bodies."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from governance.api.fields import StrictSerializer
from governance.api.schema import Schema, problems
from governance.errors import FieldError, Invalid

Handler = TypeVar("Handler", bound=Callable[..., Any])
PAGE_SIZE = 50  # objects of a page, unless the caller says otherwise
PAGE = [
    OpenApiParameter(
        "page_size",
        {"type": "integer", "minimum": 1, "maximum": settings.MAX_PAGE_SIZE, "default": PAGE_SIZE},
        description=f"1 to {settings.MAX_PAGE_SIZE}. Default: {PAGE_SIZE}.",
    ),
    OpenApiParameter("cursor", str, description="From `next` or `previous` of a page."),
]
ONCE = OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="Same key and body: same reply.")
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description='The ETag read, as in `"3"`; a list of them; or `*` for any.'
)
PURPOSE = OpenApiParameter(
    "X-Memory-Purpose",
    str,
    OpenApiParameter.HEADER,
    description="What the memories are read for, in at most 200 characters. Some policies open memories for certain "
    "purposes only.",
)
TIMEZONE = OpenApiParameter(
    "X-Memory-Timezone",
    str,
    OpenApiParameter.HEADER,
    description="The reader's time zone, as `Europe/Berlin`: times are shown in it, and a date is a day there. "
    "Default: UTC.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="ETags of earlier answers: 304 if one is still current."
)
LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, response=[201], description="Address of what was made, if it has its own."
)
ETAG = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=[200, 201], description="The version, for If-Match, or a digest."
)
SESSION = OpenApiParameter(
    "X-Memory-Session",
    str,
    OpenApiParameter.HEADER,
    description="The session that the call belongs to. Grants may ask for it.",
)
TASK = OpenApiParameter(
    "X-Memory-Task",
    str,
    OpenApiParameter.HEADER,
    description="The task that the call belongs to. Grants may ask for it.",
)
DRY_RUN = OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Answer what would be done, and do nothing.")
ANY_CALL = (400, 401, 403, 405, 406, 429, 503)


class PageSchema(Schema):
    count = serializers.IntegerField()
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


@cache
def page_of(row: type[Schema]) -> type[PageSchema]:
    """Return the schema of a page of such rows; `PackSchema` gives `PackListSchema`."""
    return type(f"{row.__name__.removesuffix('Schema')}ListSchema", (PageSchema,), {"results": row(many=True)})


@dataclass(frozen=True)
class Operation:
    """A handler's published response, status, body and query parameters, by which the view reads and answers."""

    reply: Any
    status: int
    body: type[StrictSerializer] | None
    parameters: tuple[str, ...]

    def show(self, result: Any) -> Any:
        return self.reply.json(result) if self.reply is not None else None


def describe(
    name: str,
    reply: Any,
    *,
    tag: str | None = None,
    status: int | tuple[int, str] = 200,
    request: Any = None,
    parameters: Sequence[OpenApiParameter] = (),
    also: Mapping[Any, Any] | None = None,
    may: Sequence[int] = (),
    memories: bool = False,
) -> Callable[[Handler], Handler]:
    """Return `extend_schema` with the problems of every call, of its body and headers, and those listed in `may`.

    tag: None means the first word of the name. memories: the call reads or writes memories, for a purpose.
    """
    codes = {*ANY_CALL, *may}
    if request is not None or ONCE in parameters:
        codes |= {413, 415}
    if ONCE in parameters:
        codes |= {409, 422}
    if IF_MATCH in parameters:
        codes.add(412)

    def decorate(handler: Handler) -> Handler:
        headers = [PURPOSE, SESSION, TASK, TIMEZONE] if memories else []
        unchanged = {}
        if handler.__name__ == "get":
            headers += [IF_NONE_MATCH, ETAG]
            unchanged = {304: OpenApiResponse(description="Unchanged since the answer with an ETag of If-None-Match.")}
        if status == 201:
            headers += [LOCATION, ETAG]
        text = inspect.getdoc(handler) or ""
        decorator: Callable[[Handler], Handler] = extend_schema(
            operation_id=name,
            summary=summary_of(text),
            description=text,
            request=request,
            responses={**problems(*sorted(codes)), status: reply, **unchanged, **(also or {})},
            parameters=[*parameters, *headers],
            tags=[tag or name.partition("_")[0]],
        )
        code = status if isinstance(status, int) else status[0]
        query = tuple(each.name for each in parameters if each.location == OpenApiParameter.QUERY)
        described = decorator(handler)
        vars(described)["operation"] = Operation(reply, code, request if isinstance(request, type) else None, query)
        return described

    return decorate


def summary_of(text: str) -> str:
    """Return the first sentence of a handler's docstring, without its full stop and the part after a colon or
    semicolon.
    """
    first = " ".join(text.split()) + " "
    for end in (". ", "; ", ": "):
        first = first.partition(end)[0]
    return first.strip()


def read(kind: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the validated body. Raises Invalid; TooLarge."""
    try:
        if not isinstance(request.data, dict):
            raise Invalid(errors=[FieldError("body", "a JSON object is needed")])
        body: dict[str, Any] = share_form(kind).run_validation(request.data)
    except RecursionError as error:  # of Python's own JSON parser and encoder
        raise Invalid("The body is nested too deeply.") from error
    return body


@cache
def share_form(kind: type[StrictSerializer]) -> StrictSerializer:
    """Return a serializer that all requests share. Validation stores no state in it, and a new one would copy every
    field."""
    return kind()
