"""The check of the index: what is missing or stale is repaired, damage is named, a hold stops both."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]
CHECK = {"kind": "index.check", "cron": "0 4 * * *"}
HERON = "The heron nests by the mill."


@pytest.fixture
def heron(alice: Contract, superuser: Superuser) -> str:
    """A searchable memory whose vector is due."""
    memory_id = str(alice.add(HERON, namespace="/team")["id"])
    run_jobs()
    superuser().execute("UPDATE vault_cube SET updated_at = now() - interval '1 hour'")
    return memory_id


def check_index(olivia: Contract, **chosen: Any) -> dict[str, Any]:
    """Run a check to its end; its result."""
    made = olivia.post("schedules/", CHECK | {"settings": chosen})
    assert made.status == 201, made
    started = olivia.post(f"schedules/{made.json['id']}/run/", {})
    run_jobs()
    job = olivia.get(f"jobs/{started.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


def test_sound_index_has_no_fault(olivia: Contract, alice: Contract, heron: str) -> None:
    archived = str(alice.add("The heron wades.", namespace="/team")["id"])
    assert alice.post(f"memories/{archived}/transition/", {"to": "archived"}).status == 200
    deleted = str(alice.add("The heron left.", namespace="/team")["id"])
    assert alice.delete(f"memories/{deleted}/").status == 204
    assert alice.patch(f"memories/{heron}/", {"content": f"{HERON} Still."}, if_match='"1"').status == 200
    run_jobs()
    assert check_index(olivia) == {"changed": 0, "faults": {}, "codes": {}, "skipped": []}


@each_case(
    ("broken", "fault", "mode"),
    [
        ("DELETE FROM vault_posting", "postings", "lexical"),
        ("UPDATE vault_posting SET namespace_id = uuidv7()", "postings", "lexical"),
        ("UPDATE vault_posting SET layer = 7", "postings", "lexical"),
        ("DELETE FROM vault_embedding", "vector", "dense"),
        ("UPDATE vault_cube SET is_indexed = false", "postings", "lexical"),
    ],
)
def test_broken_index_is_repaired(
    olivia: Contract, alice: Contract, superuser: Superuser, heron: str, broken: str, fault: str, mode: str
) -> None:
    superuser().execute(broken)
    assert check_index(olivia, repair=False) == {
        "changed": 0,
        "faults": {fault: 1},
        "codes": {fault: 1},
        "skipped": [{"id": heron, "code": fault}],
    }
    assert check_index(olivia)["changed"] == 1
    run_jobs()
    assert alice.search_contents("heron", mode=mode, namespaces=["/team"], layers=["long_term"]) == [HERON]
    assert check_index(olivia)["faults"] == {}


def test_posting_of_an_archived_memory_is_taken_out(
    olivia: Contract, alice: Contract, superuser: Superuser, heron: str
) -> None:
    superuser().execute("UPDATE vault_cube SET state = 'archived'")
    assert check_index(olivia)["faults"] == {"postings": 1}
    assert alice.search_contents("heron", mode="lexical") == []
    assert alice.search_contents("heron", mode="lexical", include_archived=True) == [HERON]
    assert check_index(olivia)["faults"] == {}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vault_cube SET content_hash = '\\x00'",
        "UPDATE vault_cubeversion SET sealed = set_byte(sealed, 40, 255 - get_byte(sealed, 40))",
        "UPDATE vault_cubeversion SET previous_hash = '\\x00'",
    ],
)
def test_damaged_version_is_named_and_not_touched(
    olivia: Contract, superuser: Superuser, heron: str, damage: str
) -> None:
    root = superuser()
    root.execute("SET session_replication_role = replica")
    root.execute(damage)
    result = check_index(olivia)
    assert (result["changed"], result["skipped"]) == (0, [{"id": heron, "code": "damaged"}])


def test_held_memory_is_not_repaired(olivia: Contract, alice: Contract, superuser: Superuser, heron: str) -> None:
    assert alice.post(f"memories/{heron}/freeze/", {"reason": "An audit."}).status == 200
    superuser().execute("DELETE FROM vault_posting")
    assert check_index(olivia)["changed"] == 0


def test_command_checks_a_tenant(world: World, olivia: Contract, superuser: Superuser, heron: str) -> None:
    superuser().execute("DELETE FROM vault_embedding")
    call_command("index_check", "--tenant", "acme", "--json")
    run_jobs()
    assert check_index(olivia)["faults"] == {}


def test_missing_passages_of_a_long_memory_are_asked_for(
    olivia: Contract, alice: Contract, superuser: Superuser, heron: str
) -> None:
    alice.add("The tide was low. " * 500, namespace="/team")
    run_jobs()
    count = "SELECT count(*) FROM vault_embedding WHERE part > 0"
    wanted = superuser().execute(count).fetchone()
    superuser().execute("DELETE FROM vault_embedding WHERE part > 0")
    superuser().execute("UPDATE vault_cube SET updated_at = updated_at - interval '1 day'")
    assert check_index(olivia)["faults"] == {"vector": 1}
    run_jobs()
    assert superuser().execute(count).fetchone() == wanted != (0,)
    assert check_index(olivia)["faults"] == {}
