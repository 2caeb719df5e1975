"""Filters with as many conditions as are allowed."""

import pytest

from governance.database import acting
from governance.keys.services import token_maker
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from vault.cubes.filters import MOST_JOINED, MOST_LEAVES, MOST_LOOKUPS, filter_read
from vault.models import Cube

COLOURS = {f"k{number}": number for number in range(60)}


@pytest.mark.parametrize("wrong", [None, 0, 1, 58, 59])
def test_of_very_many_conditions_each_must_hold(alice: Contract, wrong: int | None) -> None:
    wanted = alice.add("All of them.", metadata=COLOURS)
    alice.add("None of them.")
    asked = [{f"metadata.{key}": value + (index == wrong)} for index, (key, value) in enumerate(COLOURS.items())]
    found = alice.search("them", filters={"AND": asked})
    assert [hit["id"] for hit in found] == ([wanted["id"]] if wrong is None else [])
    listed = alice.search("them", filters={"AND": [{name: {"ne": 99} for name in item} for item in asked]})
    assert {hit["content"] for hit in listed} == {"All of them.", "None of them."}


@each_case("operator", ["eq", "ne"])
@each_case("nested", [False, True])
def test_few_of_them_are_joins_that_a_planner_has_to_put_in_order(world: World, operator: str, nested: bool) -> None:
    """It took seconds over a hundred."""
    leaves = [{"speaker": {operator: f"s{number}"}} for number in range(MOST_LEAVES)]
    body = {"AND": [{"AND": leaves[:50]}, *leaves[50:]]} if nested else {"AND": leaves}
    actor = world.alice.actor
    with acting(actor):
        rows = Cube.objects.filter(filter_read(token_maker(actor.tenant_id), body)).values("id")
        plan = rows.explain()
        assert rows.count() == 0
    assert plan.count("SubPlan") >= MOST_LEAVES - MOST_JOINED
    assert str(rows.query).count("EXISTS") == MOST_LEAVES


@pytest.mark.parametrize(
    ("heat", "holds"),
    [
        (0, True),
        ({"lte": 0.5}, True),
        ({"lt": 1}, True),
        ({"gte": 0}, True),
        ({"ne": 0}, False),
        ({"gt": 0}, False),
        ({"in": [0, 1]}, True),
        (1, False),
    ],
)
def test_what_was_never_used_has_the_heat_that_is_shown(alice: Contract, heat: object, holds: bool) -> None:
    assert alice.add("Cold.")["heat"] == 0
    assert len(alice.search("cold", filters={"heat": heat})) == holds


def test_filter_looks_sealed_fields_up_a_bounded_number_of_times(alice: Contract) -> None:
    """The values of one `in` are looked up together."""
    wanted = alice.add("A heron.", metadata={"n": 7})
    most = [{"metadata.n": 100 + number} for number in range(MOST_LOOKUPS - 1)]
    found = alice.search("heron", filters={"OR": [*most, {"metadata.n": {"in": [5, 6, 7]}}]})
    assert [hit["id"] for hit in found] == [wanted["id"]]
    both = {"metadata.n": {"in": [1], "ne": 3}}
    refused = alice.post("memories/search/", {"query": "heron", "filters": {"OR": [*most, both]}})
    assert (refused.status, refused.json["code"]) == (400, "invalid")
    assert "100 times" in refused.json["errors"][0]["message"]
