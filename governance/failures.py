"""Translation of database errors into the errors of the contract, for REST, pages and commands."""

import logging

from django.db import Error, InterfaceError, OperationalError

from governance.errors import Conflict, DomainError, Held, Unavailable

HELD = "MH423"  # raised by the triggers of vault/migrations/0003_functions.py
# Serialization failure, deadlock, unique violation, and foreign key violation (another call erased the row meanwhile).
SAME_ROWS = frozenset({"40001", "40P01", "23505", "23503"})
logger = logging.getLogger(__name__)


def database_failure(error: Error) -> DomainError | None:
    """Return `error` as Held, Conflict or Unavailable, without the server's message; None if it is a bug of the
    product.
    """
    state = getattr(error.__cause__, "sqlstate", None)
    if state == HELD:
        return Held()
    if state in SAME_ROWS:  # first: a deadlock is an OperationalError too
        logger.warning("changed by two at the same time: %s", state)
        return Conflict("Another request changed the same rows at the same time; try again.")
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("the database does not answer: %s", type(error).__name__)
        return Unavailable("The database does not answer.")
    return None
