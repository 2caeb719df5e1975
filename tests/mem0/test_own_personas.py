"""Deletions of a user by mem0's and MemOS's routes: of the own persona, not of another member's of this name."""

from typing import Any

import pytest

from tests.factories import World
from tests.mem0.test_rights import sent
from tests.product import test_product
from tests.vault.api.contract import contract
from tests.vault.outbox import run_jobs

DELETIONS = [
    "/v2/entities/user/anna/",
    "/v1/memories/?user_id=anna",
    "/v1/memories/?filters={'user_id': {'in': ['anna', 'bert']}}",
    "/v1/memories/?filters={'NOT': {'user_id': {'ne': 'anna'}}}",
    {"user_id": "anna"},
    {"filter": {"user_id": {"in": ["anna", "bert"]}}},
]


@pytest.mark.parametrize("deletion", DELETIONS)
def test_deletion_of_a_user_leaves_another_members_persona_of_this_name(
    world: World, monkeypatch: pytest.MonkeyPatch, deletion: Any
) -> None:
    """The deletions of olivia, who governs and sees all, with and without a persona of her own of this name."""
    monkeypatch.setattr("memos_web.protocols.JOB_SECONDS", 0.0)  # the job runs afterwards
    alice, olivia = contract(world, "alice"), contract(world, "olivia")
    persona = alice.post("personas/?ensure=true", {"name": "anna"}).json["id"]
    alice.add("The heron nests by the mill.", namespace="/team", persona=persona)
    _delete(world, deletion)
    assert olivia.get("memories/?namespace=/team").json["count"] == 1
    own = olivia.post("personas/?ensure=true", {"name": "anna"}).json["id"]
    olivia.add("The weir leaks.", namespace="/team", persona=own)
    _delete(world, deletion)
    (left,) = olivia.get("memories/?namespace=/team").json["results"]
    assert left["persona"]["id"] == persona
    assert alice.get(f"personas/{persona}/").status == 200


def _delete(world: World, deletion: Any) -> None:
    if isinstance(deletion, str):
        sent(world.olivia.key.text, "DELETE", deletion)
    else:
        test_product.sent(world, "olivia", "POST", "/delete/memory", deletion)
    run_jobs()
