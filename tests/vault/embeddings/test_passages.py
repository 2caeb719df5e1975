"""Long texts: each passage has a vector, so that their ends are found by meaning."""

import numpy as np
import pytest

from governance.database import acting
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import contract
from tests.vault.outbox import run_jobs
from vault.embeddings.passages import LENGTH, LENGTH_ZH, TIMES_LONG, mean_vectors, split_passages
from vault.models import Embedding
from vault.providers.sentence_encoder import SentenceEncoderEmbedder

SHORT = ["Ana travels by train.", "The museum opens at nine.", "Jo paints boats in the harbour.", "猫在睡觉。"]


@each_case(
    "text",
    [
        "",
        "x" * TIMES_LONG * LENGTH,
        "x" * 31_000,
        "Sentence one. " * 2_300,
        "第一句话。" * 6_000,
        "A paragraph of words.\n\n" * 1_000,
        "one, two; three " * 400 + "🐟" * 900,
    ],
)
def test_passages_are_the_whole_text_in_order(text: str) -> None:
    passages = split_passages(text)
    length = LENGTH_ZH if "句" in text else LENGTH
    assert bool(passages) == (len(text) > TIMES_LONG * length)
    assert not passages or "".join(passages) == text
    assert all(0 < len(passage) <= length for passage in passages)


def test_passages_end_with_sentences() -> None:
    assert all(passage.endswith(". ") for passage in split_passages("Sentence one. " * 300))
    assert all(passage.endswith("。") for passage in split_passages("第一句话。" * 600))


def test_the_vector_of_a_whole_is_the_mean_of_its_passages() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    expected = [[0.5**0.5, 0.5**0.5], [1, 0]]
    assert mean_vectors(vectors, [2, 1]) == pytest.approx(np.array(expected))


def test_an_edit_replaces_passages_and_a_deletion_removes_them(world: World) -> None:
    alice = contract(world, "alice")
    memory = alice.add("The tide was low. " * 500)
    run_jobs()
    with acting(world.alice.actor):
        parts = Embedding.objects.filter(cube_id=memory["id"]).order_by("part")
        assert [row.part for row in parts] == list(range(len(split_passages("The tide was low. " * 500)) + 1))
    alice.patch(f"memories/{memory['id']}/", {"content": "The tide was low. " * 150}, if_match='"1"')
    run_jobs()
    with acting(world.alice.actor):
        rows = Embedding.objects.filter(cube_id=memory["id"])
        assert {row.version for row in rows} == {2}
        assert rows.count() == 1 + len(split_passages("The tide was low. " * 150))
    alice.patch(f"memories/{memory['id']}/", {"content": "The tide was low."}, if_match='"2"')
    run_jobs()
    with acting(world.alice.actor):
        assert Embedding.objects.filter(cube_id=memory["id"]).count() == 1
    assert alice.get("memories/").json["results"][0]["pending_embedding"] is False


FILLER = "{name} keeps accounts of ships: tonnage, fuel and port fees of each month. "
FILLER_ZH = "{name}按月列出船只的吨位、燃料和港口费用。"


@each_case(
    ("name", "filler", "end", "question"),
    [
        ("Nordwind", FILLER, "The veterinarian prescribed an ointment for the puppy's paw.", "Was the young dog ill?"),
        ("东海公司", FILLER_ZH, "租客搬走以前必须把车库的钥匙还给房东。", "退房时要交还什么"),
    ],
)
def test_a_search_finds_the_end_of_a_long_memory_by_meaning(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, filler: str, end: str, question: str
) -> None:
    monkeypatch.setattr("vault.embeddings.vectors.embedder", SentenceEncoderEmbedder)
    monkeypatch.setattr("vault.embeddings.vectors.embedder_by_name", lambda name: SentenceEncoderEmbedder())
    alice = contract(world, "alice")
    rest = filler.format(name=name) * (31_000 // len(filler.format(name=name)))
    long = alice.add(f"{rest}{end}")["id"]
    other = alice.add(rest)["id"]
    for text in SHORT:
        alice.add(f"{text} {name}")
    run_jobs()
    ids = [hit["id"] for hit in alice.search(question, mode="dense", top_k=6)]
    assert ids[0] == long
    assert other not in ids[:2]
    assert len(set(ids)) == len(ids)
