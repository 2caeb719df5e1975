"""Work that is bounded for one text, where a page or an answer reads many texts, or a memory rests on many others."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import World
from tests.governance.web.visitors import signed_in
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.selectors import cube_get
from vault.cubes.services import cubes_add
from vault.reader.rules import answer_question as whole
from vault.vocabulary import SourceKind
from vault.web import graph_layout

LONG = "Marta went to Oslo. " * 1_600


def test_the_graph_reads_a_bounded_part_of_each_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It draws up to 120 memories in one request."""
    assert world.client("alice").post("memories/", {"content": LONG, "namespace": "/team"}).status == 201
    read: list[int] = []

    def entities(text: str) -> list[str]:
        read.append(len(text))
        return ["marta"]

    monkeypatch.setattr(graph_layout, "entities", entities)
    assert signed_in(world.bob).get("/graph/").status_code == 200
    assert read == [graph_layout.LONGEST_READ + 1]


def test_an_answer_weighs_its_memories_twice_at_most(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = world.client("alice")
    assert alice.post("memories/", {"content": "Marta went to Oslo in May."}).status == 201
    weighed: list[str] = []

    def answer_of(question: str, *rest: Any) -> Any:
        weighed.append(question)
        return whole(question, *rest)

    monkeypatch.setattr("vault.chat.rules.answer_question", answer_of)
    begun = alice.post("conversations/", {}).json["id"]
    reply = alice.post(f"conversations/{begun}/turns/", {"content": "When did Marta go to Oslo?"})
    assert "Marta went to Oslo in May." in reply.body.decode()
    assert len(weighed) <= 2


def test_a_memory_that_rests_on_a_long_chain_is_opened_in_few_statements(world: World) -> None:
    """As the answers of a model do, each of which rests on those before it. Once it took 2 to the power of these."""
    actor = world.alice.actor
    (first,) = cubes_add(actor=actor, drafts=[CubeDraft("The first.")])
    chain: list[UUID] = [first.cube.id]
    counts = []
    for at in range(12):
        draft = CubeDraft(f"Number {at}.", sources=(SourceRef(chain[-1], 1, SourceKind.TEXT),))
        (added,) = cubes_add(actor=actor, drafts=[draft])
        chain.append(added.cube.id)
        with CaptureQueriesContext(connection) as queries:
            cube_get(actor=actor, cube_id=chain[-1])
        counts.append(len(queries))
    assert counts[-1] <= counts[0] + 20, counts
