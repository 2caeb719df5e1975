"""A store of LangGraph whose items are memories: `MemosStore`. Install the extra `langgraph`."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypedDict

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from memos_client.adapters import Clients
from memos_client.aio import AsyncMemos
from memos_client.aio_items import AsyncItems
from memos_client.blocking import Memos
from memos_client.item_rules import NewItem, Place, StoredItem, server_conditions, text_of_value
from memos_client.items import Items
from memos_client.models import Json

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class MemosStore(BaseStore):
    """Keeps items as memories below the path `root`, each namespace in a namespace of its own.

    memos, async_memos: the clients; without them, MEMOS_URL and MEMOS_API_KEY say where to. fields: the paths in a
    value that searches read, as LangGraph's `index`; without them the whole value. ttl: as of LangGraph; the server
    deletes what has expired.
    """

    supports_ttl = True

    def __init__(
        self,
        memos: Memos | None = None,
        async_memos: AsyncMemos | None = None,
        *,
        root: str = "/langgraph",
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._clients = Clients(memos, async_memos)
        self._root = root
        self._fields = fields
        self.ttl_config = ttl

    @cached_property
    def _items(self) -> Items:
        return Items(self._clients.memos, self._root)

    @cached_property
    def _async_items(self) -> AsyncItems:
        return AsyncItems(self._clients.async_memos, self._root)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; reads see what was stored before the batch. Raises MemosError; ValueError."""
        asked = _checked(ops)
        got = self._items.get(_places(asked), refresh=_refreshed(asked))
        results: list[Result] = []
        for op in asked:
            if isinstance(op, SearchOp):
                results.append(_hits(self._items.search(op.namespace_prefix, **_search_of(op))))
            elif isinstance(op, ListNamespacesOp):
                results.append(_listed(op, self._items.namespaces(_literal_prefix(op))))
            else:
                results.append(_item(got.get((op.namespace, op.key))) if isinstance(op, GetOp) else None)
        self._items.put(self._new_items(asked))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; reads see what was stored before the batch. Raises MemosError; ValueError."""
        asked = _checked(ops)
        got = await self._async_items.get(_places(asked), refresh=_refreshed(asked))
        results: list[Result] = []
        for op in asked:
            if isinstance(op, SearchOp):
                results.append(_hits(await self._async_items.search(op.namespace_prefix, **_search_of(op))))
            elif isinstance(op, ListNamespacesOp):
                results.append(_listed(op, await self._async_items.namespaces(_literal_prefix(op))))
            else:
                results.append(_item(got.get((op.namespace, op.key))) if isinstance(op, GetOp) else None)
        await self._async_items.put(self._new_items(asked))
        return results

    def _new_items(self, ops: Sequence[Op]) -> list[NewItem]:
        puts = [op for op in ops if isinstance(op, PutOp)]
        return [NewItem(op.namespace, op.key, op.value, self._text(op), op.ttl) for op in puts]

    def _text(self, op: PutOp) -> str:
        """The part of a value that searches read: nothing with `index=False`, else the fields, else all."""
        if op.value is None or op.index is False:
            return ""
        paths = self._fields if op.index is None else op.index
        if not paths or "$" in paths:
            return text_of_value(op.value)
        return "\n".join(text for path in paths for text in get_text_at_path(op.value, tokenize_path(path)))


class _Search(TypedDict):
    """Arguments of `Items.search`."""

    query: str | None
    conditions: list[Json]
    matches: Callable[[StoredItem], bool] | None
    limit: int
    offset: int
    refresh: bool


def _checked(ops: Iterable[Op]) -> list[Op]:
    """The operations, with namespaces as tuples. Raises InvalidNamespaceError; ValueError for an unknown operation."""
    checked: list[Op] = []
    for op in ops:
        if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
            raise ValueError(f"Unknown operation type: {type(op)}")
        validate_op_namespace(op)
        checked.append(op._replace(namespace=tuple(op.namespace)) if isinstance(op, GetOp | PutOp) else op)
    return checked


def _places(ops: Iterable[Op]) -> list[Place]:
    return [(op.namespace, op.key) for op in ops if isinstance(op, GetOp)]


def _refreshed(ops: Iterable[Op]) -> frozenset[Place]:
    return frozenset((op.namespace, op.key) for op in ops if isinstance(op, GetOp) and op.refresh_ttl)


def _search_of(op: SearchOp) -> _Search:
    asked = op.filter or {}
    return {
        "query": op.query,
        "conditions": server_conditions(asked),
        "matches": (lambda item: _is_match(item.value, asked)) if asked else None,
        "limit": op.limit,
        "offset": op.offset,
        "refresh": op.refresh_ttl,
    }


def _is_match(value: Any, asked: Any) -> bool:
    """True where a value fits a filter, compared as LangGraph's InMemoryStore compares."""
    if isinstance(asked, Mapping):
        if any(name.startswith("$") for name in asked):
            return all(_is_comparison_true(value, name, bound) for name, bound in asked.items())
        return isinstance(value, Mapping) and all(_is_match(value.get(name), part) for name, part in asked.items())
    if isinstance(asked, list | tuple):
        return isinstance(value, list) and len(value) == len(asked) and all(map(_is_match, value, asked))
    return bool(value == asked)


def _is_comparison_true(value: Any, name: str, bound: Any) -> bool:
    """Compare numbers as numbers and texts as texts; values of different kinds have no order. Raises ValueError."""
    if name in {"$eq", "$ne"}:
        return bool(value == bound) is (name == "$eq")
    if name not in COMPARISONS:
        raise ValueError(f"Unsupported operator: {name}")
    numbers = isinstance(value, int | float) and isinstance(bound, int | float)
    texts = isinstance(value, str) and isinstance(bound, str)
    return (numbers or texts) and COMPARISONS[name](value, bound)


def _literal_prefix(op: ListNamespacesOp) -> tuple[str, ...]:
    """The labels, without wildcards, that all wanted namespaces begin with."""
    for condition in op.match_conditions or ():
        if condition.match_type == "prefix":
            labels = tuple(condition.path)
            return labels[: labels.index("*")] if "*" in labels else labels
    return ()


def _listed(op: ListNamespacesOp, namespaces: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    found = [labels for labels in namespaces if all(_does_fit(labels, part) for part in op.match_conditions or ())]
    if op.max_depth is not None:
        found = sorted({labels[: op.max_depth] for labels in found})
    return found[op.offset : op.offset + op.limit]


def _does_fit(labels: tuple[str, ...], condition: MatchCondition) -> bool:
    size = len(condition.path)
    part = labels[:size] if condition.match_type == "prefix" else labels[len(labels) - size :]
    return len(labels) >= size and all(
        wanted in {"*", label} for wanted, label in zip(condition.path, part, strict=True)
    )


def _item(item: StoredItem | None) -> Item | None:
    if item is None:
        return None
    times = {"created_at": item.created_at, "updated_at": item.updated_at}
    return Item(value=item.value, key=item.key, namespace=item.namespace, **times)


def _hits(items: Iterable[StoredItem]) -> list[SearchItem]:
    return [
        SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, item.score) for item in items
    ]
