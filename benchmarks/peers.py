"""mem0 for comparison: on the same PostgreSQL (in its own database), with the same embedder, without any language
model.

Only requirements/bench.txt installs it; without it the result says so. For fairness, its pool prepares no statements (a
generic plan would return too few rows), its threshold is 0 so that no row is dropped, its telemetry is off, and its own
vector store loads rows in batches.
"""

import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool

from benchmarks.databases import superuser_conninfo
from benchmarks.floor import Asked
from benchmarks.locomo import Turn
from vault.providers.registry import embedder

DATABASE = "benchmark_mem0"
BATCH = 1_000


class SameEmbedder:
    """The product's embedder with mem0's embedder interface."""

    def __init__(self, config: object = None) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = embedder().embed([text])[0].tolist()
        return vector


class NoLlm:
    """A model with mem0's model interface that raises an error on every call."""

    def __init__(self, config: object = None) -> None:
        self.config = config

    def generate_response(self, *args: object, **kwargs: object) -> str:
        raise RuntimeError("mem0 asked for a language model, although infer=False")


@dataclass(frozen=True)
class Mem0:
    """One collection of mem0."""

    memory: Any
    collection: str

    def add(self, turn: Turn, user: str) -> float:
        """Add a turn with `add(infer=False)`, and return the milliseconds."""
        message = {"role": "user", "name": turn.speaker, "content": turn.text}
        started = time.perf_counter()
        self.memory.add([message], user_id=user, infer=False, metadata=_metadata(turn))
        return (time.perf_counter() - started) * 1000

    def search(self, question: str, user: str, limit: int) -> Asked:
        started = time.perf_counter()
        found = self._results(question, user, limit)
        return Asked((time.perf_counter() - started) * 1000, len(found))

    def turns(self, question: str, user: str, limit: int) -> list[str]:
        """Return the ids of the found turns, best first."""
        return [result["metadata"]["message_id"] for result in self._results(question, user, limit)]

    def fill(self, turns: Sequence[Turn], user: str) -> None:
        """Load `turns` in the format of mem0's own `add`, unless they are loaded already."""
        store = self.memory.vector_store
        present = len(store.list(filters={"user_id": user}, top_k=len(turns) + 1)[0])
        for start in range(present, len(turns), BATCH):
            batch = turns[start : start + BATCH]
            store.insert(
                vectors=[vector.tolist() for vector in embedder().embed([turn.text for turn in batch])],
                payloads=[_payload(turn, user) for turn in batch],
                ids=[str(uuid4()) for _ in batch],
            )

    def vacuum(self) -> None:
        """Vacuum and analyse its table, as the product's tables are before searches."""
        conninfo = superuser_conninfo(DATABASE)
        assert conninfo is not None  # or there would be no collection
        with psycopg.connect(conninfo, autocommit=True) as superuser:
            superuser.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(self.collection)))

    def _results(self, question: str, user: str, limit: int) -> list[dict[str, Any]]:
        found: dict[str, list[dict[str, Any]]] = self.memory.search(
            question, top_k=limit, filters={"user_id": user}, threshold=0.0
        )
        return found["results"]


def why_no_mem0() -> str | None:
    """Return one line about what is missing to measure mem0; None if nothing is."""
    if find_spec("mem0") is None:
        return "not installed: pip install -r requirements/bench.txt"
    if superuser_conninfo(DATABASE) is None:
        return "needs the embedded PostgreSQL, to make a database of its own"
    return None


@contextmanager
def mem0(collection: str) -> Iterator[Mem0]:
    """Yield the collection of this name, created if missing."""
    _ensure_database()
    with tempfile.TemporaryDirectory(prefix="memos-mem0-") as folder, _pool() as pool:
        yield Mem0(_memory(Path(folder), pool, collection), collection)


def mem0_version() -> str:
    return version("mem0ai")


def _ensure_database() -> None:
    conninfo = superuser_conninfo("postgres")
    assert conninfo is not None  # see why_no_mem0
    with psycopg.connect(conninfo, autocommit=True) as superuser:
        if superuser.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
            superuser.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


@contextmanager
def _pool() -> Iterator[ConnectionPool[Any]]:
    conninfo = superuser_conninfo(DATABASE)
    assert conninfo is not None  # see why_no_mem0
    kwargs = {"prepare_threshold": None}
    with ConnectionPool(conninfo, min_size=1, max_size=5, kwargs=kwargs, open=True) as pool:
        yield pool


def _memory(folder: Path, pool: ConnectionPool[Any], collection: str) -> Any:
    os.environ.update({"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)})  # read when it is imported
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it logs each insert
    from mem0 import Memory
    from mem0.utils.factory import EmbedderFactory, LlmFactory

    # mem0's configuration only accepts known provider names, so these names are reused.
    EmbedderFactory.provider_to_class["langchain"] = f"{__name__}.{SameEmbedder.__name__}"
    LlmFactory.register_provider("langchain", f"{__name__}.{NoLlm.__name__}")
    store = {
        "collection_name": collection,
        "embedding_model_dims": embedder().dimension,
        "connection_pool": pool,
        "hnsw": True,
    }
    return Memory.from_config(
        {
            "vector_store": {"provider": "pgvector", "config": store},
            "embedder": {"provider": "langchain", "config": {}},
            "llm": {"provider": "langchain", "config": {}},
            "history_db_path": str(folder / "history.db"),
        }
    )


def _payload(turn: Turn, user: str) -> dict[str, Any]:
    from mem0.utils.lemmatization import lemmatize_for_bm25

    return {
        "data": turn.text,
        "hash": hashlib.md5(turn.text.encode(), usedforsecurity=False).hexdigest(),
        "created_at": turn.at.isoformat(),
        "updated_at": turn.at.isoformat(),
        "text_lemmatized": lemmatize_for_bm25(turn.text),
        "user_id": user,
        "role": "user",
        "actor_id": turn.speaker,
        **_metadata(turn),
    }


def _metadata(turn: Turn) -> dict[str, Any]:
    return {"session": turn.session, "message_id": turn.id}
