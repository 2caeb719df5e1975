"""The graph: what is near a name, as far as its reader sees it, and how things stood at a time."""

from html import unescape

import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in, statements
from tests.vault.outbox import run_jobs


@pytest.fixture
def ids(world: World) -> list[str]:
    """Three shared memories, and one that alice alone sees."""
    items = [
        {"content": "We met Marta in Lisbon.", "namespace": "/team", "valid_to": "2026-03-01T00:00:00Z"},
        {"content": "Then Marta moved to Porto.", "namespace": "/team", "valid_from": "2026-03-01T00:00:00Z"},
        {"content": "Nobody visits Oslo in winter.", "namespace": "/team"},
        {"content": "In secret Marta likes Geneva."},
    ]
    for item in items:
        item["event_time"] = "2026-01-15T00:00:00Z"
    reply = world.client("alice").post("memories/bulk/", {"items": items})
    run_jobs()
    return [row["memory"]["id"] for row in reply.json["results"]]


def page_of(world: World, name: str, asked: str = "") -> str:
    response = signed_in(world.person(name)).get(f"/graph/{asked}")
    assert response.status_code == 200, response.content
    return unescape(response.content.decode())


def memories_in(page: str, ids: list[str]) -> list[bool]:
    return [f"/memories/{memory_id}/" in page for memory_id in ids]


def test_what_names_a_person_is_drawn_as_far_as_the_reader_sees(world: World, ids: list[str]) -> None:
    assert memories_in(page_of(world, "alice", "?around=Marta"), ids) == [True, True, False, True]
    bob = page_of(world, "bob", "?around=Marta")
    assert memories_in(bob, ids) == [True, True, False, False]
    assert "geneva" not in bob.lower()
    assert "There are no links here" in page_of(world, "charlie", "?around=Marta")
    assert signed_in(world.ada).get("/graph/").status_code == 403


@pytest.mark.parametrize("form", ["graph", "timeline", "list"])
def test_every_form_holds_the_same_memories(world: World, ids: list[str], form: str) -> None:
    assert memories_in(page_of(world, "bob", f"?around=Marta&form={form}"), ids) == [True, True, False, False]


def test_at_a_time_only_what_held_true_then_is_shown(world: World, ids: list[str]) -> None:
    before = page_of(world, "bob", "?around=Marta&at=2026-02-01&form=list")
    after = page_of(world, "bob", "?around=Marta&at=2026-04-01&form=list")
    assert memories_in(before, ids)[:2] == [True, False]
    assert memories_in(after, ids)[:2] == [False, True]
    assert memories_in(page_of(world, "bob", "?around=Marta&at=2025-01-01"), ids) == [False] * 4


def test_near_a_memory_are_those_that_name_the_same(world: World, ids: list[str]) -> None:
    assert memories_in(page_of(world, "bob", f"?memory={ids[0]}"), ids) == [True, True, False, False]
    assert memories_in(page_of(world, "bob", f"?memory={ids[3]}"), ids) == [False] * 4


def test_without_a_name_the_newest_are_shown(world: World, ids: list[str]) -> None:
    assert memories_in(page_of(world, "bob"), ids) == [True, True, True, False]


def test_graph_begins_with_own_topics_and_names_each_of_few_memories(world: World, ids: list[str]) -> None:
    alice = world.client("alice")
    tagged = alice.post("memories/", {"content": "Fire it slowly.", "namespace": "/team", "tags": ["kiln"]})
    page = page_of(world, "bob")
    assert "?around=kiln" in page, "a tag is a topic"
    assert "?around=marta" in page
    assert "?around=nobody" not in page, "the first word of a sentence names nothing where another name is there"
    assert ">Fire it slowly.</text>" in page
    near = page_of(world, "bob", "?around=kiln")
    assert f"/memories/{tagged.json['results'][0]['id']}/" in near
    assert memories_in(near, ids) == [False] * 4


def test_a_name_that_is_too_long_is_refused_in_words(world: World, ids: list[str]) -> None:
    assert "The filter cannot be used." in page_of(world, "bob", f"?around={'a' * 201}")


def test_the_graph_costs_few_statements(world: World, ids: list[str]) -> None:
    assert len(statements(signed_in(world.bob), "/graph/?around=Marta")) <= 20
