"""A plugin of pytest that runs the store tests of langgraph-checkpoint-sqlite on `MemosStore` instead of its stores.

`pytest -p published_store_tests` in the folder of the package's source distribution. Each store begins empty: it has a
root of its own.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import pytest
from langgraph.store.base import BaseStore, Op, Result, SearchOp, TTLConfig
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore
from memos_client import Memos
from memos_client.langgraph import MemosStore

# Tests of SQLite itself, of vectors of single characters, or of what a test store has beside a store's methods.
OTHERS = {
    "test_large_batches_async": "sends 6,000 operations at once, to measure a load",
    "test_no_running_loop": "methods of MemosStore that block work in a loop, too",
    "test_vector_store_initialization": "asks for the embedder of SqliteStore",
    "test_vector_search_with_filters": "expects an embedder that counts characters",
    "test_embed_with_path": "expects an embedder that counts characters",
    "test_embed_with_path_operation_config": "expects an embedder that counts characters",
    "test_scores": "expects an embedder that counts characters",
    "test_ttl_sweeper": "reads the tables of SQLite",
    "test_async_ttl_sweeper": "reads the tables of SQLite",
    "test_ttl_refresh": "counts the rows that a sweep of SqliteStore deletes",
    "test_async_ttl_refresh": "counts the rows that a sweep of SqliteStore deletes",
    "test_ttl_override_default": "SqliteStore ignores BaseStore's default, by which a read refreshes a time to live",
    "test_sql_injection_vulnerability": "expects an error for a name that SqliteStore cannot ask for",
    "test_filter_keys_with_hyphens_and_digits": "dotted names in filters are an addition of SqliteStore",
    "test_nonnull_migrations": "reads the tables of SQLite",
    "test_escape_glob_literal": "tests a function of SqliteStore",
    "test_namespace_match_pattern": "tests a function of SqliteStore",
    "test_list_namespaces_prefix_uses_indexable_condition": "tests a function of SqliteStore",
}


def _wait_for_vectors(root: str) -> None:
    """Return when each item below `root` has its vector. Raises TimeoutError after 30 seconds."""
    end = time.monotonic() + 30
    with Memos() as memos:
        while any(item.raw["pending_embedding"] for item in memos.memories(filters={"namespace": {"under": root}})):
            if time.monotonic() > end:
                raise TimeoutError(root)
            time.sleep(0.1)


class TestedStore(MemosStore):
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Search once all items have their vectors: until then, the order of what is found may change."""
        asked = list(ops)
        if any(isinstance(op, SearchOp) and op.query for op in asked):
            _wait_for_vectors(self._root)
        return super().batch(asked)

    def setup(self) -> None:
        """Prepare nothing."""

    def sweep_ttl(self) -> int:
        """Delete nothing: the server does."""
        return 0


class AsyncTestedStore(MemosStore):
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Search once all items have their vectors: until then, the order of what is found may change."""
        asked = list(ops)
        if any(isinstance(op, SearchOp) and op.query for op in asked):
            await asyncio.to_thread(_wait_for_vectors, self._root)
        return await super().abatch(asked)

    async def setup(self) -> None:
        """Prepare nothing."""

    async def sweep_ttl(self) -> int:
        """Delete nothing: the server does."""
        return 0


@pytest.fixture(autouse=True)
def _memos_store(monkeypatch: pytest.MonkeyPatch) -> None:
    roots: dict[str, str] = {}  # by file, so that a file that is opened twice is one store

    def options(name: str, ttl: TTLConfig | None, index: Mapping[str, Any] | None) -> dict[str, Any]:
        new = f"/tests/{uuid4().hex[:8]}"
        root = new if name == ":memory:" else roots.setdefault(name, new)
        return {"root": root, "ttl": ttl, "fields": (index or {}).get("text_fields")}

    @contextmanager
    def opened(name: str, *, index: Any = None, ttl: TTLConfig | None = None) -> Iterator[BaseStore]:
        yield TestedStore(**options(name, ttl, index))

    @asynccontextmanager
    async def opened_async(name: str, *, index: Any = None, ttl: TTLConfig | None = None) -> AsyncIterator[BaseStore]:
        yield AsyncTestedStore(**options(name, ttl, index))

    monkeypatch.setattr(SqliteStore, "from_conn_string", staticmethod(opened))
    monkeypatch.setattr(AsyncSqliteStore, "from_conn_string", staticmethod(opened_async))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "flaky: of a plugin that the package's developers use")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if getattr(item, "originalname", "") in OTHERS or "[file]" in item.name]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
