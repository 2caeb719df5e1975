"""The promises of a search by vectors, the same with vectors in PostgreSQL alone and with copies of them in Milvus."""

import json
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.core.management import call_command
from django.db.models.functions import Now
from django.test import Client
from milvus_lite.server_manager import server_manager_instance
from pytest_django import Settings

from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden
from governance.models import Job, OutboxEvent
from governance.vocabulary import Topic
from memos_web.config import ConfigError, VectorIndexChoice, read_config
from memos_web.management.checks import Failed, nearest_vectors
from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import Contract
from tests.vault.deletion.test_deletion import Superuser, end_grace_period, request_deletion
from tests.vault.embeddings.moves import add_memories, configure, embedded_cubes
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.services import cube_delete, cube_restore, cube_update, cubes_add
from vault.embeddings.index_copies import index_move
from vault.embeddings.model_change import reembedding_start
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import Embedding
from vault.providers.ports import IndexedVector, VectorIndex
from vault.providers.registry import vector_index
from vault.retrieval import external_index
from vault.retrieval.external_index import QUESTIONS
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.vocabulary import Layer, SearchMode

HERON, OTTER, REEDS = "The heron nests by the mill.", "An otter swims in the lake.", "Reeds grow along the shore."
KINGFISHER = "The kingfisher dives."
AWAY = VectorIndexChoice(address="http://127.0.0.1:9", least=1)
ROOT = Path(__file__).parents[3]
FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorIndexChoice]:
    """One file of milvus-lite for all tests, or the server at TEST_MILVUS."""
    path = str(tmp_path_factory.mktemp("milvus") / "vectors.db")
    yield VectorIndexChoice(address=os.environ.get("TEST_MILVUS", path), least=1)
    server_manager_instance.release_server(path)


@pytest.fixture(params=["postgresql", "milvus"])
def index(request: pytest.FixtureRequest) -> str:
    if request.param == "milvus":
        request.getfixturevalue("external")
    return str(request.param)


@pytest.fixture
def external(world: World, settings: Settings, milvus: VectorIndexChoice) -> VectorIndex:
    settings.MEMOS_VECTOR_INDEX = milvus
    found = vector_index()
    assert found is not None
    for tenant in (world.acme, world.other):  # of the test before
        found.delete_tenant(tenant.id)
    return found


def count_answers() -> float:
    return float(QUESTIONS.labels("answered")._value.get())


def search(actor: Actor, question: str, **more: Any) -> list[str]:
    """Return the contents that a search by vectors alone finds with a score, best first."""
    asked = SearchQuery(query=question, mode=SearchMode.DENSE, **more)
    return [hit.view.words.content for hit in memories_search(actor=actor, search=asked) if hit.score > 0.01]


