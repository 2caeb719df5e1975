"""Backdating for the demo tenant: memories and versions stored within `backdate` carry an earlier time.

Only the demo may use it (a contract in pyproject.toml says so). Audit entries always carry the database's own time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

_moment: ContextVar[datetime | None] = ContextVar("moment", default=None)


@contextmanager
def backdate(moment: datetime) -> Iterator[None]:
    """Store the memories and versions of this block as if it were `moment`."""
    token = _moment.set(moment)
    try:
        yield
    finally:
        _moment.reset(token)


def find_backdated_moment() -> datetime | None:
    """Return the time of the enclosing `backdate`, or None outside of one."""
    return _moment.get()
