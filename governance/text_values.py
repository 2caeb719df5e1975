"""Values that a form or an address gives as text."""

from datetime import UTC, datetime
from uuid import UUID

from django.utils import timezone

from governance.errors import FieldError, Invalid
from governance.time_range import check_moment


def read_uuid(text: str, field: str, message: str) -> UUID:
    """Return the id. Raises Invalid."""
    try:
        return UUID(text)
    except ValueError as error:
        raise Invalid(errors=[FieldError(field, message)]) from error


def read_month(text: str) -> datetime | None:
    """Return the begin of a month in UTC; None for an empty text. Raises Invalid."""
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC) if text else None
    except ValueError as error:
        raise Invalid(errors=[FieldError("month", "a month such as 2026-11 is needed")]) from error


def read_local_time(text: str, field: str, message: str) -> datetime | None:
    """Return a browser's date and time, in the reader's time zone; None for an empty text. Raises Invalid."""
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=timezone.get_current_timezone()) if text else None
    except ValueError as error:
        raise Invalid(errors=[FieldError(field, message)]) from error
    return check_moment(moment, field) if moment else None
