"""Statements of the hot path, planned once for each connection (docs/decisions/0017).

Only for statements of one shape, whose best plan is the same whoever asks and however much there is of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper


class _Preparing(psycopg.Cursor[Any]):
    """Django's wrappers call `execute` with two arguments, and read `_query` for their log."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> "_Preparing":
        return super().execute(query, params, **{**options, "prepare": True})

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        self._query = super()._convert_query(query, params)
        return self._query


@contextmanager
def prepared_cursor() -> Iterator[CursorWrapper]:
    """Django's cursor, whose statements PostgreSQL keeps with their plan; values are bound by the server."""
    connection.ensure_connection()
    with _Preparing(connection.connection) as raw:
        make = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
        yield make(cast(CursorWrapper, raw))
