"""A search request."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from vault.cubes.filters import asks_for_messages, names_type
from vault.retrieval.fusion import DENSE, GRAPH, HYBRID, LEXICAL, Weights
from vault.vocabulary import Layer, MemoryType, Preference, SearchMode, State

SHOWN = (State.GENERATED, State.ACTIVATED)
PREFERRED = 0.3  # weight of trust in a search that prefers official or personal statements
WEIGHTS = {
    SearchMode.LEXICAL: LEXICAL,
    SearchMode.DENSE: DENSE,
    SearchMode.GRAPH: GRAPH,
    SearchMode.TAG: LEXICAL,  # has no use for weights
}


@dataclass(frozen=True)
class SearchQuery:
    """A search request. top_k: 1..MAX_TOP_K; min_score: 0..1; as_of: memories as of that time (vault/cubes/as_of.py).

    is_use: the search counts as a use of its results; false while a person types. weights: replace those of the mode.
    conversation_id: the conversation that asks. prefer: the statements to rank first among matching ones.
    with_messages: also return messages that state nothing, such as "At the market" after a question. is_filled: where
    fewer match, the newest memories fill the list. With both personas and namespaces, the search returns the memories
    of either.
    """

    query: str = field(repr=False)
    top_k: int = 10
    mode: SearchMode = SearchMode.HYBRID
    namespaces: tuple[str, ...] = ()
    personas: tuple[str, ...] = ()
    session_id: str = ""
    task_id: str = ""
    layers: tuple[Layer, ...] = ()
    types: tuple[MemoryType, ...] = ()
    filters: Mapping[str, Any] | None = None
    as_of: datetime | None = None
    min_score: float = 0.0
    include_archived: bool = False
    is_use: bool = True
    weights: Weights | None = None
    conversation_id: UUID | None = None
    prefer: Preference | None = None
    with_messages: bool = False
    is_filled: bool = True

    @property
    def restricting_namespaces(self) -> tuple[str, ...]:
        """The namespaces outside of which nothing is returned; none if the search names personas too."""
        return () if self.personas else self.namespaces

    @property
    def added_namespaces(self) -> tuple[str, ...]:
        """The namespaces whose memories are returned beside those of the personas."""
        return self.namespaces if self.personas else ()

    @property
    def is_open(self) -> bool:
        """Return whether the search is restricted by no namespace, session, task or filter."""
        return not (self.restricting_namespaces or self.session_id or self.task_id or self.filters)

    @property
    def has_namespaces(self) -> bool:
        """Return whether namespaces restrict the search, directly or in its filters."""
        return bool(self.restricting_namespaces) or _has_leaf(self.filters, "namespace")

    @property
    def names_type(self) -> bool:
        """Return whether a filter names the type of memories; otherwise caches and adapters are left out."""
        return names_type(self.filters)

    @property
    def asks_for_messages(self) -> bool:
        """Return whether the search may return messages that state nothing."""
        return self.with_messages or asks_for_messages(self.filters)

    @property
    def part_weights(self) -> Weights:
        """The search's own weights, else those of its mode."""
        weights = self.weights or WEIGHTS.get(self.mode) or current_weights()
        return weights if self.prefer is None else replace(weights, trust=max(weights.trust, PREFERRED))


def current_weights() -> Weights:
    """Return the weights of a hybrid search that the operator configured. The learned weights were trained with the
    default weight of vectors, so another one turns them off."""
    configured: dict[str, float] = settings.MEMOS_SEARCH_WEIGHTS
    learned = 0.0 if "dense" in configured else HYBRID.learned
    return replace(HYBRID, learned=learned, **configured)


def _has_leaf(body: Any, name: str) -> bool:
    """Return whether a filter has a leaf of this name."""
    if isinstance(body, Mapping):
        return any(key == name or _has_leaf(value, name) for key, value in body.items())
    return isinstance(body, list) and any(_has_leaf(part, name) for part in body)
