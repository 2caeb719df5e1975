"""Filters of webhooks. Other packages register the filters that need their tables."""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from governance.actor import Actor

ObjectFilter = Callable[[Actor, str, str, Sequence[UUID]], Sequence[UUID]]
"""filter(actor, value, object_type, ids): the ids that match; none for a type that the filter does not know."""
Check = Callable[[str], str]
"""check(value): what is wrong with a value, or nothing."""

_filters: dict[str, tuple[ObjectFilter, Check]] = {}


def webhook_filter(name: str, check: Check) -> Callable[[ObjectFilter], ObjectFilter]:
    """Register a filter by the name that it has in `filters`."""

    def register(function: ObjectFilter) -> ObjectFilter:
        _filters[name] = (function, check)
        return function

    return register


def filter_names() -> list[str]:
    return sorted(_filters)


def fault_of(name: str, value: object) -> str:
    """Return the fault of a filter's value, or an empty text."""
    if name not in _filters:
        return f"no such filter; there are: {', '.join(filter_names())}"
    return _filters[name][1](value) if isinstance(value, str) else "must be a text"


def ids_matching(actor: Actor, filters: Mapping[str, str], object_type: str, ids: Sequence[UUID]) -> Sequence[UUID]:
    """Return the ids that match all filters."""
    for name, value in sorted(filters.items()):
        ids = _filters[name][0](actor, value, object_type, ids)
    return ids
