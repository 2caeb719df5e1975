"""A held memory does not expire: its expiry waits until no hold is left, then counts again."""

from collections.abc import Callable

import psycopg
import pytest

from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract

Superuser = Callable[[], psycopg.Connection]
SOON = "2100-01-01T00:00:00Z"
DROP = "DROP TRIGGER holds_suspend_expiry ON vault_holdcube"


@pytest.fixture
def sam(world: World) -> Contract:
    return Contract(key=person_add(world.acme, "sam@acme.example", RoleName.ADMIN).key.text)


@pytest.fixture
def memory_id(alice: Contract) -> str:
    return str(alice.add("The valve leaks.", namespace="/team", expires_at=SOON, tags=["valve"])["id"])


def hold(olivia: Contract, **over: object) -> str:
    reply = olivia.post("holds/", {"reason": "Claim 17.", **over})
    assert reply.status == 201, reply
    return f"holds/{reply.json['id']}/release/"


def pass_expiry(superuser: Superuser, memory_id: str) -> None:
    """Let the time of the expiry pass: the role of the application could not, and the clock is the database's."""
    connection = superuser()
    connection.execute("SET session_replication_role = replica")
    connection.execute(
        "UPDATE vault_cube SET suspended_expiry = CASE WHEN expires_at IS NULL THEN now() - interval '1 day' END, "
        "expires_at = CASE WHEN expires_at IS NOT NULL THEN now() - interval '1 day' END WHERE id = %s",
        [memory_id],
    )


@pytest.mark.parametrize("over", ["memory_id", "filters", "subject"])
def test_held_memory_is_read_after_its_expiry_until_the_last_hold_ends(
    alice: Contract, bob: Contract, olivia: Contract, sam: Contract, superuser: Superuser, memory_id: str, over: str
) -> None:
    if over == "subject":
        memory_id = str(
            alice.add("Ana signed.", namespace="/team", expires_at=SOON, subject="ana", tags=["valve"])["id"]
        )
    named = {"memory_id": memory_id, "filters": {"tags": "valve"}, "subject": "ana"}
    first, second = hold(olivia, **{over: named[over]}), hold(olivia, memory_id=memory_id)
    assert alice.get(f"memories/{memory_id}/").json["expires_at"] is None
    pass_expiry(superuser, memory_id)
    content = bob.get(f"memories/{memory_id}/").json["content"]
    assert content in bob.search_contents("valve Ana signed", min_score=0.01)
    assert [client.post(first).status for client in (olivia, sam)] == [202, 200]
    assert bob.get(f"memories/{memory_id}/").status == 200
    assert [client.post(second).status for client in (olivia, sam)] == [202, 200]
    assert bob.get(f"memories/{memory_id}/").status == 404
    assert content not in bob.search_contents("valve Ana signed", min_score=0.01)


def test_frozen_memory_does_not_expire_and_has_its_expiry_back_after(
    world: World, alice: Contract, memory_id: str
) -> None:
    assert alice.post(f"memories/{memory_id}/freeze/", {"reason": "Audit."}).status == 200
    assert alice.get(f"memories/{memory_id}/").json["expires_at"] is None
    assert "waits for the end of the hold" in signed_in(world.alice).get(f"/memories/{memory_id}/").content.decode()
    assert alice.post(f"memories/{memory_id}/unfreeze/").status == 200
    assert alice.get(f"memories/{memory_id}/").json["expires_at"] == SOON


def test_memory_that_comes_under_an_active_hold_does_not_expire(alice: Contract, olivia: Contract) -> None:
    hold(olivia, filters={"tags": "pump"})
    hold(olivia, subject="carla")
    for fields in ({"tags": ["pump"]}, {"subject": "carla"}):
        made = alice.add("New.", namespace="/team", expires_at=SOON, allow_duplicates=True, **fields)
        assert alice.get(f"memories/{made['id']}/").json["expires_at"] is None


def test_memory_that_expired_before_the_hold_stays_expired(
    alice: Contract, olivia: Contract, superuser: Superuser, memory_id: str
) -> None:
    pass_expiry(superuser, memory_id)
    hold(olivia, memory_id=memory_id)
    assert alice.get(f"memories/{memory_id}/").status == 404


def test_hold_without_its_trigger_lets_the_memory_expire(
    alice: Contract, olivia: Contract, superuser: Superuser, memory_id: str
) -> None:
    superuser().execute(DROP.encode())
    hold(olivia, memory_id=memory_id)
    pass_expiry(superuser, memory_id)
    assert alice.get(f"memories/{memory_id}/").status == 404
