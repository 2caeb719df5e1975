"""One page of a list in a page of the law: by the key of its last row."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet


class NewestOf:
    """Takes the `size` newest rows before `cursor`; `older` is then the cursor of the next page, if there is one."""

    def __init__(self, size: int, cursor: str) -> None:
        self.size = size
        self.cursor = _id_or_none(cursor)
        self.older: UUID | None = None

    def __call__(self, rows: QuerySet[Any]) -> Sequence[Any]:
        found = list(self._before(rows)[: self.size + 1])
        return self._cut(found)

    def merged(self, tables: Sequence[tuple[str, QuerySet[Any]]]) -> list[tuple[str, Any]]:
        """The same of several tables, each row with its table's name."""
        found = [(name, row) for name, rows in tables for row in self._before(rows)[: self.size + 1]]
        found.sort(key=lambda row: row[1].id, reverse=True)
        kept = {row.id for row in self._cut([row for _, row in found])}
        return [one for one in found if one[1].id in kept]

    def _before(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return (rows.filter(id__lt=self.cursor) if self.cursor else rows).order_by("-id")

    def _cut(self, found: list[Any]) -> list[Any]:
        if len(found) > self.size:
            self.older = found[self.size - 1].id
        return found[: self.size]


def _id_or_none(text: str) -> UUID | None:
    """From an address that people can edit: what is no id begins at the newest."""
    try:
        return UUID(text)
    except ValueError:
        return None
