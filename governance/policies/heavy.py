"""Limits on heavy calls of one tenant: a few at once over all web processes, and one large write at a time.

The locks are PostgreSQL's and belong to a connection, so that a process that dies leaves none behind.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.conf import settings
from django.db import OperationalError

from governance.actor import Actor
from governance.database import await_lock, hold_free_lock
from governance.errors import TooManyAtOnce

NOT_IN_TIME = "55P03"  # lock_not_available
RETRY_SECONDS = 2
TURN_SECONDS = 20.0  # a large write waits so long for another of its tenant, which takes a second or two


@contextmanager
def heavy_call(actor: Actor) -> Iterator[None]:
    """Hold one of the tenant's HEAVY_CALLS locks during this block. Raises TooManyAtOnce."""
    names = [f"heavy call/{actor.tenant_id}/{number}" for number in range(settings.HEAVY_CALLS)]
    with hold_free_lock(names) as held:
        if held is None:
            raise _too_many()
        yield


@contextmanager
def large_write(actor: Actor) -> Iterator[None]:
    """Wait for the tenant's other large write, since both would lock the same rows. Raises TooManyAtOnce."""
    with ExitStack() as stack:
        try:
            stack.enter_context(await_lock(f"large write/{actor.tenant_id}", seconds=TURN_SECONDS))
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) == NOT_IN_TIME:
                raise _too_many() from error
            raise
        yield


def _too_many() -> TooManyAtOnce:
    detail = f"Your organisation has {settings.HEAVY_CALLS} large calls at work. Try again soon."
    return TooManyAtOnce(detail, retry_after=RETRY_SECONDS)
