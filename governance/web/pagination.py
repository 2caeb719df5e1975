"""Pagination by the key of the last row (keyset), whose cost does not grow with the page number."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.pages import NamedRows


class Newest:
    """Takes the `size` newest rows before `cursor`, a value of `key` (None: the newest of all).

    Then `older` is the cursor of the next page, None on the last page.
    """

    def __init__(self, *, size: int, key: str, cursor: UUID | int | None = None) -> None:
        self.size = size
        self.key = key
        self.cursor = cursor
        self.older: UUID | int | None = None

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        return self.cut_page(list(self.select(rows)))

    def select(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the page's rows, and one more if there is an older page."""
        if self.cursor is not None:
            rows = rows.filter(**{f"{self.key}__lt": self.cursor})
        return rows.order_by(f"-{self.key}")[: self.size + 1]

    def cut_page(self, found: list[Any]) -> list[Any]:
        if len(found) > self.size:
            self.older = getattr(found[self.size - 1], self.key)
        return found[: self.size]


class NewestLast(Newest):
    """Takes the same rows as Newest, in ascending order."""

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        return list(reversed(super().take(rows)))


class NewestOf(Newest):
    """Takes rows by id, from the cursor in an address."""

    def __init__(self, size: int, cursor: str) -> None:
        super().__init__(size=size, key="id", cursor=uuid_or_none(cursor))


class Numbered:
    """Takes page `number` (from 1) of a list without a unique key. has_more: there is a next page."""

    def __init__(self, *, size: int, number: int) -> None:
        self.size = size
        self.number = number
        self.has_more = False

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        start = (self.number - 1) * self.size
        found = list(rows[start : start + self.size + 1])
        self.has_more = len(found) > self.size
        return found[: self.size]


class NewestMerged:
    """Takes a page of several tables, as `NewestOf` does of one."""

    def __init__(self, size: int, cursor: str) -> None:
        self._newest = NewestOf(size, cursor)

    @property
    def older(self) -> UUID | int | None:
        return self._newest.older

    def take(self, tables: Sequence[NamedRows]) -> list[tuple[str, Any]]:
        """Return a page of several tables, each row with its table's name."""
        found = [(name, row) for name, rows in tables for row in self._newest.select(rows)]
        found.sort(key=lambda pair: pair[1].id, reverse=True)
        shown_ids = {row.id for row in self._newest.cut_page([row for _, row in found])}
        return [pair for pair in found if pair[1].id in shown_ids]


def uuid_or_none(text: str) -> UUID | None:
    """Return the id in an address; None, which starts at the newest row, for an invalid one."""
    try:
        return UUID(text)
    except ValueError:
        return None


def number_or_none(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