def stored_in(external: VectorIndex, actor: Actor) -> set[UUID]:
    return external.list_cubes(actor.tenant_id, FIRST, LAST)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the failure of another test."""
    monkeypatch.setattr(external_index, "_unavailable_until", 0.0)


def test_nearest_memories_of_the_tenant_rank_first(world: World, index: str) -> None:
    before = count_answers()
    add_memories(world.olivia.actor, HERON, OTTER, REEDS)
    add_memories(world.charlie.actor, HERON, KINGFISHER)
    run_jobs()
    assert search(world.bob.actor, HERON)[0] == HERON
    assert search(world.bob.actor, HERON).count(HERON) == 1
    assert KINGFISHER not in search(world.bob.actor, KINGFISHER)
    assert search(world.charlie.actor, KINGFISHER)[0] == KINGFISHER
    assert (count_answers() > before) is (index == "milvus")


def test_deleted_memory_is_not_searchable_and_a_restored_one_is(world: World, index: str) -> None:
    heron, _ = add_memories(world.olivia.actor, HERON, OTTER)
    run_jobs()
    cube_delete(actor=world.olivia.actor, cube_id=heron)
    assert HERON not in search(world.bob.actor, HERON)  # the index may have it still
    run_jobs()
    assert HERON not in search(world.bob.actor, HERON)
    cube_restore(actor=world.olivia.actor, cube_id=heron)
    run_jobs()
    assert search(world.bob.actor, HERON)[0] == HERON


def test_changed_text_is_searchable_by_its_new_meaning(world: World, index: str) -> None:
    heron, _ = add_memories(world.olivia.actor, HERON, OTTER)
    run_jobs()
    cube_update(actor=world.olivia.actor, cube_id=heron, changes=CubeChanges(content=KINGFISHER), expected_versions=[1])
    run_jobs()
    assert search(world.bob.actor, KINGFISHER)[0] == KINGFISHER
    assert HERON not in search(world.bob.actor, HERON)


def test_filters_and_namespaces_hold(world: World, index: str) -> None:
    old = f"{HERON} It is old."
    drafts = [
        CubeDraft(content=HERON, namespace="/team/birds", tags=("bird",)),
        CubeDraft(content=old, namespace="/team/other", layer=Layer.SHORT_TERM),
    ]
    cubes_add(actor=world.olivia.actor, drafts=drafts)
    run_jobs()
    assert search(world.bob.actor, HERON, namespaces=("/team/other",)) == [old]
    assert search(world.bob.actor, HERON, layers=(Layer.SHORT_TERM,)) == [old]
    assert search(world.bob.actor, HERON, filters={"tags": "bird"}) == [HERON]


def test_passage_of_a_long_text_is_searchable(world: World, index: str) -> None:
    filler = " ".join(f"Row {number} of the ledger lists stones." for number in range(80))
    add_memories(world.olivia.actor, OTTER, f"{filler} {HERON} {filler}")
    run_jobs()
    assert HERON in search(world.bob.actor, "heron mill nest")[0]
    with acting(world.olivia.actor):
        assert Embedding.objects.count() > 2


def test_after_a_change_of_the_model_its_vectors_answer(world: World, index: str, settings: Settings) -> None:
    add_memories(world.olivia.actor, HERON, OTTER)
    run_jobs()
    configure(settings, "universal-sentence-encoder")
    reembedding_start(actor=world.olivia.actor)
    run_jobs()
    before = count_answers()
    assert search(world.bob.actor, HERON)[0] == HERON
    assert (count_answers() > before) is (index == "milvus")


def test_index_has_what_postgresql_has_and_no_more(world: World, external: VectorIndex) -> None:
    heron, otter = add_memories(world.olivia.actor, HERON, OTTER)
    (foreign,) = add_memories(world.charlie.actor, HERON)
    run_jobs()
    assert stored_in(external, world.olivia.actor) == {heron, otter}
    cube_delete(actor=world.olivia.actor, cube_id=heron)
    run_jobs()
    assert stored_in(external, world.olivia.actor) == {otter}
    assert stored_in(external, world.charlie.actor) == {foreign}


class HostileIndex:
    """An index that answers with ids of other tenants, of unknown and of deleted memories."""

    def __init__(self, like: VectorIndex, ids: list[UUID]) -> None:
        self.name, self._ids, self.is_asked = like.name, ids, False

    def nearest(self, *_: Any) -> list[UUID]:
        self.is_asked = True
        return self._ids


def test_foreign_and_deleted_ids_of_a_hostile_index_are_not_shown(
    world: World, external: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    heron, _ = add_memories(world.olivia.actor, HERON, OTTER)
    (foreign,) = add_memories(world.charlie.actor, KINGFISHER)
    run_jobs()
    cube_delete(actor=world.olivia.actor, cube_id=heron)
    hostile = HostileIndex(external, [foreign, heron, UUID(int=7)])
    monkeypatch.setattr(external_index, "vector_index", lambda: hostile)
    assert search(world.bob.actor, OTTER) == [OTTER]  # by comparing all vectors, since too few ids were visible
    assert KINGFISHER not in search(world.bob.actor, KINGFISHER)
    assert hostile.is_asked


def test_what_the_index_names_is_ranked_and_nothing_else_is_compared(
    world: World, external: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearest, *others = add_memories(world.olivia.actor, HERON, *(f"Row {number} of the reeds." for number in range(29)))
    run_jobs()
    assert search(world.bob.actor, HERON)[0] == HERON
    monkeypatch.setattr(external_index, "vector_index", lambda: HostileIndex(external, others))
    assert HERON not in search(world.bob.actor, HERON)
    monkeypatch.setattr(external_index, "vector_index", lambda: HostileIndex(external, [*others, nearest]))
    assert search(world.bob.actor, HERON)[0] == HERON


def test_grants_and_denials_of_single_memories_hold(world: World, index: str, alice: Contract) -> None:
    actor = world.alice.actor
    (own,) = cubes_add(actor=actor, drafts=[CubeDraft(content=OTTER)])
    (shown,) = add_memories(actor, HERON)
    run_jobs()
    assert OTTER not in search(world.bob.actor, OTTER)
    give_grant(alice, world, "bob", "memory", str(own.cube.id))
    give_grant(alice, world, "bob", "memory", str(shown), effect="deny")
    assert search(world.bob.actor, OTTER) == [OTTER]
    assert HERON not in search(world.bob.actor, HERON)


def test_search_goes_on_and_writes_wait_while_the_index_is_away(
    world: World, settings: Settings, milvus: VectorIndexChoice, caplog: pytest.LogCaptureFixture
) -> None:
    settings.MEMOS_VECTOR_INDEX = AWAY
    add_memories(world.olivia.actor, HERON, OTTER)
    run_jobs()
    failed = QUESTIONS.labels("failed")._value.get()
    assert search(world.bob.actor, HERON)[0] == HERON
    assert search(world.bob.actor, OTTER)[0] == OTTER  # without waiting for the index again
    assert QUESTIONS.labels("failed")._value.get() == failed + 1
    assert "searches compare vectors in PostgreSQL for a while" in caplog.text
    with acting(world.olivia.actor):
        event = OutboxEvent.objects.get(topic=Topic.VECTORS_CHANGED, done_at=None)
    assert "VectorIndexUnavailable" in event.last_error


def test_move_fills_the_index_removes_strays_and_leads_back(
    world: World, settings: Settings, milvus: VectorIndexChoice
) -> None:
    ids = add_memories(world.olivia.actor, HERON, OTTER)
    run_jobs()
    settings.MEMOS_VECTOR_INDEX = milvus
    external = vector_index()
    assert external is not None
    stray = IndexedVector(UUID(int=5), 0, "hashing/256", UUID(int=6), np.ones(256, np.float32))
    external.replace(world.acme.id, [stray.cube_id], [stray])
    before = count_answers()
    assert search(world.bob.actor, HERON)[0] == HERON
    assert count_answers() == before  # it is not filled
    assert index_move(actor=world.olivia.actor, is_external=True).started
    assert not index_move(actor=world.olivia.actor, is_external=True).started  # it runs already
    run_jobs()
    assert stored_in(external, world.olivia.actor) == set(ids)
    assert search(world.bob.actor, HERON)[0] == HERON
    assert count_answers() > before
    assert index_move(actor=world.olivia.actor, is_external=False).started
    before = count_answers()
    assert search(world.bob.actor, HERON)[0] == HERON
    run_jobs()
    assert (count_answers(), stored_in(external, world.olivia.actor)) == (before, set())


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_move_by_another_than_owner_or_admin_is_refused_and_writes_nothing(
    world: World, external: VectorIndex, who: str
) -> None:
    add_memories(world.olivia.actor, HERON)
    run_jobs()
    with pytest.raises(Forbidden):
        index_move(actor=world.person(who).actor, is_external=False)
    with acting(world.olivia.actor):
        assert EmbeddingModel.objects.get().vector_index == external.name
        assert not Job.objects.filter(kind=Topic.VECTORS_MOVE).exists()


def test_move_of_one_tenant_changes_no_other(world: World, external: VectorIndex) -> None:
    add_memories(world.olivia.actor, HERON)
    (foreign,) = add_memories(world.charlie.actor, HERON)
    run_jobs()
    index_move(actor=world.olivia.actor, is_external=False)
    run_jobs()
    assert stored_in(external, world.olivia.actor) == set()
    assert stored_in(external, world.charlie.actor) == {foreign}


def test_erased_subject_has_left_the_index_when_the_receipt_is_signed(
    world: World, external: VectorIndex, alice: Contract, olivia: Contract, settings: Settings
) -> None:
    subject = olivia.post("subjects/", {"reference": "customer-4711"}).json["id"]
    about = UUID(alice.add(HERON, namespace="/team", subject="customer-4711")["id"])
    other = UUID(alice.add(OTTER, namespace="/team")["id"])
    run_jobs()
    assert stored_in(external, world.olivia.actor) == {about, other}
    at, settings.MEMOS_VECTOR_INDEX = settings.MEMOS_VECTOR_INDEX, AWAY
    assert olivia.post(f"subjects/{subject}/erase/").status == 202
    run_jobs()
    assert olivia.get(f"subjects/{subject}/").json["receipts"] == []  # the index has not confirmed
    settings.MEMOS_VECTOR_INDEX = at
    make_due(world)
    run_jobs()
    (receipt,) = olivia.get(f"subjects/{subject}/").json["receipts"]
    assert receipt["erased"]["vectors"] == 1
    assert stored_in(external, world.olivia.actor) == {other}


def test_deleted_tenant_leaves_the_index_and_no_other_does(
    world: World, external: VectorIndex, alice: Contract, olivia: Contract, superuser: Superuser
) -> None:
    alice.add(HERON, namespace="/team")
    (foreign,) = add_memories(world.charlie.actor, HERON)
    run_jobs()
    request_deletion(olivia)
    end_grace_period(superuser)
    run_jobs()
    assert stored_in(external, world.olivia.actor) == set()
    assert stored_in(external, world.charlie.actor) == {foreign}


@pytest.mark.parametrize("address", ["http://milvus:19530", "redis:x", "milvus:http://user@host", "milvus:/relative"])
def test_address_of_no_index_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="MEMOS_VECTOR_INDEX is no index"):
        read_config({"MEMOS_VECTOR_INDEX": address})


def test_settings_name_address_token_and_threshold() -> None:
    named = {"MEMOS_VECTOR_INDEX": "milvus:http://m:19530", "MEMOS_VECTOR_INDEX_TOKEN": "u:p"}
    assert read_config(named).vector_index == VectorIndexChoice("http://m:19530", "u:p", 10_000)
    with pytest.raises(ConfigError, match="a number of memories"):
        read_config({**named, "MEMOS_VECTOR_INDEX_FROM": "many"})


def test_command_moves_all_tenants_and_doctor_and_probe_tell_of_the_index(
    world: World, settings: Settings, milvus: VectorIndexChoice
) -> None:
    for actor in (world.olivia.actor, world.charlie.actor):
        add_memories(actor, HERON)
    run_jobs()
    assert nearest_vectors() == "PostgreSQL"
    assert "vector_index" not in Client().get("/readyz").json()["checks"]
    settings.MEMOS_VECTOR_INDEX = milvus
    out = StringIO()
    call_command("vector_index", "--to", "milvus", "--json", stdout=out)
    assert {row["tenant"]: row["started"] for row in json.loads(out.getvalue())["tenants"]} == {
        "acme": True,
        "other": True,
    }
    run_jobs()
    assert nearest_vectors().endswith("used by 2 of 2 tenants")
    assert Client().get("/readyz").json()["checks"]["vector_index"] == "up"
    settings.MEMOS_VECTOR_INDEX = AWAY
    assert Client().get("/readyz").json()["checks"]["vector_index"] == "down"
    with pytest.raises(Failed, match="is not the index of acme; other"):
        nearest_vectors()
    settings.MEMOS_VECTOR_INDEX = VectorIndexChoice()
    assert search(world.bob.actor, HERON)[0] == HERON
    cube_delete(actor=world.olivia.actor, cube_id=next(iter(embedded_cubes(world.olivia.actor, "hashing/256"))))
    run_jobs()
    with acting(world.olivia.actor):  # no event is lost where a process lacks the setting
        assert OutboxEvent.objects.filter(topic=Topic.VECTORS_CHANGED, done_at=None).count() == 1


def test_every_deletion_of_vectors_is_announced() -> None:
    """Other code calls `embeddings_delete`, so that no deletion misses the index outside PostgreSQL."""
    deleting = re.compile(r"DELETE FROM vault_embedding\b|Embedding\.objects\.[^\n]*delete\(")
    files = {
        str(path.relative_to(ROOT)) for path in (ROOT / "vault").rglob("*.py") if deleting.search(path.read_text())
    }
    assert files == {"vault/embeddings/vectors.py", "vault/embeddings/model_change.py"}


def test_index_is_not_asked_inside_a_transaction(world: World, external: VectorIndex) -> None:
    add_memories(world.olivia.actor, HERON)
    run_jobs()
    before = count_answers()
    with acting(world.bob.actor):
        assert search(world.bob.actor, HERON)[0] == HERON
    assert count_answers() == before


def make_due(world: World) -> None:
    """End the pause before the next try of failed events."""
    with acting(world.olivia.actor):
        OutboxEvent.objects.filter(done_at=None).update(available_at=Now() - timedelta(seconds=1))
