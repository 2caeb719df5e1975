"""One page of a list, by the key of its last row: it costs the same however far one has turned the pages."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet


class Newest:
    """Takes the `size` newest rows before `cursor`, a value of `key` (None: the very newest).

    `older` is then the cursor of the next page, None when this one is the last.
    """

    def __init__(self, *, size: int, key: str, cursor: UUID | int | None = None) -> None:
        self.size = size
        self.key = key
        self.cursor = cursor
        self.older: UUID | int | None = None

    def __call__(self, rows: QuerySet[Any]) -> Sequence[Any]:
        if self.cursor is not None:
            rows = rows.filter(**{f"{self.key}__lt": self.cursor})
        found = list(rows.order_by(f"-{self.key}")[: self.size + 1])
        if len(found) > self.size:
            self.older = getattr(found[self.size - 1], self.key)
        return found[: self.size]


class NewestLast(Newest):
    """The same rows in the order in which they came."""

    def __call__(self, rows: QuerySet[Any]) -> Sequence[Any]:
        return list(reversed(super().__call__(rows)))


def uuid_or_none(text: str) -> UUID | None:
    """A cursor from an address that people can edit: what is no id begins at the newest."""
    try:
        return UUID(text)
    except ValueError:
        return None


def number_or_none(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
