"""Items of a key-value store, by the client that blocks. Made from `aio_items.py` by `python make_blocking.py`: change that file."""

from collections import defaultdict
from collections.abc import Iterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from memos_client.blocking import Memos
from memos_client.errors import NotFound
from memos_client.item_rules import (
    KEY,
    LONGEST_CONTENT,
    LOOKUPS,
    NewItem,
    Place,
    StoredItem,
    draft_of,
    expiry,
    fields_of,
    is_worth_a_refresh,
    item_of,
    labels_of_path,
    parts_of,
    path_of_labels,
)

MOST_HITS = 100  # results of one search
MOST_NEW = 1_000  # memories of one request
FEW = 10
PAGE = 200


class Items:
    """JSON values by namespace and key, below the path `root`. Each item is a memory in the namespace of its labels."""

    def __init__(self, memos: Memos, root: str) -> None:
        self._memos = memos
        self.root = root.rstrip("/")

    def get(self, places: Iterable[Place], *, refresh: frozenset[Place] = frozenset()) -> dict[Place, StoredItem]:
        """The items at these places that exist. `refresh`: the places whose time to live begins anew."""
        found = self._find(places)
        items = {place: copies[0] for place, copies in found.items()}
        self._refresh(item for place, item in items.items() if place in refresh)
        return items

    def put(self, items: Sequence[NewItem]) -> None:
        """Store, replace or delete items; of two at one place the last one counts."""
        wanted = {(item.namespace, item.key): item for item in items}
        found = self._find(wanted)
        new = [item for place, item in wanted.items() if item.value is not None and place not in found]
        for place, copies in found.items():
            self._write_over(copies, wanted[place])
        self._add(new)

    def search(
        self,
        prefix: Sequence[str],
        *,
        query: str | None = None,
        conditions: Sequence[Mapping[str, Any]] = (),
        matches: Callable[[StoredItem], bool] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[StoredItem]:
        """Items at `prefix` and below: with a query the best first, then the others; without, the newest first.

        conditions: filters that the server applies; matches: what else must hold.
        """
        where = {"AND": [{"namespace": {"under": path_of_labels(self.root, prefix)}}, *conditions]}
        found: list[StoredItem] = []
        if limit > 0:
            hits = MOST_HITS if matches else min(MOST_HITS, offset + limit)
            for item in self._candidates(where, query, hits):
                if matches is None or matches(item):
                    found.append(item)
                if len(found) >= offset + limit:
                    break
        chosen = found[offset : offset + limit]
        if refresh:
            self._refresh(chosen)
        return chosen

    def namespaces(self, prefix: Sequence[str] = ()) -> list[tuple[str, ...]]:
        """The namespaces at `prefix` and below in which items were stored, in order."""
        path = path_of_labels(self.root, prefix)
        found = [labels_of_path(self.root, space.path) for space in self._memos.namespaces(path)]
        return sorted(labels for labels in found if labels)

    def _candidates(self, where: Mapping[str, Any], query: str | None, most: int) -> Iterator[StoredItem]:
        """Each item that the server's filter lets pass, once; `most`: how many of them are ranked by the query."""
        seen = set[str]()
        if query and query.strip():
            hits = self._memos.search(query[:LONGEST_CONTENT], limit=most, filters=where)
            for hit in hits:
                seen.add(hit.id)
                if item := item_of(self.root, hit):
                    yield item
            if len(hits) < most:
                return
        for memory in self._memos.memories(filters=where, page_size=PAGE):
            if memory.id not in seen and (item := item_of(self.root, memory)):
                yield item

    def _find(self, places: Iterable[Place]) -> dict[Place, list[StoredItem]]:
        """The items at these places, newest first: more than one where two clients stored a new one at once."""
        found = defaultdict[Place, list[StoredItem]](list)
        wanted = set(places)
        for part in parts_of(sorted(wanted), LOOKUPS):
            asked = [{"namespace": path_of_labels(self.root, labels), f"metadata.{KEY}": key} for labels, key in part]
            for memory in self._memos.memories(filters={"OR": asked}, page_size=PAGE):
                item = item_of(self.root, memory)
                if item and (item.namespace, item.key) in wanted:  # the server ignores case
                    found[item.namespace, item.key].append(item)
        return dict(found)

    def _write_over(self, copies: Sequence[StoredItem], item: NewItem) -> None:
        newest, *others = copies
        gone = copies if item.value is None else others
        if item.value is not None:
            try:
                self._memos.update(newest.memory, overwrite=True, expires_at=expiry(item.ttl), **fields_of(item))
            except NotFound:  # somebody deleted it since
                self._add([item])
        for copy in gone:
            self._delete(copy)

    def _add(self, items: Sequence[NewItem]) -> None:
        """Store new items: few of them one by one, because a server carries out two bulk additions at once."""
        drafts = [draft_of(self.root, item) for item in items]
        if len(drafts) <= FEW:
            for draft in drafts:
                self._memos.add(**draft)
            return
        for part in parts_of(drafts, MOST_NEW):
            self._memos.add_all(part)

    def _delete(self, item: StoredItem) -> None:
        try:
            self._memos.delete(item.memory.id)
        except NotFound:
            return  # somebody else deleted it

    def _refresh(self, items: Iterable[StoredItem]) -> None:
        for item in items:
            if is_worth_a_refresh(item):
                try:
                    self._memos.update(item.memory, overwrite=True, expires_at=expiry(item.ttl))
                except NotFound:
                    continue  # it expired, or was deleted, since
