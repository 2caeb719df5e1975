"""The range of times that exist in every time zone: the years FIRST_YEAR to LAST_YEAR."""

from datetime import datetime

from governance.errors import FieldError, Invalid

FIRST_YEAR, LAST_YEAR = 2, 9998
OUT_OF_RANGE = f"a time in the years {FIRST_YEAR} to {LAST_YEAR} is needed"


def is_in_range(moment: datetime) -> bool:
    """Return whether the time is within Python's years in every time zone."""
    return FIRST_YEAR <= moment.year <= LAST_YEAR


def check_moment(moment: datetime, field: str) -> datetime:
    """Return `moment`. Raises Invalid if it does not exist in every time zone."""
    if not is_in_range(moment):
        raise Invalid(errors=[FieldError(field, OUT_OF_RANGE)])
    return moment
