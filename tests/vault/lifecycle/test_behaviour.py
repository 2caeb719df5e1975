"""Heat, importance and fingerprints: computed from counts by jobs, shown on the page, written by no reading."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from pytest_django import Settings

from governance.actor import system_actor
from governance.database import acting
from governance.ids import uuid7
from governance.jobs.kinds import JobRun
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.lifecycle.behaviour import behaviour_update
from vault.models import CubeUse
from vault.providers.registry import embedder

Superuser = Callable[[], psycopg.Connection]
UPDATE = {"kind": "behaviour.update", "cron": "30 2 * * *"}
HERON = "The heron nests by the mill."


@pytest.fixture
def add_used_memory(alice: Contract, superuser: Superuser) -> Callable[..., str]:
    """Add a memory that was used so often, the last time so many days ago."""

    def add(content: str, uses: int, days: int = 0, **fields: Any) -> str:
        memory_id = str(alice.add(content, namespace="/team", **fields)["id"])
        run_jobs()
        superuser().execute(
            "INSERT INTO vault_cubeuse (tenant_id, cube_id, access_count, last_accessed_at, heat) "
            "SELECT tenant_id, id, %s, now() - %s * interval '1 day', 0 FROM vault_cube WHERE id = %s",
            [uses, days, memory_id],
        )
        return memory_id

    return add


def update_importance(olivia: Contract, **chosen: Any) -> dict[str, Any]:
    """Run the job to its end; its result."""
    made = olivia.post("schedules/", UPDATE | {"settings": chosen})
    assert made.status == 201, made
    started = olivia.post(f"schedules/{made.json['id']}/run/", {})
    assert started.status == 202, started
    run_jobs()
    job = olivia.get(f"jobs/{started.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


def heat_and_importance(superuser: Superuser, memory_id: str) -> tuple[float, float]:
    row = (
        superuser()
        .execute(
            "SELECT used.heat, cube.importance FROM vault_cube AS cube JOIN vault_cubeuse AS used "
            "ON used.cube_id = cube.id WHERE cube.id = %s",
            [memory_id],
        )
        .fetchone()
    )
    assert row is not None
    return row[0], row[1]


def test_heat_and_importance_follow_the_counts_of_use(
    world: World, olivia: Contract, add_used_memory: Callable[..., str], superuser: Superuser
) -> None:
    often, once = add_used_memory(HERON, uses=50), add_used_memory("The otter swims.", uses=1, days=116)
    stated = add_used_memory("The mill burns.", uses=2, importance=0.9)
    assert update_importance(olivia) == {"changed": 3, "importance": 1}
    heat, importance = heat_and_importance(superuser, often)
    assert heat == pytest.approx(51.0, abs=0.01)
    assert importance == pytest.approx(0.852, abs=0.001)  # ln 51 / ln 101
    heat, importance = heat_and_importance(superuser, once)
    assert (heat, importance) == pytest.approx((1.367, 0.5), abs=0.01)  # 116 days: 10⁷ s
    assert heat_and_importance(superuser, stated)[1] == 0.9
    page = signed_in(world.alice).get(f"/memories/{often}/").text
    assert "51" in page
    assert "0.85" in page
    with acting(world.olivia.actor):
        (entry,) = AuditEntry.objects.filter(verb=Verb.MEMORY_IMPORTANCE_RAISED)
        assert [str(object_id) for object_id in entry.object_ids] == [often]


def test_second_run_changes_nothing_and_two_at_once_write_the_same(
    world: World, olivia: Contract, add_used_memory: Callable[..., str], superuser: Superuser
) -> None:
    memory_id = add_used_memory(HERON, uses=50)
    system = system_actor(tenant_id=world.acme.id, request_id="test")
    run = JobRun(uuid7(), system, system, {}, {}, 0, None, None, {}, lambda done, total: None)
    writes = [behaviour_update(run) for _ in range(2)]
    with acting(system):
        changed = [write().result for write in writes if callable(write)]
    assert changed == [{"changed": 1, "importance": 1}, {"changed": 0, "importance": 0}]
    first = heat_and_importance(superuser, memory_id)
    assert update_importance(olivia) == {"changed": 0, "importance": 0}
    assert heat_and_importance(superuser, memory_id) == first


def test_held_memory_keeps_its_importance_and_settings_leave_it(
    olivia: Contract, alice: Contract, add_used_memory: Callable[..., str], superuser: Superuser
) -> None:
    held, other = add_used_memory(HERON, uses=50), add_used_memory("The otter swims.", uses=50)
    assert alice.post(f"memories/{held}/freeze/", {"reason": "An audit."}).status == 200
    assert update_importance(olivia, importance=False) == {"changed": 2, "importance": 0}
    assert heat_and_importance(superuser, other)[1] == 0.5
    assert update_importance(olivia)["importance"] == 1
    assert heat_and_importance(superuser, held)[1] == 0.5


def test_preview_counts_changes_nothing_and_is_for_who_manages_operations(
    world: World,
    olivia: Contract,
    alice: Contract,
    bob: Contract,
    charlie: Contract,
    add_used_memory: Callable[..., str],
    superuser: Superuser,
) -> None:
    memory_id = add_used_memory(HERON, uses=50)
    schedule = olivia.post("schedules/", UPDATE).json["id"]
    previewed = olivia.post(f"schedules/{schedule}/run/?dry_run=true", {})
    assert (previewed.status, previewed.json["count"], previewed.json["ids"]) == (200, 1, [memory_id])
    assert heat_and_importance(superuser, memory_id) == (0.0, 0.5)
    page = signed_in(world.olivia).get(f"/schedules/?count={schedule}").text
    assert "would change 1 memory" in page
    for client, status in ((alice, 403), (bob, 403), (charlie, 404)):
        assert client.post(f"schedules/{schedule}/run/", {}).status == status
    assert heat_and_importance(superuser, memory_id) == (0.0, 0.5)


def test_fingerprint_is_the_centroid_of_the_questions_that_a_memory_answered(
    world: World, alice: Contract, settings: Settings
) -> None:
    heron = alice.add(HERON, namespace="/team")["id"]
    alice.add("Invoices are due on the first Friday of the month.", namespace="/team")
    run_jobs()
    for _ in range(2):
        alice.search("heron mill")
        run_jobs()
    with acting(world.alice.actor):
        use = CubeUse.objects.get(cube_id=heron)
        assert (use.fingerprint_count, bool(use.fingerprint_model)) == (2, True)
        assert use.fingerprint == pytest.approx(_question_vector("heron mill"), abs=0.01)
    assert "Questions answered" in signed_in(world.alice).get(f"/memories/{heron}/").text
    settings.MEMOS_SEARCH_WEIGHTS = {"fingerprint": 1.0}
    (first, *_) = alice.search("heron mill", explain=True)
    assert (first["id"], first["score_parts"]["fingerprint"]) == (heron, pytest.approx(1.0, abs=0.01))


def _question_vector(text: str) -> list[float]:
    return list(embedder().embed([text])[0])
