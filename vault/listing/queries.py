"""The query of a list of memories: words, filters and order. Pure but for the tenant's keyed marks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q

from governance.errors import FieldError, Invalid
from governance.keys.services import TokenMaker
from governance.time_range import check_moment
from vault.cubes.filters import DIALOGUE_ONLY, asks_for_messages, filter_read, message_condition, read_moment_or_date
from vault.retrieval.queries import SHOWN
from vault.vocabulary import ENDED, ListedState, SearchMode

# name in the query string → field of the filter language
FILTERS: Mapping[str, str] = {
    "namespace": "namespace",
    "persona": "persona",
    "layer": "layer",
    "state": "state",
    "semantic_type": "semantic_type",
    "tags": "tags",
    "sensitivity": "sensitivity",
    "source": "source",
    "speaker": "speaker",
    "session_id": "session_id",
}
FORMER_NAMES = {"tags": "tag"}  # in the addresses that 0.1.0 made, as of saved views
LONGEST_TEXT = 1000
MOST_CHOSEN = 20  # values of one filter


class Order(StrEnum):
    """The order of the list. BEST: the best match first, or the newest without search words."""

    BEST = "best"
    NEWEST = "newest"
    OLDEST = "oldest"
    EXPIRING = "expiring"


@dataclass(frozen=True)
class MemoryQuery:
    """The query of a list. chosen: filter → values; a memory must match one value of every filter. inactive:
    list the deleted, expired and archived ones."""

    text: str = field(default="", repr=False)
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: datetime | None = None
    before: datetime | None = None
    order: Order = Order.BEST
    mode: SearchMode = SearchMode.HYBRID
    inactive: bool = False

    def condition(self, maker: TokenMaker, *, without: str = "") -> Q:
        """Return the condition of all filters but the filter `without`. Raises Invalid.

        Merged, archived and expired memories are left out unless a state is chosen, and messages that state nothing
        unless the type `dialogue` is chosen.
        """
        wanted = self.filters(without=without)
        condition = filter_read(maker, wanted, path="") if wanted else Q()
        if without != "state" and not self.chosen.get("state") and not self.inactive:
            condition &= Q(state__in=SHOWN)
        if without != "semantic_type" and not self.is_of_ended:
            condition &= message_condition(wanted)
        if self.after is not None:
            condition &= Q(created_at__gte=self.after)
        if self.before is not None:
            condition &= Q(created_at__lt=self.before)
        return condition

    def filters(self, *, without: str = "") -> dict[str, Any]:
        """Return the chosen values in the filter language of the API."""
        return {
            FILTERS[name]: {"in": list(values)} for name, values in self.chosen.items() if values and name != without
        }

    def filters_shown(self) -> dict[str, Any]:
        """Return the filters of the list in the filter language, including the default ones."""
        since = {"gte": self.after.isoformat()} if self.after else {}
        until = {"lt": self.before.isoformat()} if self.before else {}
        times = {"created_at": since | until} if since or until else {}
        states = {} if self.inactive or self.chosen.get("state") else {"state": {"in": list(SHOWN)}}
        messages = {} if self.is_of_ended or asks_for_messages(self.filters()) else {DIALOGUE_ONLY: False}
        return self.filters() | times | states | messages

    @property
    def ended(self) -> frozenset[ListedState]:
        """Return those of the chosen states that only those see who may restore the memories."""
        return ENDED & {*map(ListedState, set(self.chosen.get("state", ())) & set(ListedState))}

    @property
    def is_of_ended(self) -> bool:
        """Return whether the list has only memories that are not active."""
        states = self.chosen.get("state", ())
        return self.inactive or (bool(states) and self.ended == {*states})

    @property
    def is_narrowed(self) -> bool:
        return bool(self.text or any(self.chosen.values()) or self.after or self.before)


def query_read(asked: Mapping[str, Sequence[str]]) -> MemoryQuery:
    """Parse the query string of a list; repeated names are alternatives. Raises Invalid."""
    text = _first_value(asked, "q")
    if len(text) > LONGEST_TEXT or "\x00" in text:
        raise Invalid(errors=[FieldError("q", f"at most {LONGEST_TEXT} characters, and no NUL")])
    chosen = {name: _read_values(asked, name) for name in FILTERS}
    for name, values in chosen.items():
        if len(values) > MOST_CHOSEN:
            raise Invalid(errors=[FieldError(name, f"at most {MOST_CHOSEN} values")])
    return MemoryQuery(
        text=text.strip(),
        chosen={name: values for name, values in chosen.items() if values},
        after=_parse_time(asked, "created_after"),
        before=_parse_time(asked, "created_before"),
        order=_parse_member(Order, asked, "order", Order.BEST),
        mode=_parse_member(SearchMode, asked, "mode", SearchMode.HYBRID),
        inactive="true" in {_first_value(asked, "inactive"), _first_value(asked, "deleted")},
    )


def _read_values(asked: Mapping[str, Sequence[str]], name: str) -> tuple[str, ...]:
    """Return the values of a filter, each once."""
    values = [*asked.get(name, ()), *asked.get(FORMER_NAMES.get(name, ""), ())]
    return tuple(dict.fromkeys(value for value in values if value))


def _first_value(asked: Mapping[str, Sequence[str]], name: str) -> str:
    values = asked.get(name, ())
    return values[0] if values else ""


def _parse_time(asked: Mapping[str, Sequence[str]], name: str) -> datetime | None:
    text = _first_value(asked, name)
    return check_moment(read_moment_or_date(text, name), name) if text else None


def _parse_member(kind: Any, asked: Mapping[str, Sequence[str]], name: str, default: Any) -> Any:
    text = _first_value(asked, name)
    if not text:
        return default
    if text not in set(kind):
        raise Invalid(errors=[FieldError(name, f"one of {', '.join(kind)} is needed")])
    return kind(text)
