"""POST memories/search/ in mode graph: what no word finds, over links, and only over what the reader may see."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from governance.actor import system_actor
from governance.database import acting
from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.graph import walks
from vault.models import CubeLink
from vault.vocabulary import LinkKind

Superuser = Callable[[], psycopg.Connection]
QUESTION = "Where did Melanie adopt her dog?"


def tell_story(alice: Contract) -> dict[str, str]:
    """A chain of which the question's words find the first link alone, among much else; name → content."""
    story = {
        "first": "Melanie adopted a dog at Willow Shelter.",
        "hop": "Willow Shelter stands behind an old mill.",
        "two hops": "The brook beside that one floods each spring.",
    }
    alice.add(story["first"], namespace="/team")
    messages = [{"role": "user", "name": "Ben", "content": story[name]} for name in ("hop", "two hops")]
    said = {"messages": messages, "infer": False, "session_id": "s1", "namespace": "/team"}
    assert alice.post("memories/", said).status == 201
    items = [{"content": f"Entry {number} of a list of errands.", "namespace": "/team"} for number in range(30)]
    assert alice.post("memories/bulk/", {"items": items}).status == 201
    run_jobs()
    return story


def scores(who: Contract, question: str = QUESTION, **fields: Any) -> dict[str, float]:
    return {hit["content"]: hit["score"] for hit in who.search(question, **{"top_k": 100, "mode": "graph", **fields})}


def test_memory_two_hops_away_without_a_common_word_is_a_result(alice: Contract) -> None:
    story = tell_story(alice)
    by_words = {hit["content"]: hit["score"] for hit in alice.search(QUESTION, mode="lexical", top_k=100)}
    assert by_words[story["hop"]] == by_words[story["two hops"]] == 0
    near = alice.search(QUESTION, mode="graph", top_k=3)
    assert [hit["content"] for hit in near] == [story["first"], story["hop"], story["two hops"]]
    assert near[0]["score"] == 1
    assert all(0 < hit["score"] <= 1 for hit in near)


def test_chinese_memory_with_a_shared_name_is_a_result(alice: Contract) -> None:
    alice.add("卡罗琳领养了一只灰狗。")
    alice.add("卡罗琳住在杭州。")
    for number in range(20):
        alice.add(f"第{number}条没有关系的记录。")
    run_jobs()
    assert {hit["content"] for hit in alice.search("谁领养了灰狗？", mode="graph", top_k=2)} == {
        "卡罗琳领养了一只灰狗。",
        "卡罗琳住在杭州。",
    }


@pytest.mark.parametrize("question", [QUESTION, "nothing of this is known", "?", "🙂", "a"])
def test_any_question_returns_min_of_top_k_and_visible_rows(alice: Contract, question: str) -> None:
    tell_story(alice)
    for top_k, expected in ((1, 1), (10, 10), (33, 33), (100, 33)):
        hits = alice.search(question, mode="graph", top_k=top_k)
        assert len({hit["id"] for hit in hits}) == len(hits) == expected
        assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_filtered_memory_is_neither_step_nor_result(alice: Contract) -> None:
    story = tell_story(alice)
    found = scores(alice, filters={"speaker": {"ne": "Ben"}})
    assert story["hop"] not in found
    assert story["two hops"] not in found
    assert found[story["first"]] == 1
    bar = scores(alice, min_score=0.01)
    assert set(bar) == set(story.values())


def test_graph_search_returns_only_visible_memories(alice: Contract, bob: Contract, charlie: Contract) -> None:
    story = tell_story(alice)
    secret = "Melanie told me that Willow Shelter is closing."
    alice.add(secret)
    run_jobs()
    assert scores(alice)[secret] > 0
    seen = scores(bob)
    assert secret not in seen
    assert seen[story["two hops"]] > 0
    assert scores(charlie) == {}


def test_walk_does_not_pass_through_invisible_memories(world: World, alice: Contract, bob: Contract) -> None:
    first = alice.add("Melanie adopted a dog.", namespace="/team")
    hidden = alice.add("A private note.")
    last = alice.add("Green doors.", namespace="/team")
    run_jobs()
    link(world, (hidden, first), (last, hidden))
    assert scores(alice)["Green doors."] > 0
    assert scores(bob) == {"Melanie adopted a dog.": 1, "Green doors.": 0}


