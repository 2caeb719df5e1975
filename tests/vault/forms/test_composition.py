"""Blocks put together: exact by default, moved where a person chose so, each with the rights of its own memories."""

from typing import Any

import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.forms.test_caches import FACTS, add_facts, ask, engine, make_cache, used_caches
from tests.vault.forms.twin import EngineTwin

__all__ = ["engine"]


def make_two(client: Contract, ids: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make a cache of two facts and another of the third, both mounted on the client's persona."""
    return make_cache(client, ids[:2], title="House rules"), make_cache(client, ids[2:], title="Photographs")


def choose(client: Contract, form: dict[str, Any], composition: str) -> None:
    changed = client.patch(f"forms/{form['id']}/", {"composition": composition})
    assert (changed.status, changed.json["composition"]) == (200, composition)


def moved_caches(engine: EngineTwin) -> list[int]:
    return [each["again"] for each in engine.asked[-1].get("moved", [])]


def prompt_text(engine: EngineTwin) -> str:
    return str(engine.asked[-1]["messages"][1]["content"])


def test_blocks_are_exact_by_default_so_only_the_newest_is_in_the_prompt(engine: EngineTwin, alice: Contract) -> None:
    first, second = make_two(alice, add_facts(alice))
    assert {first["composition"], second["composition"]} == {"exact"}
    ask(alice)
    assert (len(used_caches(engine)), moved_caches(engine)) == (1, [])
    assert prompt_text(engine).startswith(f'[1] "{FACTS[2]}"')


@pytest.mark.parametrize(("composition", "again"), [("rotated", 0), ("rotated+recompute(12)", 12)])
def test_block_that_may_be_moved_stands_behind_the_exact_one_and_says_why(
    composition: str, again: int, engine: EngineTwin, world: World, alice: Contract
) -> None:
    second, first = make_two(alice, add_facts(alice))
    choose(alice, second, composition)
    turn = ask(alice)
    assert (len(used_caches(engine)), moved_caches(engine)) == (2, [again])
    text = prompt_text(engine)
    assert text.index(FACTS[2]) < text.index(FACTS[0]) < text.index(FACTS[1])
    assert [f"[{number}] " in text for number in (1, 2, 3)] == [True, True, True]
    why = signed_in(world.alice).get(f"/chat/{turn['conversation']}/turns/{turn['id']}/why/").content.decode()
    assert "As a cache, moved behind another one: rotated" in why
    assert ("its first 12 tokens are read again" in why) is (again == 12)
    saved = [alice.get(f"forms/{form['id']}/").json["saved_tokens"] for form in (first, second)]
    assert saved == [first["tokens"], second["tokens"] - again]


def test_moved_block_leaves_the_prompt_at_once_when_its_parent_is_changed(engine: EngineTwin, alice: Contract) -> None:
    ids = add_facts(alice)
    second, _ = make_two(alice, ids)
    choose(alice, second, "rotated")
    edited = alice.patch(f"memories/{ids[0]}/", {"content": "Bags stay at home."}, **{"If-Match": '"1"'})
    assert edited.status == 200
    ask(alice)
    assert (len(used_caches(engine)), moved_caches(engine)) == (1, [])
    assert FACTS[0] not in prompt_text(engine)


def test_memory_of_two_blocks_enters_once(engine: EngineTwin, alice: Contract) -> None:
    ids = add_facts(alice)
    wide = make_cache(alice, ids, title="All rules")
    make_cache(alice, ids[:1], title="Bags")
    choose(alice, wide, "rotated")
    ask(alice)
    text = prompt_text(engine)
    assert [text.count(fact) for fact in FACTS] == [1, 1, 1]


def test_reader_without_the_right_to_a_parent_of_the_moved_block_gets_only_the_other(
    engine: EngineTwin, world: World, olivia: Contract, alice: Contract
) -> None:
    assert olivia.post("namespaces/", {"path": "/team/rules", "kind": "shared"}).status == 201
    ids = add_facts(olivia, namespace="/team/rules")
    agent = olivia.post("personas/", {"name": "guide", "kind": "agent"}).json["id"]
    second = make_cache(olivia, ids[:2], persona=agent)
    make_cache(olivia, ids[2:], persona=agent)
    choose(olivia, second, "rotated")
    ask(alice, agent_persona=agent)
    assert moved_caches(engine) == [0]
    denial = {"principal": {"kind": "member", "id": str(world.alice.member.id)}, "action": "read", "effect": "deny"}
    assert olivia.post("grants/", {**denial, "object": {"type": "memory", "id": ids[0]}}).status == 201
    ask(alice, agent_persona=agent)
    assert (len(used_caches(engine)), moved_caches(engine)) == (1, [])
    assert FACTS[0] not in prompt_text(engine)


def test_model_whose_keys_cannot_be_moved_gets_the_second_block_as_text(engine: EngineTwin, alice: Contract) -> None:
    engine.fingerprint, engine.is_movable = "c" * 64, False
    second, _ = make_two(alice, add_facts(alice))
    assert second["quality"] == {}
    choose(alice, second, "rotated")
    ask(alice)
    assert (len(used_caches(engine)), moved_caches(engine)) == (1, [])
    assert FACTS[0] in prompt_text(engine)


def test_composition_is_chosen_by_those_who_may_change_the_cache(
    engine: EngineTwin, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    form = make_cache(alice, add_facts(alice))
    for client in (bob, charlie):
        assert client.patch(f"forms/{form['id']}/", {"composition": "rotated"}).status in {403, 404}
    assert alice.patch(f"forms/{form['id']}/", {"composition": "rotated+recompute(7)"}).status == 400
    assert alice.get(f"forms/{form['id']}/").json["composition"] == "exact"


def test_page_shows_each_composition_with_its_measured_quality(
    engine: EngineTwin, world: World, alice: Contract
) -> None:
    engine.fingerprint = "b" * 64
    form = make_cache(alice, add_facts(alice))
    assert form["quality"]["rotated+recompute(12)"] == {"kl": 0.24, "same": 1.0}
    browser = signed_in(world.alice)
    page = browser.get("/forms/").content.decode()
    assert "rotated: its keys are turned to its place (0 % of answers equal, KL 0.30)" in page
    assert "rotated, and its first 32 tokens are read again (100 % of answers equal, KL 0.14)" in page
    change = f"/forms/{form['id']}/change/"
    assert browser.post(change, {"action": "compose", "composition": "rotated"}).status_code == 303
    assert browser.post(change, {"action": "compose", "composition": "mixed"}).status_code == 422
    assert alice.get(f"forms/{form['id']}/").json["composition"] == "rotated"
