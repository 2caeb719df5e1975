"""A background policy on frequency, stability, length and task proposes conversions in the review inbox."""

from typing import Any
from uuid import UUID

import pytest

from governance.database import acting
from tests.factories import World
from tests.governance.mutants import mutant
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.forms.stored import form_add, proposal_add
from tests.vault.forms.test_adapters import GOOD
from tests.vault.forms.test_caches import QUESTION, add_facts, engine, make_cache, persona_of, used_caches
from tests.vault.forms.twin import EngineTwin
from tests.vault.lifecycle.test_contradictions import run_job
from tests.vault.outbox import run_jobs
from vault.conversion import proposals
from vault.conversion.proposal_rules import find_frequent
from vault.models import MemoryForm

__all__ = ["engine"]
NOW = {"stable_days": 0, "automatic": 0}


def ask_often(client: Contract, turns: int = 5) -> str:
    """Ask the same question in one conversation as the caller's first persona; the address of its turns."""
    place = f"conversations/{client.post('conversations/', {}).json['id']}/turns/"
    for _ in range(turns):
        assert client.post(place, {"content": QUESTION}).status == 201
    return place


def propose(client: Contract, **chosen: Any) -> list[dict[str, Any]]:
    """Run the job; the open proposals."""
    run_job(client, "form.propose", **(NOW | chosen))
    found: list[dict[str, Any]] = client.get("forms/proposals/").json["results"]
    return found


def decide(client: Contract, proposal: dict[str, Any], state: str) -> int:
    return client.patch(f"forms/proposals/{proposal['id']}/", {"state": state}).status


