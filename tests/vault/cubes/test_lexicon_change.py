"""Tests of memories that were stored before a change of the lexicon: no term stays behind."""

from collections.abc import Callable

import psycopg
import pytest

from governance.database import acting
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.cubes.writer import builder
from vault.index.terms import MemoryTexts, TextIndex, text_index
from vault.models import Posting

Superuser = Callable[[], psycopg.Connection]
NEW = 7_000_000_000  # a term that the present lexicon gives every text


@pytest.fixture
def deleted(alice: Contract, monkeypatch: pytest.MonkeyPatch) -> str:
    """A memory that was stored and deleted before the lexicon changed."""
    message = {"role": "user", "name": "José", "content": "The quokka met Grübel on 12 May."}
    body = {"messages": [message], "infer": False, "namespace": "/team"}
    memory_id: str = alice.post("memories/", body).json["results"][0]["id"]
    run_jobs()
    assert alice.delete(f"memories/{memory_id}/").status == 204

    def index_with_new_term(maker: object, words: MemoryTexts) -> TextIndex:
        found = text_index(maker, words)  # type: ignore[arg-type]
        found.words[NEW] = 1
        return found

    monkeypatch.setattr(builder, "text_index", index_with_new_term)
    return memory_id


def count_terms(world: World, memory_id: str) -> int:
    with acting(world.alice.actor):
        return Posting.objects.filter(cube_id=memory_id).count()


def test_restored_memory_of_an_old_lexicon_leaves_no_term_when_deleted(
    world: World, alice: Contract, deleted: str
) -> None:
    for _ in range(2):
        assert alice.post(f"memories/{deleted}/restore/").status == 200
        assert [hit["id"] for hit in alice.search("quokka", min_score=0.01)] == [deleted]
        assert alice.delete(f"memories/{deleted}/").status == 204
        assert count_terms(world, deleted) == 0


def test_restored_memory_of_an_old_lexicon_leaves_no_term_when_purged(
    world: World, alice: Contract, deleted: str
) -> None:
    assert alice.post(f"memories/{deleted}/restore/").status == 200
    assert alice.delete(f"memories/{deleted}/?purge=true").status == 204
    assert count_terms(world, deleted) == 0


def test_restored_memory_of_an_old_lexicon_is_indexed_anew_when_changed(
    world: World, alice: Contract, deleted: str
) -> None:
    assert alice.post(f"memories/{deleted}/restore/").status == 200
    assert alice.patch(f"memories/{deleted}/", {"content": "The lynx slept."}, if_match='"1"').status == 200
    assert [hit["id"] for hit in alice.search("lynx", min_score=0.01)] == [deleted]
    assert alice.search("quokka", min_score=0.01) == []
    assert alice.delete(f"memories/{deleted}/?purge=true").status == 204
    assert count_terms(world, deleted) == 0


def test_restored_memory_of_an_old_lexicon_leaves_no_term_when_redacted(
    world: World, olivia: Contract, alice: Contract, deleted: str
) -> None:
    assert alice.post(f"memories/{deleted}/restore/").status == 200
    assert olivia.post(f"memories/{deleted}/redact/", {"version": 1}).status == 200
    assert count_terms(world, deleted) == 0
    assert alice.search("quokka", filters={"speaker": {"contains": "Jose"}}) == []
