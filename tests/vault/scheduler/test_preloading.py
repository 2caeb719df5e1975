"""Working sets: preloaded after a turn, read with the reader's rights, and counted when the next turn has used them."""

from typing import Any
from uuid import UUID

import pytest

from governance.database import acting
from governance.errors import Forbidden, Invalid, NotFound
from governance.models import AuditEntry, Persona
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.models import Cube, LayerSettings, PredictorCount, WorkingSet
from vault.scheduler.replacement import ReplacementName
from vault.scheduler.services import replacement_in_force, replacement_set, tenant_replacement_set

FACTS = (
    "Caroline adopted a greyhound called Pixel in May.",
    "Pixel the greyhound sleeps on the blue sofa.",
    "The tomatoes in the garden need water.",
)
QUESTIONS = ("What did Caroline adopt?", "Where does Pixel sleep?")


def persona_of(world: World, name: str) -> UUID:
    with acting(world.person(name).actor):
        return Persona.objects.get(member_id=world.person(name).member.id).id


@pytest.fixture
def facts(alice: Contract) -> list[str]:
    """The ids of alice's facts."""
    ids = [alice.add(text)["id"] for text in FACTS]
    run_jobs()
    return ids


@pytest.fixture
def turns(alice: Contract, facts: list[str]) -> str:
    """The address of the turns of a conversation in which alice has asked the first question."""
    address = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    assert alice.post(address, {"content": QUESTIONS[0]}).status == 201
    run_jobs()
    return address


def working_set(client: Contract, persona: UUID, session: str = "") -> list[dict[str, Any]]:
    reply = client.get(f"personas/{persona}/working-set/" + (f"?session_id={session}" if session else ""))
    assert reply.status == 200, reply
    found: list[dict[str, Any]] = reply.json["results"]
    return found


def test_turn_preloads_what_the_next_one_may_need(world: World, alice: Contract, turns: str, facts: list[str]) -> None:
    found = working_set(alice, persona_of(world, "alice"))
    by_id = {item["memory_id"]: item for item in found}
    assert {facts[0], facts[1]} <= by_id.keys()
    assert by_id[facts[0]]["tier"] == "working"
    assert by_id[facts[0]]["form"] == "text"
    assert 0 < by_id[facts[0]]["score"] <= 1


def test_set_names_no_answer_and_nothing_of_another_persona_or_what_a_search_must_name(
    world: World, alice: Contract, turns: str, facts: list[str]
) -> None:
    own = persona_of(world, "alice")
    other = alice.post("personas/", {"name": "Alpha"}).json["id"]
    secret = alice.add("Caroline hides a greyhound's key under the sofa.", persona=other)["id"]
    assert alice.post("namespaces/", {"path": "/team/drafts", "kind": "expert"}).status == 201
    pooled = alice.add("Caroline lends the greyhound a scarf.", namespace="/team/drafts")["id"]
    run_jobs()
    assert alice.post(turns, {"content": "Caroline is kind to the greyhound."}).status == 201
    run_jobs()
    found = {item["memory_id"] for item in working_set(alice, own)}
    assert facts[0] in found
    assert found.isdisjoint({secret, pooled})
    shown = [alice.get(f"memories/{memory_id}/").json for memory_id in found]
    assert [memory["content"] for memory in shown if memory["speaker"] == "assistant"] == []


def test_next_turn_counts_what_it_used_of_the_set(world: World, alice: Contract, turns: str) -> None:
    assert alice.post(turns, {"content": QUESTIONS[1]}).json["citations"]
    run_jobs()
    with acting(world.alice.actor):
        counts = {row.predictor: (row.preloaded, row.used) for row in PredictorCount.objects.all()}
        (row,) = WorkingSet.objects.all()
    assert sum(preloaded for preloaded, _ in counts.values()) > 0
    assert sum(used for name, (_, used) in counts.items() if name) >= 1
    assert row.position == 2
    named = {
        count["name"]: count
        for count in alice.get(f"personas/{persona_of(world, 'alice')}/working-set/").json["predictors"]
    }
    assert {name: (count["preloaded"], count["used"]) for name, count in named.items() if count["preloaded"]} == {
        name: pair for name, pair in counts.items() if pair[0]
    }


def test_set_is_made_once_for_a_turn(world: World, alice: Contract, turns: str) -> None:
    with acting(world.alice.actor):
        before = WorkingSet.objects.values("items", "made_at", "position").get()
    run_jobs()
    with acting(world.alice.actor):
        assert WorkingSet.objects.values("items", "made_at", "position").get() == before


def test_unchanged_set_keeps_its_order(world: World, alice: Contract, turns: str) -> None:
    persona = persona_of(world, "alice")
    first = [item["memory_id"] for item in working_set(alice, persona)]
    alice.post(turns, {"content": QUESTIONS[1]})
    run_jobs()
    second = [item["memory_id"] for item in working_set(alice, persona)]
    assert [memory for memory in second if memory in first] == [memory for memory in first if memory in second]


