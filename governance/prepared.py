"""Prepared statements of frequent calls, planned once for each connection (docs/decisions/0017).

Only for statements of a fixed text whose best plan does not depend on the actor or on the number of rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.utils import CursorWrapper

from governance.errors import Unavailable

PLACEHOLDER = re.compile(r"%(?:\((?P<name>\w+)\)s|(?P<next>s)|(?P<percent>%))")
MOST_STATEMENTS = 500  # statements whose text is kept in PostgreSQL's form
Values = Sequence[Any] | Mapping[str, Any]


class _Prepared(psycopg.RawCursor[Any]):
    """A cursor that prepares its statements and receives rows in PostgreSQL's binary format.

    JSON arrives parsed; times arrive in the connection's time zone, UTC.
    """

    is_prepared = True

    def execute(self, query: Any, params: Any = None, **options: Any) -> "_Prepared":
        statement, values = _bind_parameters(query, params)
        return super().execute(statement, values, **{**options, "prepare": self.is_prepared, "binary": True})


class _Logged(_Prepared):
    """Adds the text of a statement to Django's log, as psycopg keeps it only for prepared ones."""

    is_prepared = False


def sql_array(values: Iterable[Any]) -> str:
    """Return numbers, ids and None as a PostgreSQL array literal; the driver would check each value for quotes."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def ensure_connection() -> None:
    """Open the connection to the database if none is open. Raises Unavailable."""
    try:
        connections[DEFAULT_DB_ALIAS].ensure_connection()
    except OperationalError as error:
        raise Unavailable("The database cannot be reached.") from error


def prepared_cursor() -> CursorWrapper:
    """Return a cursor whose statements PostgreSQL keeps with their plan; the server binds the values.

    Raises Unavailable.
    """
    ensure_connection()
    django = connections[DEFAULT_DB_ALIAS]
    django.validate_no_broken_transaction()
    with django.wrap_database_errors:
        raw: Any = (_Logged if django.queries_logged else _Prepared)(django.connection)
    return django.make_debug_cursor(raw) if django.queries_logged else django.make_cursor(raw)


@contextmanager
def send_together() -> Iterator[None]:
    """Send the statements of open prepared cursors in one batch; their rows and errors arrive when the block ends.

    Outside a transaction, the batch is atomic.
    """
    django = connections[DEFAULT_DB_ALIAS]
    with django.wrap_database_errors, django.connection.pipeline():
        yield


def _bind_parameters(query: str, params: Values | None) -> tuple[bytes, Sequence[Any]]:
    if params is None:
        return query.encode(), ()
    statement, names = _number_parameters(query)
    return statement, [params[name] for name in names] if isinstance(params, Mapping) else params


@lru_cache(MOST_STATEMENTS)
def _number_parameters(statement: str) -> tuple[bytes, list[str]]:
    """Return the statement with PostgreSQL's own placeholders, and the names of its values in that order.

    Cached, because psycopg would parse each time a statement that is longer than 4,096 characters.
    """
    names: list[str] = []

    def number(place: re.Match[str]) -> str:
        if place["percent"]:
            return "%"
        if place["next"] or place["name"] not in names:
            names.append(place["name"] or "")
            return f"${len(names)}"
        return f"${names.index(place['name']) + 1}"

    return PLACEHOLDER.sub(number, statement).encode(), names
