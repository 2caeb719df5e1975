"""Pages of a list whose rows lie in several tables, newest first; ids order the rows, since they contain the time."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from governance.api.pages import PAGING
from governance.api.views import refuse_unknown_parameters
from governance.errors import FieldError, Invalid

Table = tuple[str, QuerySet[Any]]
Row = tuple[str, Any]
PAGE_SIZE = 50


class MergedPages:
    """Reads one page. `cursor`: `<id` for rows older than a row, `>id` for newer rows."""

    def __init__(self, request: Request, *, also_known: Sequence[str] = ()) -> None:
        refuse_unknown_parameters(request, *PAGING, *also_known)
        self.address = request.build_absolute_uri()
        self.size = _size(request)
        self.newer, self.start = _cursor(request)
        self.count, self.before, self.after = 0, False, False
        self.rows: list[Row] = []

    def take(self, tables: Sequence[Table]) -> list[Row]:
        """Return the page. Queries: at most three for each table."""
        self.count = sum(rows.count() for _, rows in tables)
        found = [row for table in tables for row in self._take_rows(table)]
        found.sort(key=lambda row: row[1].id, reverse=not self.newer)
        more, page = len(found) > self.size, found[: self.size]
        self.rows = page[::-1] if self.newer else page
        self.before = more if self.newer else self.start is not None
        self.after = True if self.newer else more
        return self.rows

    def envelope(self, results: Sequence[Any]) -> dict[str, Any]:
        return {
            "count": self.count,
            "next": self._link("<", -1) if self.after else None,
            "previous": self._link(">", 0) if self.before else None,
            "results": results,
        }

    def _take_rows(self, table: Table) -> list[Row]:
        name, rows = table
        if self.start is not None:
            rows = rows.filter(id__gt=self.start) if self.newer else rows.filter(id__lt=self.start)
        return [(name, row) for row in rows.order_by("id" if self.newer else "-id")[: self.size + 1]]

    def _link(self, sign: str, place: int) -> str | None:
        if not self.rows:
            return None
        link: str = replace_query_param(self.address, "cursor", f"{sign}{self.rows[place][1].id}")
        return link


def _size(request: Request) -> int:
    text = request.query_params.get("page_size", str(PAGE_SIZE))
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= settings.MAX_PAGE_SIZE:
        raise Invalid(errors=[FieldError("page_size", f"1 to {settings.MAX_PAGE_SIZE}")])
    return int(text)


def _cursor(request: Request) -> tuple[bool, UUID | None]:
    text = request.query_params.get("cursor")
    if text is None:
        return False, None
    try:
        return {"<": False, ">": True}[text[:1]], UUID(text[1:])
    except (KeyError, ValueError) as error:
        raise Invalid(errors=[FieldError("cursor", "not a cursor of this list")]) from error
