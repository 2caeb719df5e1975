"""How the law's calls are described in the OpenAPI document, and how their bodies are read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from governance.api.fields import StrictSerializer
from governance.api.schema import problems
from governance.errors import FieldError, Invalid

Handler = TypeVar("Handler", bound=Callable[..., Any])
PAGE = [OpenApiParameter("page_size", int), OpenApiParameter("cursor", str)]
ONCE = OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="Same key and body: same reply.")
DRY_RUN = OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Answer what would be done, and do nothing.")
ANY_CALL = (400, 401, 403, 405, 503)


class ListSchema(serializers.Serializer[Any]):
    """The envelope of every list; a subclass says what is in it."""

    count = serializers.IntegerField()
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


def described(
    name: str,
    reply: Any,
    *,
    tag: str,
    status: int = 200,
    request: Any = None,
    parameters: Sequence[OpenApiParameter] = (),
    also: Mapping[Any, Any] | None = None,
    may: Sequence[int] = (),
) -> Callable[[Handler], Handler]:
    """`extend_schema` with the problems of every call, of its body, and those it `may` have beside."""
    codes = {*ANY_CALL, *may}
    if request is not None or ONCE in parameters:
        codes.add(413)
    if ONCE in parameters:
        codes |= {409, 422}
    decorator: Callable[[Handler], Handler] = extend_schema(
        operation_id=name,
        request=request,
        responses={**problems(*sorted(codes)), status: reply, **(also or {})},
        parameters=list(parameters),
        tags=[tag],
    )
    return decorator


def read(kind: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """The checked body. Raises Invalid."""
    try:
        data = request.data
    except RecursionError as error:  # of Python's own JSON parser
        raise Invalid("The body is nested too deeply.") from error
    if not isinstance(data, dict):
        raise Invalid(errors=[FieldError("body", "a JSON object is needed")])
    form = kind(data=data)
    form.is_valid(raise_exception=True)
    body: dict[str, Any] = form.validated_data
    return body
