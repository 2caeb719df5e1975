"""Filters with an empty part are refused at each entrance; an empty filter alone where it would change everything."""

import json
from typing import Any

from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import contract, fields_at_fault
from tests.vault.store.pack_factories import pack_of

EMPTY_PARTS: dict[str, dict[str, Any]] = {
    "filters.NOT": {"NOT": {}},
    "filters.AND.0": {"AND": [{}]},
    "filters.OR.1": {"OR": [{"tags": "rota"}, {}]},
    "filters.AND": {"AND": []},
    "filters.NOT.OR.0.NOT": {"NOT": {"OR": [{"NOT": {}}]}},
    "filters.tags": {"tags": {}},
}
CHANGING = {
    "memories/actions/": {"action": "delete"},
    "holds/": {"reason": "Case 17."},
    "packs/{pack}/versions/": {"version": "1.0.0"},
}
READING: dict[str, dict[str, Any]] = {"memories/search/": {"query": "rota"}, "exports/": {}}


@each_case("path", [*CHANGING, *READING])
def test_filter_with_an_empty_part_is_refused(world: World, path: str) -> None:
    olivia = contract(world, "olivia")
    entrance = (CHANGING | READING)[path]
    pack = pack_of(olivia) if "{pack}" in path else ""
    for field, filters in EMPTY_PARTS.items():
        reply = olivia.post(path.format(pack=pack), {**entrance, "filters": filters})
        assert (reply.status, fields_at_fault(reply)) == (400, {field}), filters


@each_case("path", [*CHANGING])
def test_empty_filter_is_refused_where_it_would_change_everything(world: World, path: str) -> None:
    olivia = contract(world, "olivia")
    pack = pack_of(olivia) if "{pack}" in path else ""
    reply = olivia.post(path.format(pack=pack), {**CHANGING[path], "filters": {}})
    assert (reply.status, fields_at_fault(reply)) == (400, {"filters"})


def test_list_takes_an_empty_filter_and_refuses_empty_parts(world: World) -> None:
    alice = contract(world, "alice")
    alice.add("The mill turns.")
    assert alice.get("memories/?filters={}").json["count"] == 1
    for field, filters in EMPTY_PARTS.items():
        reply = alice.get(f"memories/?filters={json.dumps(filters)}")
        assert (reply.status, fields_at_fault(reply)) == (400, {field})