@pytest.mark.parametrize("way", ["private namespace", "denied namespace", "access level", "denial"])
def test_walk_does_not_reach_invisible_memories_behind_visible_ones(
    world: World, olivia: Contract, alice: Contract, bob: Contract, superuser: Superuser, way: str
) -> None:
    """Seen, seen, hidden: what bob gets is what he gets where nothing lies behind the second."""
    first = alice.add("Melanie adopted a dog.", namespace="/team")
    hop = alice.add("Green doors.", namespace="/team")
    place = {"private namespace": "/users/alice", "denied namespace": "/closed"}.get(way, "/team")
    hidden = alice.add("A note.", namespace=place)
    run_jobs()
    if way == "access level":
        superuser().execute("UPDATE vault_cube SET access_level = 'private' WHERE id = %s", [hidden["id"]])
    if way == "denial":
        give_grant(olivia, world, "bob", "memory", hidden["id"], effect="deny")
    if way == "denied namespace":
        give_grant(olivia, world, "bob", "namespace", hidden["namespace"]["id"], effect="deny")
    link(world, (first, hop))
    before = scores(bob)
    assert before["Green doors."] > 0
    link(world, (hidden, hop))
    assert scores(alice)["A note."] > 0
    assert scores(bob) == before
    assert set(before) == {"Melanie adopted a dog.", "Green doors."}


def test_walk_passes_a_rare_entity_but_not_a_common_one(alice: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "RARE", 3)
    alice.add("Ann adopted a dog at Willow Shelter.")
    for number in range(2):
        alice.add(f"This door, number {number}, of Willow Shelter is green.")
    assert scores(alice, "Who adopted a dog?")["This door, number 0, of Willow Shelter is green."] > 0
    alice.add("Willow Shelter has a roof.")
    found = scores(alice, "Who adopted a dog?")
    assert {text for text, score in found.items() if score > 0} == {"Ann adopted a dog at Willow Shelter."}


def test_entity_rare_among_visible_memories_extends_the_walk(
    alice: Contract, bob: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Denials before bob hide nothing from him, and alice's private memories lead her on."""
    monkeypatch.setattr(walks, "RARE", 3)
    alice.add("Ann adopted a dog at Willow Shelter.", namespace="/team")
    alice.add("The door of Willow Shelter is green.", namespace="/team")
    for number in range(2):
        alice.add(f"Willow Shelter owes me {number} coins.")
    assert scores(bob, "Who adopted a dog?")["The door of Willow Shelter is green."] > 0
    assert scores(alice, "Who adopted a dog?")["The door of Willow Shelter is green."] == 0
    assert scores(alice, "Who owes me 1 coins?", namespaces=["/users/alice"])["Willow Shelter owes me 0 coins."] > 0


def test_new_version_names_the_entities_of_its_text(alice: Contract) -> None:
    alice.add("Ann adopted a dog at Willow Shelter.")
    door = alice.add("The door of Willow Shelter is green.")
    edited = {"content": "The door of the Blue Mill is green."}
    assert alice.patch(f"memories/{door['id']}/", edited, if_match='"1"').status == 200
    assert scores(alice, "Who adopted a dog?")[edited["content"]] == 0
    back = {"content": "The door of Willow Shelter is red."}
    assert alice.patch(f"memories/{door['id']}/", back, if_match='"2"').status == 200
    assert scores(alice, "Who adopted a dog?")[back["content"]] > 0


@pytest.mark.parametrize("kind", walks.STEPS_OVER)
def test_walk_follows_every_kind_of_link_but_contradictions(world: World, alice: Contract, kind: LinkKind) -> None:
    first, last = alice.add("Melanie adopted a dog."), alice.add("Green doors.")
    link(world, (first, last), kind=LinkKind.CONTRADICTS)
    assert scores(alice)["Green doors."] == 0
    link(world, (first, last), kind=kind)
    assert scores(alice)["Green doors."] > 0


def link(world: World, *pairs: tuple[dict[str, Any], dict[str, Any]], kind: LinkKind = LinkKind.DERIVED) -> None:
    """From the first of each pair to the second."""
    with acting(system_actor(tenant_id=world.acme.id, request_id="test")):
        for source, target in pairs:
            CubeLink.objects.create(tenant_id=world.acme.id, source_id=source["id"], target_id=target["id"], kind=kind)


def test_deleted_memory_is_no_step_of_a_walk(alice: Contract) -> None:
    story = tell_story(alice)
    hop = next(hit for hit in alice.search(QUESTION, mode="graph", top_k=3) if hit["content"] == story["hop"])
    assert alice.delete(f"memories/{hop['id']}/").status == 204
    found = scores(alice)
    assert story["hop"] not in found
    assert found[story["two hops"]] == 0


def test_fifty_walks_on_one_connection_stay_the_same(alice: Contract) -> None:
    """A generic plan, taken after some runs, must not lose rows."""
    tell_story(alice)
    first = scores(alice)
    assert all(scores(alice) == first for _ in range(50))


def test_graph_search_of_an_auditor_is_refused(ada: Contract) -> None:
    assert ada.post("memories/search/", {"query": QUESTION, "mode": "graph"}).status == 403


def test_explained_graph_search_shows_its_part(alice: Contract) -> None:
    tell_story(alice)
    hit = alice.search(QUESTION, mode="graph", top_k=1, explain=True)[0]
    assert hit["score_parts"]["graph"] == hit["score"] == 1
    assert hit["score_parts"]["lexical"] == 1
    assert all(hit["score_parts"]["graph"] == 0 for hit in alice.search(QUESTION, explain=True))
