"""Statements of the hot path, planned once for each connection (docs/decisions/0017).

Only for statements of one shape, whose best plan is the same whoever asks and however much there is of it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

import psycopg
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper

from governance.errors import Unavailable

PLACEHOLDER = re.compile(r"%(?:\((?P<name>\w+)\)s|(?P<next>s)|(?P<percent>%))")
KEPT = 500  # statements


class _Preparing(psycopg.RawCursor[Any]):
    """Django's wrappers call `execute` with two arguments, and read `_query` for their log.

    Rows come in PostgreSQL's binary form, which neither side writes out and reads again; JSON comes parsed, and times
    in the connection's time zone, UTC.
    """

    def execute(self, query: Any, params: Any = None, **options: Any) -> "_Preparing":
        if params is not None:
            query, names = _numbered(query)
            if isinstance(params, Mapping):
                params = [params[name] for name in names]
        return super().execute(query, params, **{**options, "prepare": True, "binary": True})

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        self._query = super()._convert_query(query, params)
        return self._query


def ensure_connection() -> None:
    """Raises Unavailable."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise Unavailable("The database cannot be reached.") from error


@contextmanager
def prepared_cursor() -> Iterator[CursorWrapper]:
    """Django's cursor, whose statements PostgreSQL keeps with their plan; values are bound by the server.

    Raises Unavailable.
    """
    ensure_connection()
    connection.validate_no_broken_transaction()
    # Django's wrapper does for each call what is done here once; it is only needed where somebody listens.
    with connection.wrap_database_errors, _Preparing(connection.connection) as raw:
        if connection.queries_logged:
            yield connection.make_debug_cursor(cast(CursorWrapper, raw))
        elif connection.execute_wrappers:
            yield connection.make_cursor(cast(CursorWrapper, raw))
        else:
            yield cast(CursorWrapper, raw)


@lru_cache(KEPT)
def _numbered(statement: str) -> tuple[bytes, list[str]]:
    """The statement with PostgreSQL's own placeholders, and the names of its values in that order.

    Made once: psycopg would do it for each call, as it keeps no statement beyond 4,096 letters.
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
