"""Tests of distillation: profile, queues and traits of a persona, and contradictions."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from governance.database import acting
from governance.personas.services import PersonaDraft, persona_create
from governance.vocabulary import PersonaKind
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.layers.test_layers_api import persona_of
from tests.vault.outbox import run_jobs
from vault.layers.statements import (
    StoredStatement,
    agent_statements,
    find_slot,
    is_worth_keeping,
    knowledge_lines,
    profile_text,
    reconcile,
)
from vault.layers.traits import dimensions, estimate_level, trait_signs
from vault.models import LayerEntry, Page, Segment, Trait
from vault.reader.phrases import PHRASES
from vault.vocabulary import EntryAction

FIGURES: dict[str, Any] = json.loads(Path(__file__).with_name("memoryos.json").read_text(encoding="utf-8"))
MONDAY = datetime(2026, 5, 4, 9, tzinfo=UTC)
ONE = UUID(int=1)


def say(client: Contract, *texts: str, answer: str = "Noted.", start: datetime = MONDAY) -> None:
    """Talk on one topic until what was said has left the queue of one page."""
    for number, text in enumerate(texts):
        moment = (start + timedelta(minutes=number)).isoformat()
        messages = [
            {"role": "user", "content": text, "timestamp": moment},
            {"role": "assistant", "content": answer, "timestamp": moment},
        ]
        assert client.post("memories/", {"session_id": "talk", "messages": messages}).status == 201
    run_jobs()


@pytest.fixture
def mind(world: World, alice: Contract) -> str:
    """A persona whose pages leave the queue at once, and whose segments are distilled at once."""
    found = persona_of(world, "alice")
    constants = {"stm_pages": 1, "theta": -1, "tau": 1.5}
    assert alice.patch(f"personas/{found}/settings/", constants).status == 200
    return found


def profile(client: Contract, persona: str) -> dict[str, str]:
    return {row["name"]: row["value"] for row in client.get(f"personas/{persona}/profile/").json["profile"]}


@pytest.mark.parametrize("text", FIGURES["lpm"]["ignored"])
def test_line_that_says_nothing_is_no_knowledge(text: str) -> None:
    assert not is_worth_keeping(text)


def test_lines_that_say_something_are_knowledge() -> None:
    row = FIGURES["lpm"]["knowledge"]
    private, _, assistant = row["llm_output"].partition("【Assistant Knowledge】")
    assert knowledge_lines(private.partition("】")[2]) == row["user_lines_stored"]
    assert knowledge_lines(assistant) == row["agent_lines_stored"]


@pytest.mark.parametrize("row", FIGURES["lpm"]["profile_guard"], ids=lambda row: row["new"][:20])
def test_profile_is_replaced_by_what_says_something(row: dict[str, str]) -> None:
    assert profile_text("OLD PROFILE OF THIRTY+ CHARACTERS.....", row["new"]) == row["stored"]


def test_traits_have_ninety_dimensions_in_three_groups() -> None:
    groups = [dimension.group for dimension in dimensions().values()]
    assert (len(groups), sorted(set(groups))) == (90, ["alignment", "interest", "personality"])
    assert all(dimension.name and dimension.name_zh and dimension.definition for dimension in dimensions().values())


def test_signs_of_traits_are_read_in_both_languages_and_not_from_questions() -> None:
    assert trait_signs("I love running in the morning.")["running"] == 1
    assert trait_signs("I don't like running.")["running"] == -1
    assert trait_signs("我每天早上跑步。")["running"] == 1
    assert "running" not in trait_signs("Do you like running?")
    assert trait_signs("Can you keep it short?")["short_answers"] == 1


def test_level_grows_with_evidence_and_falls_with_what_speaks_against_it() -> None:
    assert [estimate_level(count, count).level for count in (0, 1, 9)] == [3, 4, 5]
    assert estimate_level(9, -9).level == 1
    assert estimate_level(2, 0).level == 3
    assert estimate_level(4, 4).confidence == 0.5


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("My name is Maya Okafor.", "name", "Maya Okafor"),
        ("I live in Lisbon now, for the work.", "home", "Lisbon"),
        ("I work as a hospital planner", "work", "a hospital planner"),
        ("I was born in 1987.", "birth_year", "1987"),
        ("我叫林悦。", "name", "林悦"),
        ("我住在北京。", "home", "北京"),
        ("My favourite colour is blue.", "favourite colour", "blue"),
    ],
)
def test_slot_is_read_in_both_languages(text: str, name: str, value: str) -> None:
    found = find_slot(text)
    assert found is not None
    assert (found.name, found.value) == (name, value)


@pytest.mark.parametrize(
    ("text", "action", "reason"),
    [
        ("I live in Lisbon.", EntryAction.NOTHING, "same_value"),
        ("I live in Oslo.", EntryAction.UPDATE, "other_value"),
        ("I no longer like green tea.", EntryAction.DELETE, "taken_back"),
        ("I hate green tea.", EntryAction.UPDATE, "other_value"),
        ("My sister visited the old mill yesterday!", EntryAction.NOTHING, "same_words"),
        ("I have a dog named Max.", EntryAction.ADD, "new"),
    ],
)
def test_statement_is_held_against_what_is_stored(text: str, action: EntryAction, reason: str) -> None:
    stored = [
        StoredStatement(ONE, item, MONDAY)
        for item in ("I live in Lisbon.", "I like green tea.", "My sister visited the old mill yesterday.")
    ]
    found = reconcile(text, MONDAY + timedelta(days=1), stored)
    assert (found.action, found.reason) == (action, reason)


def test_statement_older_than_the_stored_one_does_not_replace_it() -> None:
    stored = [StoredStatement(ONE, "I live in Lisbon.", MONDAY)]
    assert reconcile("I live in Oslo.", MONDAY - timedelta(days=1), stored).is_older


def test_phrase_of_the_chat_is_no_promise_of_the_assistant() -> None:
    for phrases in PHRASES.values():
        assert [statement for phrase in phrases.values() for statement in agent_statements(phrase)] == []


def test_failure_of_a_provider_is_no_promise_of_the_assistant() -> None:
    assert agent_statements("Error: Could not get response from LLM. I will remember this.") == []
    assert agent_statements("I recommend the sushi place.") == ["I recommend the sushi place."]


def test_hot_segment_becomes_profile_knowledge_and_traits(world: World, alice: Contract, mind: str) -> None:
    say(
        alice,
        "My name is Maya Okafor. I live in Lisbon.",
        "I love running along the river.",
        "I enjoy cooking vegetarian dinners.",
        "Thanks!",
        answer="I recommend the path by the mill.",
    )
    assert profile(alice, mind) == {"name": "Maya Okafor", "home": "Lisbon"}
    found = alice.get(f"personas/{mind}/profile/").json
    assert [memory["content"] for memory in found["knowledge"]] == [
        "I enjoy cooking vegetarian dinners.",
        "I love running along the river.",
    ]
    assert {memory["content"] for memory in found["agent"]} == {"I recommend the path by the mill."}
    traits = {row["dimension"]: row for row in alice.get(f"personas/{mind}/traits/").json["results"]}
    assert traits["running"]["level"] == 4
    assert len(traits["running"]["evidence"]) == 1
    assert traits["running"]["history"][-1]["pages"] == 1
    with acting(world.alice.actor):
        segment = Segment.objects.get()
        assert (segment.pages, segment.unpromoted) == (3, 0)
        assert Page.objects.exclude(promoted_at=None).count() == 3


def test_segment_that_is_not_hot_is_left_as_it_is(world: World, alice: Contract, mind: str) -> None:
    assert alice.patch(f"personas/{mind}/settings/", {"tau": 50}).status == 200
    say(alice, "My name is Maya Okafor.", "I love running.", "Thanks!")
    assert profile(alice, mind) == {}
    with acting(world.alice.actor):
        assert Segment.objects.get().unpromoted == 2


def test_failure_text_becomes_no_entry(world: World, alice: Contract, mind: str) -> None:
    say(alice, "Tell me more.", "And then?", "Thanks!", answer="Error: Could not get response from LLM.")
    with acting(world.alice.actor):
        assert not LayerEntry.objects.exists()


def test_contradiction_closes_the_earlier_statement_and_asks_a_person(
    world: World, alice: Contract, bob: Contract, mind: str
) -> None:
    say(alice, "I live in Lisbon.", "I live in Oslo now.", "Thanks!")
    assert profile(alice, mind) == {"home": "Oslo"}
    (review,) = alice.get("reviews/?kind=conflict").json["results"]
    earlier = alice.get(f"memories/{review['memory_id']}/").json
    assert (earlier["content"], earlier["valid_to"]) == ("I live in Lisbon.", "2026-05-04T09:01:00Z")
    later = alice.get(f"memories/{earlier['superseded_by']}/").json
    assert later["content"] == "I live in Oslo now."
    assert bob.post(f"reviews/{review['id']}/reject/").status in {403, 404}
    assert alice.post(f"reviews/{review['id']}/reject/").status == 200
    again = alice.get(f"memories/{review['memory_id']}/").json
    assert (again["valid_to"], again["superseded_by"]) == (None, None)


def test_later_statement_stays_where_the_review_is_accepted(alice: Contract, mind: str) -> None:
    say(alice, "I like green tea.", "I no longer like green tea.", "Thanks!")
    (review,) = alice.get("reviews/?kind=conflict").json["results"]
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 200
    assert alice.get(f"memories/{review['memory_id']}/").json["valid_to"] is not None


def test_full_queue_loses_its_oldest_entry(world: World, alice: Contract, mind: str) -> None:
    assert alice.patch(f"personas/{mind}/settings/", {"entries": 2}).status == 200
    say(alice, "I adore old maps.", "I enjoy sailing at night.", "I have a red bicycle.", "Thanks!")
    found = alice.get(f"personas/{mind}/profile/").json["knowledge"]
    assert [memory["content"] for memory in found] == ["I have a red bicycle.", "I enjoy sailing at night."]


def test_memory_that_was_deleted_is_not_distilled(world: World, alice: Contract, mind: str) -> None:
    assert alice.patch(f"personas/{mind}/settings/", {"tau": 50}).status == 200
    say(alice, "Hello there, long day! My name is Maya Okafor.", "I love running.", "Thanks!")
    derived = [
        memory for memory in alice.search("Maya Okafor", top_k=20) if memory["content"] == "My name is Maya Okafor."
    ]
    for row in derived:
        assert alice.delete(f"memories/{row['id']}/").status == 204
    assert alice.patch(f"personas/{mind}/settings/", {"tau": 1.5}).status == 200
    say(alice, "I enjoy sailing.", "Thanks!", start=MONDAY + timedelta(hours=1))
    assert profile(alice, mind) == {}


def test_profile_is_edited_only_by_its_owner(
    world: World, alice: Contract, bob: Contract, charlie: Contract, mind: str
) -> None:
    address = f"personas/{mind}/profile/"
    assert alice.patch(address, {"name": "Maya", "shoe size": "38"}).status == 200
    assert profile(alice, mind) == {"name": "Maya", "shoe size": "38"}
    assert alice.patch(address, {"name": "May", "shoe size": None}).status == 200
    assert profile(alice, mind) == {"name": "May"}
    assert bob.patch(address, {"name": "Bob"}).status == 404
    assert charlie.patch(address, {"name": "Charlie"}).status == 404
    assert alice.patch(address, {"name": ""}).status == 400
    assert profile(alice, mind) == {"name": "May"}


def test_agents_profile_is_written_by_its_maker_and_read_by_all_who_use_it(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    attributes = {"role": "Concierge of the house", "tone": "brief"}
    draft = PersonaDraft("Concierge", PersonaKind.AGENT, attributes=attributes)
    agent = str(persona_create(actor=world.alice.actor, draft=draft).id)
    address = f"personas/{agent}/profile/"
    assert alice.patch(address, {"character": "Patient, exact", "tone": None}).status == 200
    expected = {"role": "Concierge of the house", "character": "Patient, exact"}
    assert profile(alice, agent) == profile(bob, agent) == expected
    assert [memory["memory_id"] for memory in alice.get(address).json["profile"]] == [None, None]
    assert bob.patch(address, {"role": "Spy"}).status == 403
    assert charlie.get(address).status == charlie.patch(address, {"role": "Spy"}).status == 404
    assert alice.patch(address, {"role": "x" * 201}).status == 400
    assert profile(alice, agent) == expected
    assert alice.get(f"personas/{agent}/working-set/").json["results"] == []


def test_agent_persona_has_what_its_assistant_recommended(world: World, alice: Contract, mind: str) -> None:
    draft = PersonaDraft("Concierge", PersonaKind.AGENT)
    agent = str(persona_create(actor=world.alice.actor, draft=draft).id)
    conversation = alice.post("conversations/", {"agent_persona": agent}).json["id"]
    for text in ("I love running by the river.", "I enjoy sailing.", "Thanks!"):
        assert alice.post(f"conversations/{conversation}/turns/", {"content": text}).status == 201
    run_jobs()
    with acting(world.alice.actor):
        assert set(LayerEntry.objects.values_list("persona_id", "queue")) >= {(UUID(mind), "knowledge")}
        assert Trait.objects.filter(persona_id=mind).exists()
