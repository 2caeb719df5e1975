"""Search by layers, and the context that a model may be given."""

import json

from governance.database import acting
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.layers.test_layers_api import persona_of
from tests.vault.layers.test_long_term import say
from tests.vault.outbox import run_jobs
from vault.models import CubeUse, Segment

STORY = (
    "My name is Maya Okafor.",
    "I love running along the river.",
    "The tomatoes in the garden need water.",
    "The trains to Porto leave at noon.",
    "The cello lesson was moved to Friday.",
)


def tell(world: World, client: Contract) -> str:
    persona = persona_of(world, "alice")
    values = {"stm_pages": 2, "theta": 1.9, "tau": 1.5, "gate": 0.2, "top_entries": 1, "top_segments": 1}
    assert client.patch(f"personas/{persona}/settings/", values).status == 200
    say(client, *STORY)
    return persona


def test_queue_pages_and_entries_are_returned_and_nothing_else(world: World, alice: Contract) -> None:
    tell(world, alice)
    alice.add("A note that no layer holds about running.")
    run_jobs()
    found = alice.search("running by the river", mode="memoryos", top_k=100)
    contents = [memory["content"] for memory in found]
    assert contents[0] == "I love running along the river."
    assert "The cello lesson was moved to Friday." in contents  # of the queue
    assert "My name is Maya Okafor." in contents  # of the profile
    assert "A note that no layer holds about running." not in contents
    assert "The tomatoes in the garden need water." not in contents  # under the gate, and not the best entry
    assert [memory["score"] for memory in found] == sorted((memory["score"] for memory in found), reverse=True)


def test_search_by_layers_visits_each_selected_segment_once(world: World, alice: Contract) -> None:
    tell(world, alice)
    alice.search("running by the river", mode="memoryos", top_k=100)
    run_jobs()
    with acting(world.alice.actor):
        visits = sorted(Segment.objects.values_list("visits", flat=True))
        assert visits[-1] == 1
        assert CubeUse.objects.filter(access_count=1).exists()


def test_persona_of_another_member_is_not_searched(world: World, alice: Contract, bob: Contract) -> None:
    persona = tell(world, alice)
    asked = {"query": "running", "mode": "memoryos", "personas": [persona]}
    assert bob.post("memories/search/", asked).json["code"] == "unknown_persona"
    assert bob.search("running by the river", mode="memoryos") == []


def test_two_personas_at_once_are_refused(world: World, alice: Contract) -> None:
    body = {"query": "running", "mode": "memoryos", "personas": ["alice", "other"]}
    assert alice.post("memories/search/", body).status == 400


def test_context_stays_within_its_budget_and_quotes_memories_as_data(world: World, alice: Contract) -> None:
    tell(world, alice)
    whole = alice.post("memories/context/", {"query": "running by the river"}).json
    lines = [json.loads(line) for line in whole["text"].splitlines()]
    assert [line["id"] for line in lines] == [item["id"] for item in whole["items"]]
    assert lines[0]["text"] == "I love running along the river."
    assert whole["tokens"] == sum(item["tokens"] for item in whole["items"]) <= 2_000
    small = alice.post("memories/context/", {"query": "running by the river", "token_budget": 60}).json
    assert 0 < small["tokens"] <= 60
    assert len(small["items"]) < len(whole["items"])


def test_context_of_a_member_without_layers_has_free_memories(alice: Contract) -> None:
    alice.add("The heron nests by the mill.")
    found = alice.post("memories/context/", {"query": "Where does the heron nest?"}).json
    assert [json.loads(line)["text"] for line in found["text"].splitlines()] == ["The heron nests by the mill."]


def test_auditor_assembles_no_context(ada: Contract) -> None:
    assert ada.post("memories/context/", {"query": "anything"}).status == 403