@pytest.mark.parametrize("end", ["deleted", "expired", "archived", "superseded"])
def test_memory_that_ended_leaves_the_set_at_once(
    world: World, alice: Contract, turns: str, facts: list[str], end: str
) -> None:
    persona, address = persona_of(world, "alice"), f"memories/{facts[0]}/"
    assert facts[0] in {item["memory_id"] for item in working_set(alice, persona)}
    if end == "deleted":
        assert alice.delete(address).status == 204
    elif end == "archived":
        assert alice.post(f"{address}transition/", {"to": "archived"}).status == 200
    else:
        past = "2026-01-01T00:00:00Z"
        with acting(world.alice.actor):
            ended = {"expires_at": past} if end == "expired" else {"valid_to": past, "superseded_by": UUID(facts[1])}
            Cube.objects.filter(id=facts[0]).update(**ended)
    assert facts[0] not in {item["memory_id"] for item in working_set(alice, persona)}


def test_context_of_a_session_has_what_was_preloaded_for_it(alice: Contract, turns: str, facts: list[str]) -> None:
    session = turns.split("/")[1]
    body = {"query": "How is the weather?", "token_budget": 2_000}
    named = alice.post("memories/context/", {**body, "session_id": session, "order": "stable"})
    assert named.status == 200, named
    ids = [item["id"] for item in named.json["items"]]
    assert facts[0] in ids


def test_other_members_and_tenants_do_not_get_the_set(
    world: World, bob: Contract, charlie: Contract, turns: str
) -> None:
    persona = persona_of(world, "alice")
    assert bob.get(f"personas/{persona}/working-set/").status in {403, 404}
    assert charlie.get(f"personas/{persona}/working-set/?replay=1000").status == 404


def test_replacement_of_a_persona_comes_before_that_of_the_tenant(world: World) -> None:
    persona = persona_of(world, "alice")
    tenant_replacement_set(actor=world.olivia.actor, name="lru")
    with acting(world.alice.actor):
        assert replacement_in_force(persona) is ReplacementName.LRU
    replacement_set(actor=world.alice.actor, persona_id=persona, name="label")
    with acting(world.alice.actor):
        assert replacement_in_force(persona) is ReplacementName.LABEL
    replacement_set(actor=world.alice.actor, persona_id=persona, name="")
    with acting(world.alice.actor):
        assert replacement_in_force(persona) is ReplacementName.LRU


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_replacement_is_not_chosen_without_the_right(world: World, who: str) -> None:
    with acting(world.olivia.actor):
        before = AuditEntry.objects.filter(verb="persona.changed").count()
    with pytest.raises((Forbidden, NotFound)):
        replacement_set(actor=world.person(who).actor, persona_id=persona_of(world, "alice"), name="lru")
    with acting(world.alice.actor):
        assert not LayerSettings.objects.exists()
        assert AuditEntry.objects.filter(verb="persona.changed").count() == before


def test_unknown_replacement_is_refused(world: World) -> None:
    with pytest.raises(Invalid):
        replacement_set(actor=world.alice.actor, persona_id=persona_of(world, "alice"), name="random")


def test_page_shows_the_set_and_chooses_the_policy(world: World, alice: Contract, turns: str) -> None:
    alice.post(turns, {"content": QUESTIONS[1]})
    run_jobs()
    client, address = signed_in(world.alice), f"/layers/{persona_of(world, 'alice')}/working-set/"
    assert address in client.get("/layers/").content.decode()
    page = client.get(f"{address}?budget=1000").content.decode()
    assert FACTS[0] in page
    assert "Replay of 1 turn that cites memories." in page
    assert "Tokens saved" in page
    replays = alice.get(f"personas/{persona_of(world, 'alice')}/working-set/?replay=1000").json["replays"]
    assert {row["replacement"] for row in replays} == {"keep", "lru", "heat", "semantic", "label"}
    for row in replays:
        assert f"<td>{row['saved_tokens']}</td>" in page
        assert row["saved_tokens"] > 0 < row["saved_seconds"]
    assert client.get(f"{address}?budget=7").status_code == 422
    assert client.post(address, {"replacement": "semantic"}).status_code == 303
    page = client.get(address).content.decode()
    assert 'value="semantic" checked' in page
    assert client.post(address, {"replacement": "random"}).status_code == 422


def test_page_is_not_for_others(world: World, turns: str) -> None:
    address = f"/layers/{persona_of(world, 'alice')}/working-set/"
    assert signed_in(world.bob).get(address).status_code in {403, 404}
    assert signed_in(world.bob).post(address, {"replacement": "lru"}).status_code in {403, 404}
    assert signed_in(world.charlie).get(address).status_code == 404


def test_tenant_chooses_the_policy_of_all_personas(world: World, alice: Contract, turns: str) -> None:
    client = signed_in(world.olivia)
    assert client.post("/settings/layers/", {"replacement": "heat"}).status_code == 303
    assert 'value="heat" selected' in client.get("/settings/layers/").content.decode()
    persona = persona_of(world, "alice")
    assert alice.get(f"personas/{persona}/working-set/").json["replacement"] == "heat"
    assert alice.patch(f"personas/{persona}/working-set/", {"replacement": "label"}).json == {"replacement": "label"}
    assert alice.patch(f"personas/{persona}/working-set/", {"replacement": None}).json == {"replacement": "heat"}
    assert alice.patch(f"personas/{persona}/working-set/", {"replacement": "random"}).status == 400


def test_memory_of_high_priority_always_belongs_to_the_set(world: World, alice: Contract, facts: list[str]) -> None:
    persona = persona_of(world, "alice")
    pinned = alice.add("Caroline is allergic to nuts.", priority=0.95, persona=str(persona))["id"]
    first = working_set(alice, persona)[0]
    assert (first["memory_id"], first["reason"], first["tier"]) == (pinned, "pinned", "stable")
