"""A storage of CrewAI's memory whose records are memories: `MemosStorage`. Install the extra `crewai`."""

import asyncio
import hashlib
import random
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord, ScopeInfo

from memos_client.blocking import Memos
from memos_client.item_rules import (
    LONGEST_CONTENT,
    filterable_fields,
    labels_of_path,
    parts_of,
    path_of_labels,
    server_conditions,
)
from memos_client.models import Json, Memory

ID = "crewai_id"  # names in the metadata of a record's memory
RECORD = "crewai_record"
DIMENSIONS = 32
MOST_TEXTS = 10_000  # that `embed` remembers
MOST_NEW = 1_000  # memories of one request
FEW = 10
MOST_HITS = 100
LONGEST_TAG = 100
MOST_TAGS = 50


class MemosStorage(StorageBackend):
    """Keeps records as memories below the path `root`, each scope in a namespace of its own, categories as tags.

    MemOS Web searches by the text of a question, but CrewAI hands its storage the vector of one. So the memory takes
    `embed` as its embedder: `Memory(storage=storage, embedder=storage.embed)`. Its vectors only stand for their texts.
    memos: the client; without it, MEMOS_URL and MEMOS_API_KEY say where to.
    """

    def __init__(self, memos: Memos | None = None, *, root: str = "/crewai") -> None:
        self._memos = memos or Memos()
        self._root = root.rstrip("/")
        self._texts: OrderedDict[tuple[float, ...], str] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, by which `search` knows the text again: the same for the same text."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        seeded = random.Random(hashlib.sha256(text.encode()).digest())
        vector = tuple(seeded.uniform(-1, 1) for _ in range(DIMENSIONS))
        self._texts[vector] = text
        self._texts.move_to_end(vector)
        if len(self._texts) > MOST_TEXTS:
            self._texts.popitem(last=False)
        return list(vector)

    def save(self, records: list[MemoryRecord]) -> None:
        """Store new records. Raises MemosError."""
        drafts = [self._draft(record) for record in records]
        if len(drafts) <= FEW:
            for draft in drafts:
                self._memos.add(**draft)
            return
        for part in parts_of(drafts, MOST_NEW):
            self._memos.add_all(part)

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """The best records for the text of a vector of `embed`, best first. Raises ValueError for another vector."""
        question = self._texts.get(tuple(query_embedding))
        if question is None:
            raise ValueError("The vector is not from this storage: give the memory `embedder=storage.embed`.")
        if not question.strip():
            return []
        where = self._where(scope_prefix, categories, metadata_filter)
        hits = self._memos.search(question[:LONGEST_CONTENT], limit=MOST_HITS, filters=where, min_score=min_score)
        found = [(self._record(hit), hit.score or 0.0) for hit in hits if ID in hit.metadata]
        return [(record, score) for record, score in found if _has(record, metadata_filter)][:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that match all criteria and return their number. Raises MemosError."""
        doomed = [
            memory
            for memory, record in self._matching(scope_prefix, categories, metadata_filter)
            if (record_ids is None or record.id in record_ids)
            and (older_than is None or _aware(record.created_at) < _aware(older_than))
        ]
        for memory in doomed:
            self._memos.delete(memory.id)
        return len(doomed)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of the same id; one that is not stored is added. Raises MemosError."""
        memory = self._memory(record.id)
        if memory is None:
            self.save([record])
            return
        draft = self._draft(record)
        draft.pop("allow_duplicates")
        self._memos.update(memory, overwrite=True, **draft)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        memory = self._memory(record_id)
        return None if memory is None else self._record(memory)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Records at a scope and below, newest first."""
        found = sorted(self._records(scope_prefix), key=lambda record: _aware(record.created_at), reverse=True)
        return found[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """The number, categories and times of the records at a scope and below, and the scopes directly below it."""
        records = list(self._records(scope))
        times = [record.created_at for record in records]
        return ScopeInfo(
            path=_scope(_labels(scope)),
            record_count=len(records),
            categories=sorted({category for record in records for category in record.categories}),
            oldest_record=min(times, key=_aware, default=None),
            newest_record=max(times, key=_aware, default=None),
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes directly below `parent` in which, or below which, something was stored."""
        above = _labels(parent)
        spaces = self._memos.namespaces(path_of_labels(self._root, above))
        below = {labels_of_path(self._root, space.path)[: len(above) + 1] for space in spaces}
        return sorted(_scope(labels) for labels in below if len(labels) > len(above))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The number of records of each category."""
        return dict(Counter(category for record in self._records(scope_prefix) for category in record.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        return self._memos.count(filters=self._where(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope and below. Raises MemosError."""
        self.delete(scope_prefix=scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        return await asyncio.to_thread(
            self.search, query_embedding, scope_prefix, categories, metadata_filter, limit, min_score
        )

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        return await asyncio.to_thread(self.delete, scope_prefix, categories, record_ids, older_than, metadata_filter)

    def _where(
        self, scope: str | None, categories: list[str] | None = None, metadata: dict[str, Any] | None = None
    ) -> Json:
        """The filter for records; of categories any may match, of metadata all must."""
        conditions: list[Json] = [{"namespace": {"under": path_of_labels(self._root, _labels(scope or "/"))}}]
        if categories:
            conditions.append({"tags": {"in": [category[:LONGEST_TAG] for category in categories]}})
        return {"AND": [*conditions, *server_conditions(metadata or {})]}

    def _matching(
        self, scope: str | None, categories: list[str] | None = None, metadata: dict[str, Any] | None = None
    ) -> Iterator[tuple[Memory, MemoryRecord]]:
        for memory in self._memos.memories(filters=self._where(scope, categories, metadata), page_size=200):
            if ID in memory.metadata:
                record = self._record(memory)
                if _has(record, metadata):
                    yield memory, record

    def _records(self, scope: str | None) -> Iterator[MemoryRecord]:
        return (record for _, record in self._matching(scope))

    def _memory(self, record_id: str) -> Memory | None:
        where = {"AND": [*self._where(None)["AND"], {f"metadata.{ID}": record_id}]}
        found = (memory for memory in self._memos.memories(filters=where) if memory.metadata.get(ID) == record_id)
        return next(found, None)

    def _draft(self, record: MemoryRecord) -> Json:
        rest = record.model_dump(mode="json", include={"metadata", "source", "private", "created_at", "last_accessed"})
        content = record.content.strip()[:LONGEST_CONTENT] or "(empty)"
        if content != record.content:
            rest["content"] = record.content
        return {
            "content": content,
            "namespace": path_of_labels(self._root, _labels(record.scope)),
            "tags": [category[:LONGEST_TAG] for category in record.categories if category.strip()][:MOST_TAGS],
            "importance": record.importance,
            "metadata": {
                **filterable_fields(record.metadata),
                ID: record.id,
                RECORD: {**rest, "categories": record.categories},
            },
            "allow_duplicates": True,
        }

    def _record(self, memory: Memory) -> MemoryRecord:
        scope = _scope(labels_of_path(self._root, memory.namespace))
        known = {"id": memory.metadata[ID], "scope": scope, "importance": memory.raw["importance"]}
        return MemoryRecord.model_validate({"content": memory.content, **memory.metadata[RECORD], **known})


def _labels(scope: str) -> tuple[str, ...]:
    return tuple(label for label in scope.split("/") if label)


def _scope(labels: Sequence[str]) -> str:
    return "/" + "/".join(labels)


def _has(record: MemoryRecord, wanted: dict[str, Any] | None) -> bool:
    return all(record.metadata.get(name) == value for name, value in (wanted or {}).items())


def _aware(moment: datetime) -> datetime:
    """CrewAI's times without an offset are in UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
