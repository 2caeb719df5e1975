"""A shared agent, and shared namespaces: what a member states changes and tells nothing of another member's."""

from typing import Any

import pytest
from django.test import override_settings

from governance.database import acting
from governance.personas.services import PersonaDraft, persona_create
from governance.vocabulary import PersonaKind, RoleName
from tests.factories import World, person_add
from tests.vault.api.contract import Contract
from tests.vault.layers.test_session_ends import ask
from tests.vault.outbox import run_jobs
from vault.layers.session_ends import streams_end_idle
from vault.models import Stream


@pytest.fixture
def agent(world: World) -> str:
    draft = PersonaDraft(name="agent", kind=PersonaKind.AGENT)
    return str(persona_create(actor=world.alice.actor, draft=draft).id)


@pytest.fixture
def eve(world: World) -> Contract:
    """Another editor in acme."""
    person = person_add(world.acme, "eve@acme.example", RoleName.EDITOR)
    return Contract(key=person.key.text)


def tell(client: Contract, agent: str, session: str, *texts: str) -> list[dict[str, Any]]:
    """Tell an agent some texts, let the session become idle, and return the stored memories."""
    stored = []
    for text in texts:
        body = {"persona": agent, "session_id": session, "messages": [{"role": "user", "content": text}]}
        stored += client.post("memories/", body).json["results"]
    with override_settings(STREAM_IDLE_MINUTES=0):
        assert streams_end_idle() == 1
    run_jobs()
    return stored


def test_member_ends_no_statement_of_another_to_the_same_agent(alice: Contract, eve: Contract, agent: str) -> None:
    (first,) = tell(alice, agent, "a", "I live in Lisbon.")
    tell(eve, agent, "b", "I live in Oslo.")
    found = alice.get(f"memories/{first['id']}/").json
    assert (found["valid_to"], found["superseded_by"], found["version"]) == (None, None, 1)


def test_talk_of_a_member_with_an_agent_does_not_end_that_of_another(
    world: World, alice: Contract, eve: Contract, agent: str
) -> None:
    for client, session in ((alice, "a"), (eve, "b")):
        message = {"role": "user", "content": "I live in Lisbon."}
        assert client.post("memories/", {"persona": agent, "session_id": session, "messages": [message]}).status == 201
    with acting(world.alice.actor):
        assert Stream.objects.filter(ended_at=None).count() == 2


def test_statement_of_the_same_member_still_ends_the_one_before(alice: Contract, agent: str) -> None:
    (first,) = tell(alice, agent, "a", "I live in Lisbon.")
    (second,) = tell(alice, agent, "b", "I moved to Oslo.")
    assert alice.get(f"memories/{first['id']}/").json["superseded_by"] == second["id"]


def test_traits_of_an_agent_count_only_visible_evidence(alice: Contract, eve: Contract, agent: str) -> None:
    tell(eve, agent, "b", "I drink coffee.")
    (before,) = eve.get(f"personas/{agent}/traits/").json["results"]
    tell(alice, agent, "a", "I drink coffee at home.", "I drink coffee at work.", "I drink coffee at night.")
    (after,) = [row for row in eve.get(f"personas/{agent}/traits/").json["results"] if row["dimension"] == "coffee_tea"]
    assert (after["level"], after["confidence"], after["evidence"]) == (
        before["level"],
        before["confidence"],
        before["evidence"],
    )
    assert after["history"] == []


def test_chat_ends_no_memory_of_another_member_in_a_shared_namespace(alice: Contract, eve: Contract) -> None:
    theirs = eve.add("I live in Utrecht now.", namespace="/team")["id"]
    run_jobs()
    ask(alice, "I live in London now.")
    found = eve.get(f"memories/{theirs}/").json
    assert (found["valid_to"], found["version"]) == (None, 1)


def test_question_for_a_field_is_not_answered_by_another_members_statement(alice: Contract, eve: Contract) -> None:
    ask(alice, "My name is Alice Liddell.")
    eve.add("My name is Bob Tanner.", namespace="/team")
    run_jobs()
    reply = ask(alice, "What is my name?")
    assert "Alice Liddell" in reply
    assert "Bob Tanner" not in reply