def test_memories_that_prompts_often_have_are_proposed_as_a_cache_and_accepting_starts_the_job(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    add_facts(olivia)
    place = ask_often(olivia)
    (proposal,) = propose(olivia)
    assert (proposal["kind"], proposal["figures"]["turns"]) == ("activation", 5)
    assert proposal["persona"]["id"] == persona_of(olivia)
    browser = signed_in(world.olivia)
    page = browser.get("/reviews/?case=forms").content.decode()
    assert "Keep these memories as a cache" in page
    assert "In 5 of the last 5 prompts" in page
    decided = browser.post(f"/reviews/forms/{proposal['id']}/", {"action": "accept"})
    assert decided.status_code == 303
    run_jobs()
    (form,) = olivia.get("forms/").json["results"]
    assert (form["parents"], form["persona"]["id"]) == (proposal["memory_ids"], persona_of(olivia))
    olivia.post(place, {"content": QUESTION})
    assert len(used_caches(engine)) == 1
    assert propose(olivia) == []


def test_undone_acceptance_erases_the_cache_and_opens_the_proposal(engine: EngineTwin, olivia: Contract) -> None:
    add_facts(olivia)
    ask_often(olivia)
    (proposal,) = propose(olivia)
    assert decide(olivia, proposal, "accepted") == 200
    assert decide(olivia, proposal, "declined") == 409
    run_jobs()
    assert len(olivia.get("forms/").json["results"]) == 1
    assert decide(olivia, proposal, "open") == 200
    assert olivia.get("forms/").json["results"] == []
    assert olivia.get("forms/proposals/").json["count"] == 1


def test_declined_proposal_is_remembered_until_a_memory_changes(engine: EngineTwin, olivia: Contract) -> None:
    ids = add_facts(olivia)
    ask_often(olivia)
    (proposal,) = propose(olivia)
    assert decide(olivia, proposal, "declined") == 200
    assert propose(olivia) == []
    first = proposal["memory_ids"][0]
    assert first in ids
    assert olivia.patch(f"memories/{first}/", {"importance": 0.9}, if_match='"1"').status == 200
    run_jobs()
    (again,) = propose(olivia)
    assert again["id"] != proposal["id"]


def test_changed_memory_is_proposed_only_after_it_was_stable(engine: EngineTwin, olivia: Contract) -> None:
    add_facts(olivia)
    ask_often(olivia)
    assert propose(olivia, stable_days=3) == []


def test_local_engine_makes_the_best_cache_by_itself_within_the_bound(engine: EngineTwin, olivia: Contract) -> None:
    add_facts(olivia)
    ask_often(olivia)
    assert propose(olivia, automatic=1) == []
    run_jobs()
    (form,) = olivia.get("forms/").json["results"]
    (made,) = olivia.get("forms/proposals/?state=accepted").json["results"]
    assert (made["automatic"], made["memory_ids"]) == (True, form["parents"])
    assert decide(olivia, made, "open") == 200
    assert olivia.get("forms/").json["results"] == []
    assert propose(olivia, automatic=1) == []  # it counts as declined


def test_nothing_is_proposed_where_text_is_as_fast_or_no_engine_runs(engine: EngineTwin, olivia: Contract) -> None:
    engine.fingerprint, engine.text_token = "d" * 64, 0.0005
    add_facts(olivia)
    ask_often(olivia)
    assert propose(olivia) == []


def test_nothing_is_proposed_without_an_engine(olivia: Contract) -> None:
    add_facts(olivia)
    assert propose(olivia) == []


def test_cache_that_is_used_often_is_proposed_as_an_adapter_and_an_idle_one_as_text(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD
    ids = add_facts(olivia)
    used = make_cache(olivia, ids)
    idle = str(form_add(world.olivia.actor, [UUID(ids[0])], title="Idle").id)
    with acting(world.olivia.actor):
        MemoryForm.objects.filter(id=used["id"]).update(uses=30)
        MemoryForm.objects.filter(id=idle).update(created_at="2020-01-01T00:00:00Z")
    found = {proposal["kind"]: proposal for proposal in propose(olivia)}
    assert found.keys() == {"parameter", "plaintext"}
    assert (found["parameter"]["memory_ids"], found["plaintext"]["form"]) == (ids, idle)
    page = signed_in(world.olivia).get("/reviews/").content.decode()
    assert "The cache or adapter was not used in 14 days." in page
    assert "Their cache was used 30 times" in page
    for proposal in found.values():
        assert decide(olivia, proposal, "accepted") == 200
    run_jobs()
    assert {form["kind"] for form in olivia.get("forms/").json["results"]} == {"activation", "parameter"}
    assert olivia.get(f"forms/{idle}/").status == 404
    assert decide(olivia, found["plaintext"], "open") == 409


@pytest.fixture
def proposal(world: World, olivia: Contract) -> dict[str, Any]:
    """A proposal of two memories of the team, made by nobody."""
    ids = [olivia.add(f"Rule {number} of the house.", namespace="/team")["id"] for number in range(2)]
    run_jobs()
    row = proposal_add(world.olivia.actor, [UUID(memory_id) for memory_id in ids])
    return {"id": str(row.id), "memories": ids}


def test_reader_without_the_right_to_one_parent_gets_a_proposal_only_in_a_mutant(
    proposal: dict[str, Any], world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    assert alice.get("forms/proposals/").json["count"] == 1
    assert [decide(client, proposal, "declined") for client in (bob, charlie)] == [403, 404]
    denial = {"principal": {"kind": "member", "id": str(world.alice.member.id)}, "action": "read", "effect": "deny"}
    hidden = {"object": {"type": "memory", "id": proposal["memories"][1]}}
    assert olivia.post("grants/", denial | hidden).status == 201
    assert alice.get("forms/proposals/").json["count"] == 0
    assert decide(alice, proposal, "accepted") == 404
    careless = mutant(
        proposals, "if row is None or set(row.memories) - readable_ids(actor, row.memories):", "if row is None:"
    )
    with acting(world.alice.actor):
        assert careless._locate(world.alice.actor, UUID(proposal["id"]))


def test_erased_parent_takes_the_proposal_out_of_the_inbox(proposal: dict[str, Any], olivia: Contract) -> None:
    assert olivia.delete(f"memories/{proposal['memories'][0]}/?purge=true").status == 204
    assert olivia.get("forms/proposals/").json["count"] == 0
    assert decide(olivia, proposal, "accepted") == 404


def test_viewer_sees_no_buttons(proposal: dict[str, Any], world: World) -> None:
    assert "Make the cache" not in signed_in(world.bob).get("/reviews/?case=forms").content.decode()


def test_block_is_of_the_namespace_with_most_tokens_of_frequent_memories() -> None:
    one, two, three, rare = (UUID(int=number) for number in range(1, 5))
    here, there = UUID(int=10), UUID(int=11)
    places, tokens = {one: here, two: here, three: there, rare: here}, {one: 20, two: 20, three: 30, rare: 99}
    turns = [{one, two, three}] * 9 + [{one, rare}]
    found = find_frequent(turns, places, tokens, 0.3)
    assert found is not None
    assert (found.memory_ids, found.turns) == ((one, two), 10)
    assert find_frequent(turns[:4], places, tokens, 0.3) is None
    assert find_frequent(turns, {}, {}, 0.3) is None
