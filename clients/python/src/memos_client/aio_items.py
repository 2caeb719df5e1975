"""Items of a key-value store, by the client to await. `items.py` is made from it by `python make_blocking.py`."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from memos_client.aio import AsyncMemos
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


class AsyncItems:
    """JSON values by namespace and key, below the path `root`. Each item is a memory in the namespace of its labels."""

    def __init__(self, memos: AsyncMemos, root: str) -> None:
        self._memos = memos
        self.root = root.rstrip("/")

    async def get(self, places: Iterable[Place], *, refresh: frozenset[Place] = frozenset()) -> dict[Place, StoredItem]:
        """The items at these places that exist. `refresh`: the places whose time to live begins anew."""
        found = await self._find(places)
        items = {place: copies[0] for place, copies in found.items()}
        await self._refresh(item for place, item in items.items() if place in refresh)
        return items

    async def put(self, items: Sequence[NewItem]) -> None:
        """Store, replace or delete items; of two at one place the last one counts."""
        wanted = {(item.namespace, item.key): item for item in items}
        found = await self._find(wanted)
        new = [item for place, item in wanted.items() if item.value is not None and place not in found]
        for place, copies in found.items():
            await self._write_over(copies, wanted[place])
        await self._add(new)

    async def search(
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
            async for item in self._candidates(where, query, hits):
                if matches is None or matches(item):
                    found.append(item)
                if len(found) >= offset + limit:
                    break
        chosen = found[offset : offset + limit]
        if refresh:
            await self._refresh(chosen)
        return chosen

    async def namespaces(self, prefix: Sequence[str] = ()) -> list[tuple[str, ...]]:
        """The namespaces at `prefix` and below in which items were stored, in order."""
        path = path_of_labels(self.root, prefix)
        found = [labels_of_path(self.root, space.path) async for space in self._memos.namespaces(path)]
        return sorted(labels for labels in found if labels)

    async def _candidates(self, where: Mapping[str, Any], query: str | None, most: int) -> AsyncIterator[StoredItem]:
        """Each item that the server's filter lets pass, once; `most`: how many of them are ranked by the query."""
        seen = set[str]()
        if query and query.strip():
            hits = await self._memos.search(query[:LONGEST_CONTENT], limit=most, filters=where)
            for hit in hits:
                seen.add(hit.id)
                if item := item_of(self.root, hit):
                    yield item
            if len(hits) < most:
                return
        async for memory in self._memos.memories(filters=where, page_size=PAGE):
            if memory.id not in seen and (item := item_of(self.root, memory)):
                yield item

    async def _find(self, places: Iterable[Place]) -> dict[Place, list[StoredItem]]:
        """The items at these places, newest first: more than one where two clients stored a new one at once."""
        found = defaultdict[Place, list[StoredItem]](list)
        wanted = set(places)
        for part in parts_of(sorted(wanted), LOOKUPS):
            asked = [{"namespace": path_of_labels(self.root, labels), f"metadata.{KEY}": key} for labels, key in part]
            async for memory in self._memos.memories(filters={"OR": asked}, page_size=PAGE):
                item = item_of(self.root, memory)
                if item and (item.namespace, item.key) in wanted:  # the server ignores case
                    found[item.namespace, item.key].append(item)
        return dict(found)

    async def _write_over(self, copies: Sequence[StoredItem], item: NewItem) -> None:
        newest, *others = copies
        gone = copies if item.value is None else others
        if item.value is not None:
            try:
                await self._memos.update(newest.memory, overwrite=True, expires_at=expiry(item.ttl), **fields_of(item))
            except NotFound:  # somebody deleted it since
                await self._add([item])
        for copy in gone:
            await self._delete(copy)

    async def _add(self, items: Sequence[NewItem]) -> None:
        """Store new items: few of them one by one, because a server carries out two bulk additions at once."""
        drafts = [draft_of(self.root, item) for item in items]
        if len(drafts) <= FEW:
            for draft in drafts:
                await self._memos.add(**draft)
            return
        for part in parts_of(drafts, MOST_NEW):
            await self._memos.add_all(part)

    async def _delete(self, item: StoredItem) -> None:
        try:
            await self._memos.delete(item.memory.id)
        except NotFound:
            return  # somebody else deleted it

    async def _refresh(self, items: Iterable[StoredItem]) -> None:
        for item in items:
            if is_worth_a_refresh(item):
                try:
                    await self._memos.update(item.memory, overwrite=True, expires_at=expiry(item.ttl))
                except NotFound:
                    continue  # it expired, or was deleted, since
