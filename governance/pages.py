"""Paging of lists: a selector builds the query, and the `pages` that its caller passes read one page of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import QuerySet

NamedRows = tuple[str, QuerySet[Any]]


class Pages(Protocol):
    """Reads the page that a caller asked for: at the cursor of an address, or the first rows."""

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        """Return the rows of the page, in the order of `rows`. Raises Invalid for a cursor of another list."""


class MergedTables(Protocol):
    """Reads one page of the rows of several tables, newest first."""

    def take(self, tables: Sequence[NamedRows]) -> Sequence[tuple[str, Any]]:
        """Return the rows of the page, each with the name of its table."""


@dataclass(frozen=True)
class First:
    """Reads the first `size` rows, for lists without pages."""

    size: int

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        return list(rows[: self.size])


@dataclass(frozen=True)
class Last:
    """Reads the last `size` rows, in the order of the list."""

    size: int

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        return list(reversed(rows.reverse()[: self.size]))
