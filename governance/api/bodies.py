"""Reading and checking of request bodies."""

from typing import Any

from rest_framework.request import Request

from governance.api.fields import StrictSerializer
from governance.errors import FieldError, Invalid


def body_of(kind: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the checked body. Raises Invalid; TooLarge."""
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
