"""Paging of REST lists: `{count, next, previous, results}`, by cursor."""

from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework.exceptions import NotFound as PageNotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from governance.api.descriptions import PAGE_SIZE
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.errors import FieldError, Invalid

PAGING = ("page_size", "cursor")


class CursorPages(CursorPagination):
    """Cursor pages, stable under writes, in the order of the queryset; `count` has the same filters as the page.

    `also_known`: the query parameters that this list allows besides those of paging.
    """

    page_size = PAGE_SIZE
    page_size_query_param = "page_size"

    def __init__(self, request: Request, ordering: str = "-id", *, also_known: Sequence[str] = ()) -> None:
        super().__init__()
        self.request = request
        self.ordering = ordering
        self.known = (*PAGING, *also_known)
        self.count = 0

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        refuse_unknown_parameters(self.request, *self.known)
        self.count = rows.count()
        try:
            return self.paginate_queryset(rows, self.request) or []
        except (PageNotFound, ValidationError, ValueError) as error:  # no id, no number
            raise Invalid(errors=[FieldError("cursor", "not a cursor of this list")]) from error

    def get_page_size(self, request: Request) -> int:
        text = request.query_params.get("page_size", str(self.page_size))
        if not text.isdecimal() or not 1 <= int(text) <= settings.MAX_PAGE_SIZE:
            raise Invalid(errors=[FieldError("page_size", f"1 to {settings.MAX_PAGE_SIZE}")])
        return int(text)

    def envelope(self, results: Sequence[Any]) -> dict[str, Any]:
        """Return the last page taken, with its count and its links."""
        return {
            "count": self.count,
            "next": self.get_next_link(),
            "previous": self.get_previous_link(),
            "results": results,
        }


def show_page(
    view: ApiView, list_rows: Callable[..., Sequence[Any]], *, ordering: str = "-id", **wanted: Any
) -> dict[str, Any]:
    """Return the requested page of what a selector lists. It takes the actor, the pages and `wanted`."""
    known = [name for name in view.operation().parameters if name not in PAGING]
    pages = CursorPages(view.request, ordering, also_known=known)
    return pages.envelope(list_rows(actor=view.actor(), pages=pages, **wanted))


def whole_list(results: Sequence[Any]) -> dict[str, Any]:
    """Return a list that is never divided into pages."""
    return {"count": len(results), "next": None, "previous": None, "results": results}
