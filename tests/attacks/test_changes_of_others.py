"""Rollback, move, views, and actions on many: nobody reaches by them what they could not read or change before."""

from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from tests.factories import World
from tests.governance.tables import Rows, read_all_rows
from tests.governance.tenants.test_bound_keys import create_bound_client
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, contract

Superuser = Callable[[], psycopg.Connection]
SECRET = "wolverine"
BULK = "/memories/bulk/"
ACTIONS = (
    {"action": "tag", "tag": "mine"},
    {"action": "move", "namespace": "/team/taken"},
    {"action": "expire", "expires_at": "2099-01-01"},
    {"action": "freeze", "reason": "mine now"},
    {"action": "unfreeze"},
    {"action": "delete"},
    {"action": "restore"},
)


@pytest.fixture
def alice(world: World) -> Contract:
    return contract(world, "alice")


@pytest.fixture
def olivia(world: World) -> Contract:
    return contract(world, "olivia")


def test_version_of_somebodys_private_time_is_neither_shown_compared_nor_brought_back(
    alice: Contract, olivia: Contract
) -> None:
    memory = olivia.add(f"The {SECRET} is at home.")["id"]
    address = f"memories/{memory}/"
    assert olivia.patch(address, {"content": "Nobody is at home."}, if_match='"1"').status == 200
    assert olivia.post(f"{address}move/", {"namespace": "/team"}).status == 200
    assert alice.get(address).status == 200
    assert alice.get(f"{address}versions/1/").status == 404
    assert alice.get(f"{address}diff/?from=1&to=3").status == 400
    assert alice.post(f"{address}rollback/", {"version": 1}).status == 400
    assert SECRET not in alice.get(f"{address}versions/").body.decode()
    assert olivia.post(f"{address}rollback/", {"version": 1}).status == 200, "who may read it may open it"


@pytest.mark.parametrize("place", ["/users/olivia", "/users/olivia/notes", "/users/nobody"])
def test_memory_is_not_moved_into_the_home_of_another(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser, place: str
) -> None:
    olivia.add("There already.")
    memory = alice.add("A heron.", namespace="/team")["id"]
    before = read_all_rows(superuser())
    assert alice.post(f"memories/{memory}/move/", {"namespace": place}).status in {400, 403, 404}
    page = signed_in(world.alice).post(BULK, {"action": "move", "namespace": place, "id": [memory], "confirmed": "yes"})
    assert page.status_code in {303, 422}
    assert alice.get(f"memories/{memory}/").json["namespace"]["path"] == "/team"
    after = read_all_rows(superuser())
    assert {name for name in after if name.startswith("vault_") and after[name] != before.get(name)} <= {
        "vault_cubeuse"
    }


def test_bound_key_brings_nothing_in_or_out(world: World, alice: Contract) -> None:
    key = create_bound_client(world, world.alice, namespaces=("/team",))
    outside = alice.add(f"The {SECRET} is elsewhere.", namespace="/other")["id"]
    inside = alice.add("A heron.", namespace="/team")["id"]
    for call, body in (("move", {"namespace": "/team"}), ("rollback", {"version": 1})):
        assert key.post(f"memories/{outside}/{call}/", body).status == 404
    assert key.post(f"memories/{inside}/move/", {"namespace": "/other"}).status == 403
    assert alice.patch(f"memories/{outside}/", {"content": "Gone."}, if_match='"1"').status == 200
    assert alice.post(f"memories/{outside}/move/", {"namespace": "/team"}).status == 200
    assert key.get(f"memories/{outside}/").json["content"] == "Gone."
    assert key.get(f"memories/{outside}/versions/1/").status == 404
    assert key.post(f"memories/{outside}/rollback/", {"version": 1}).status == 400
    assert SECRET not in key.get(f"memories/{outside}/versions/").body.decode()


@pytest.mark.parametrize("form", ACTIONS, ids=lambda form: str(form["action"]))
def test_action_on_many_tells_a_foreign_memory_from_a_random_one_by_nothing_and_changes_neither(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser, form: dict[str, str]
) -> None:
    mine = alice.add("A heron.", namespace="/team")["id"]
    private = olivia.add(f"The {SECRET}.")["id"]
    before = read_all_rows(superuser())
    told: dict[str, set[tuple[str, int]]] = {}
    for who, others in (("charlie", [mine, private]), ("alice", [private])):
        for other in (*others, str(uuid4())):
            browser = signed_in(world.person(who))  # without the message of the action before
            asked = browser.post(BULK, {**form, "id": [other]}).content.decode().replace(other, "")
            done = browser.post(BULK, {**form, "id": [other], "confirmed": "yes"})
            told.setdefault(who, set()).add((_without_tokens(asked), done.status_code))
    assert len(told["charlie"]) == 1
    assert _list_changed_tables(before, read_all_rows(superuser())) == set()


def _list_changed_tables(before: dict[str, Rows], after: dict[str, Rows]) -> set[str]:
    """The tables of the product that have other rows."""
    return {name for name in after if name.startswith("vault_") and after[name] != before.get(name)}


def _without_tokens(page: str) -> str:
    return "\n".join(line for line in page.splitlines() if "csrf" not in line and "nonce" not in line)
