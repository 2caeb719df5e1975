"""`MemosStorage` in CrewAI's unified `Memory`, without a language model."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from memos_client.crewai import MemosStorage


@pytest.fixture
def storage(name: str) -> MemosStorage:
    return MemosStorage(root=f"/{name}")


def record(content: str, scope: str = "/", **more: object) -> MemoryRecord:
    return MemoryRecord.model_validate({"content": content, "scope": scope, **more})


def test_records_come_back_as_they_were(storage: MemosStorage) -> None:
    assert isinstance(storage, StorageBackend)
    saved = record(
        "Tom likes tea.",
        "/crew/my team",
        categories=["drinks", "people"],
        metadata={"page": 7, "source": "chat"},
        importance=0.75,
        source="tom",
        private=True,
    )
    storage.save([saved])
    assert storage.get_record(saved.id) == saved
    changed = saved.model_copy(update={"content": "Tom likes coffee.", "scope": "/crew", "categories": ["drinks"]})
    storage.update(changed)
    assert storage.get_record(saved.id) == changed
    assert storage.list_records() == [changed]
    assert storage.get_record("unknown") is None


def test_scopes_categories_and_criteria(storage: MemosStorage) -> None:
    old = datetime.now(UTC) - timedelta(days=9)
    storage.save(
        [
            record("Root."),
            record("One.", "/a", categories=["x"], metadata={"k": "v"}),
            record("Two.", "/a/b", categories=["x", "y"], metadata={"k": "V"}),
            record("Three.", "/ab", created_at=old),
        ]
    )
    assert (storage.count(), storage.count("/a"), storage.count("/nowhere")) == (4, 2, 0)
    assert (storage.list_scopes(), storage.list_scopes("/a")) == (["/a", "/ab"], ["/a/b"])
    assert storage.list_categories("/a") == {"x": 2, "y": 1}
    info = storage.get_scope_info("/a")
    assert (info.record_count, info.categories, info.child_scopes) == (2, ["x", "y"], ["/a/b"])
    assert [found.content for found in storage.list_records(limit=2, offset=2)] == ["Root.", "Three."]
    assert storage.delete(metadata_filter={"k": "v"}) == 1
    assert storage.delete(older_than=datetime.now(UTC) - timedelta(days=1)) == 1
    assert storage.delete(categories=["y"]) == 1
    storage.reset()
    assert storage.count() == 0


def test_search_is_by_the_text_of_a_question(storage: MemosStorage) -> None:
    storage.save(
        [record("The heron nests on the north island.", "/birds"), record("The ferry leaves at eight.", "/sea")]
    )
    (vector,) = storage.embed(["Where does the heron nest?"])
    assert storage.embed(["Where does the heron nest?"]) == [vector]
    (found, score), *_ = storage.search(vector)
    assert found.content == "The heron nests on the north island."
    assert 0 < score <= 1
    assert [found.scope for found, _ in storage.search(vector, scope_prefix="/sea")] == ["/sea"]
    assert asyncio.run(storage.asearch(vector, metadata_filter={"k": "v"})) == []
    with pytest.raises(ValueError, match=r"storage\.embed"):
        storage.search([0.5] * 32)


def test_memory_of_crewai_remembers_recalls_and_forgets(storage: MemosStorage) -> None:
    memory = Memory(storage=storage, embedder=storage.embed)
    given = {"scope": "/people", "categories": ["drinks"], "importance": 0.8}
    memory.remember("Tom likes green tea.", **given)  # type: ignore[arg-type]
    memory.remember("Anna sails on Sundays.", scope="/people", categories=["sport"], importance=0.5)
    matches = memory.recall("What does Tom like to drink?", depth="shallow", limit=1)
    assert [match.record.content for match in matches] == ["Tom likes green tea."]
    assert memory.forget(scope="/people") == 2
    assert memory.recall("Tom", depth="shallow") == []
