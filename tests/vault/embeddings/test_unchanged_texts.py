"""A vector is made anew when its text changed, and follows the memory when something else did."""

from typing import Any

import pytest

from governance.database import acting
from tests.factories import World
from tests.governance.audit.logs import Superuser
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.models.index import WHOLE, Embedding

MARKED = (
    "UPDATE vault_embedding SET vector = (SELECT array_agg(0.25) FROM generate_series(1, vector_dims(vector)))::halfvec"
)


def vectors_of(world: World, memory_id: str) -> list[tuple[int, int, float]]:
    """Part, version and first number of each vector."""
    with acting(world.alice.actor):
        rows = Embedding.objects.filter(cube_id=memory_id).order_by("part")
        return [(row.part, row.version, round(row.vector[0], 3)) for row in rows]


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({"tags": ["boat"]}, True),
        ({"metadata": {"page": 3}}, True),
        ({"content": "The boat leaves at ten."}, False),
        ({"title": "Timetable"}, False),
    ],
)
def test_vector_stays_unless_the_text_changed(
    world: World, alice: Contract, superuser: Superuser, change: dict[str, Any], stays: bool
) -> None:
    memory = alice.add("The boat leaves at nine.", namespace="/team")["id"]
    run_jobs()
    superuser().execute(MARKED)
    assert alice.patch(f"memories/{memory}/", change, if_match='"1"').status == 200
    run_jobs()
    ((part, version, first),) = vectors_of(world, memory)
    assert (part, version) == (WHOLE, 2)
    assert (first == 0.25) is stays
    assert alice.get(f"memories/{memory}/").json["pending_embedding"] is False


def test_passages_follow_and_a_former_text_that_comes_back_is_embedded(
    world: World, alice: Contract, superuser: Superuser
) -> None:
    long = " ".join(f"Sentence {number} tells of the harbour and its boats." for number in range(400))
    memory = alice.add(long, namespace="/team")["id"]
    run_jobs()
    superuser().execute(MARKED)
    assert alice.patch(f"memories/{memory}/", {"tags": ["harbour"]}, if_match='"1"').status == 200
    run_jobs()
    after = vectors_of(world, memory)
    assert len(after) > 1
    assert {(version, first) for _, version, first in after} == {(2, 0.25)}
    for version, text in ((2, "Short."), (3, long)):
        assert alice.patch(f"memories/{memory}/", {"content": text}, if_match=f'"{version}"').status == 200
        run_jobs()
    assert {version for _, version, _ in vectors_of(world, memory)} == {4}
    assert 0.25 not in {first for _, _, first in vectors_of(world, memory)}
