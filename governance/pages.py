"""One page of a list: selectors find the rows, and the caller's `pages` says which of them are opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import QuerySet

NamedRows = tuple[str, QuerySet[Any]]


class Pages(Protocol):
    """The page that a caller asked for: the cursor of an address, or the first rows."""

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        """The rows of the page, in the order of `rows`. Raises Invalid for a cursor of another list."""


class MergedTables(Protocol):
    """A page of several tables, newest first."""

    def take(self, tables: Sequence[NamedRows]) -> Sequence[tuple[str, Any]]:
        """The rows of the page, each with the name of its table."""


@dataclass(frozen=True)
class First:
    """The first `size` rows of a list that is shown whole."""

    size: int

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        return list(rows[: self.size])


@dataclass(frozen=True)
class Last:
    """The last `size` rows of a list, in its order."""

    size: int

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        return list(reversed(rows.reverse()[: self.size]))
