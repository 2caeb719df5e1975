"""The sweep: what expired is marked, what was forgotten is archived, what is over is erased; a hold stops all three."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.models.functions import Now

from governance.actor import system_actor
from governance.database import acting
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Step
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.lifecycle.attempts import ATTEMPTS
from vault.lifecycle.forgetting_policies import POLICIES, Forgetting, Use, reason_to_archive
from vault.lifecycle.sweep import lifecycle_sweep
from vault.models import Cube, StateTransition

Superuser = Callable[[], psycopg.Connection]
SWEEP = {"kind": "lifecycle.sweep", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}


@pytest.fixture
def add_old_memory(alice: Contract, superuser: Superuser) -> Callable[..., str]:
    """Add a memory that was written so many days ago."""

    def add(content: str, days: int, **columns: Any) -> str:
        memory_id = str(alice.add(content, namespace="/team")["id"])
        run_jobs()
        sets = "".join(f", {name} = now() - interval '{ago} days'" for name, ago in columns.items())
        superuser().execute(
            f"UPDATE vault_cube SET created_at = now() - %s * interval '1 day', updated_at = now() - %s * interval "
            f"'1 day'{sets} WHERE id = %s",
            [days, days, memory_id],
        )
        return memory_id

    return add


def states(world: World) -> dict[str, str]:
    with acting(world.alice.actor):
        return {str(cube.id): cube.state for cube in Cube.objects.all()}


def run_sweep(olivia: Contract, **chosen: Any) -> dict[str, Any]:
    """Run a sweep to its end; its result."""
    made = olivia.post("schedules/", SWEEP | {"settings": chosen})
    assert made.status == 201, made
    started = olivia.post(f"schedules/{made.json['id']}/run/", {})
    assert started.status == 202, started
    run_jobs()
    job = olivia.get(f"jobs/{started.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


def test_keep_formula_forgets_what_is_idle_and_keeps_what_is_used_or_important() -> None:
    idle = Use(timedelta(days=90), recalls=0, importance=0.5, priority=0.0)
    assert POLICIES[Forgetting.KEEP].judge(idle).score == pytest.approx(0.35 * 2.718281828**-3 + 0.125)
    assert "last used 90 days ago, used 0 times" in reason_to_archive(Forgetting.KEEP, idle)
    for kept in (
        Use(timedelta(days=90), recalls=9, importance=0.5, priority=0.0),
        Use(timedelta(days=90), recalls=0, importance=1.0, priority=0.0),
        Use(timedelta(days=90), recalls=0, importance=0.5, priority=1.0),
        Use(timedelta(days=10), recalls=0, importance=0.5, priority=0.0),
    ):
        assert reason_to_archive(Forgetting.KEEP, kept) == ""


@pytest.mark.parametrize("policy", Forgetting)
def test_every_policy_scores_an_idle_memory_below_a_used_one(policy: Forgetting) -> None:
    idle = Use(timedelta(days=400), recalls=0, importance=0.5, priority=0.0)
    used = Use(timedelta(days=1), recalls=5, importance=0.5, priority=0.0)
    assert POLICIES[policy].judge(idle).score < POLICIES[policy].judge(used).score
    assert reason_to_archive(policy, idle)
    assert reason_to_archive(policy, used) == ""


@pytest.mark.parametrize("policy", Forgetting)
def test_database_scores_as_the_policy_does(world: World, policy: Forgetting) -> None:
    uses = [
        Use(timedelta(days=days), recalls, importance, priority)
        for days in (0, 1, 45, 4_000)
        for recalls in (0, 3, 250)
        for importance, priority in ((0.0, 1.0), (0.5, 0.0))
    ]
    rows = "SELECT %s::float8 AS idle, %s::float8 AS uses, %s::float8 AS importance, %s::float8 AS priority"
    for use in uses:
        with acting(world.alice.actor), connection.cursor() as cursor:
            values = [use.idle.total_seconds(), use.recalls, use.importance, use.priority]
            cursor.execute(f"SELECT {POLICIES[policy].sql} FROM ({rows}) AS use", values)
            assert cursor.fetchone()[0] == pytest.approx(POLICIES[policy].judge(use).score, abs=1e-12)


def test_sweep_archives_what_was_forgotten_and_the_page_says_why(
    world: World, olivia: Contract, alice: Contract, add_old_memory: Callable[..., str]
) -> None:
    forgotten, recent = add_old_memory("The heron nests by the mill.", 90), add_old_memory("The heron wades.", 5)
    result = run_sweep(olivia)
    assert (result["archived"], result["changed"], result["skipped"]) == (1, 1, [])
    assert (states(world)[forgotten], states(world)[recent]) == ("archived", "generated")
    assert alice.search_contents("heron") == ["The heron wades."]
    page = signed_in(world.alice).get(f"/memories/{forgotten}/")
    assert "Archived because its keep score is" in page.text
    assert "last used 90 days ago" in page.text
    with acting(world.alice.actor):
        row = StateTransition.objects.get()
        assert (row.principal_kind, row.job_id is not None) == ("system", True)


def test_recalled_memory_is_not_archived_again(
    world: World, olivia: Contract, alice: Contract, add_old_memory: Callable[..., str]
) -> None:
    memory_id = add_old_memory("The heron nests by the mill.", 90)
    run_sweep(olivia)
    assert alice.post(f"memories/{memory_id}/transition/", {"to": "activated"}).status == 200
    assert run_sweep(olivia)["changed"] == 0
    assert states(world)[memory_id] == "activated"


def test_sweep_marks_what_expired_and_erases_what_is_over(
    world: World, olivia: Contract, add_old_memory: Callable[..., str]
) -> None:
    expired = add_old_memory("Expired yesterday.", 5, expires_at=1)
    over = add_old_memory("Expired long ago.", 90, expires_at=40)
    deleted = add_old_memory("Deleted long ago.", 90, deleted_at=31)
    restorable = add_old_memory("Deleted lately.", 90, deleted_at=29)
    first = run_sweep(olivia)
    assert (first["expired"], first["purged"]) == (2, 1)
    found = states(world)
    assert (found[expired], found[over], deleted in found, restorable in found) == ("expired", "expired", False, True)
    assert run_sweep(olivia)["purged"] == 1
    assert over not in states(world)
    assert run_sweep(olivia)["changed"] == 0


def test_held_memory_is_neither_archived_nor_expired_nor_erased(
    world: World, olivia: Contract, alice: Contract, add_old_memory: Callable[..., str]
) -> None:
    memory_id = add_old_memory("The heron nests by the mill.", 90)
    assert alice.post(f"memories/{memory_id}/freeze/", {"reason": "An audit."}).status == 200
    assert run_sweep(olivia)["changed"] == 0
    assert states(world)[memory_id] == "generated"


def test_preview_counts_and_changes_nothing(world: World, olivia: Contract, add_old_memory: Callable[..., str]) -> None:
    forgotten, expired = (
        add_old_memory("The heron nests by the mill.", 90),
        add_old_memory("The otter swims.", 5, expires_at=1),
    )
    schedule_id = olivia.post("schedules/", SWEEP).json["id"]
    previewed = olivia.post(f"schedules/{schedule_id}/run/?dry_run=true", {})
    assert (previewed.status, previewed.json["count"], previewed.json["ids"]) == (200, 2, [forgotten, expired])
    assert previewed.json["counts"] == {"archived": 1, "expired": 1}
    assert states(world)[forgotten] == "generated"
    page = signed_in(world.olivia).get(f"/jobs/schedules/{schedule_id}/?preview")
    assert "A run now would archive 1 memory, mark 1 memory as expired. Nothing was changed." in page.text


def test_memory_is_erased_with_the_statements_that_were_read_out_of_it(
    world: World, olivia: Contract, alice: Contract, superuser: Superuser
) -> None:
    said = [{"role": "user", "content": "I live in Lisbon now, for the work. My favourite animal is the heron."}]
    stored = [memory["id"] for memory in alice.post("memories/", {"messages": said}).json["results"]]
    assert len(stored) > 1
    run_jobs()
    for memory_id in stored:
        alice.delete(f"memories/{memory_id}/")
    superuser().execute("UPDATE vault_cube SET deleted_at = now() - interval '31 days'")
    result = run_sweep(olivia)
    assert (result["purged"], result["skipped"]) == (len(stored), [])
    assert states(world) == {}


def test_two_sweeps_at_once_take_each_step_once(
    world: World, alice: Contract, add_old_memory: Callable[..., str], superuser: Superuser
) -> None:
    forgotten = [add_old_memory(f"The heron nests by mill {number}.", 90) for number in range(4)]
    expired, over = (
        add_old_memory("Expired yesterday.", 5, expires_at=1),
        add_old_memory("Deleted long ago.", 90, deleted_at=31),
    )
    system = system_actor(tenant_id=world.acme.id, request_id="test")
    started = Barrier(2)

    def run() -> Step:
        try:
            write = lifecycle_sweep(
                JobRun(uuid7(), system, system, {}, {}, 0, None, None, {}, lambda done, total: None)
            )
            assert callable(write)
            started.wait(30)  # both have read what is due
            return write()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        steps = [item.result() for item in [pool.submit(run), pool.submit(run)]]
    assert sum(int((step.result or {})["changed"]) for step in steps) == 6
    assert states(world) == {**dict.fromkeys(forgotten, "archived"), expired: "expired"}
    with acting(world.alice.actor):
        rows = StateTransition.objects.values_list("cube_id", "step")
        assert sorted((str(cube_id), step) for cube_id, step in rows) == sorted(
            (item, 1) for item in [*forgotten, expired]
        )
    assert over not in states(world)


def test_settings_of_a_sweep_are_checked_and_leave_parts_out(
    world: World, olivia: Contract, alice: Contract, charlie: Contract, add_old_memory: Callable[..., str]
) -> None:
    forgotten = add_old_memory("The heron nests by the mill.", 90)
    assert olivia.post("schedules/", SWEEP | {"settings": {"forgetting": "whim"}}).status == 400
    assert alice.post("schedules/", SWEEP).status == 403
    made = olivia.post("schedules/", SWEEP).json["id"]
    assert charlie.post(f"schedules/{made}/run/", {}).status == 404
    assert run_sweep(olivia, archive=False)["changed"] == 0
    assert run_sweep(olivia, forgetting="lru", limit=0.001)["changed"] == 0
    assert run_sweep(olivia, forgetting="heat", youngest_days=100)["changed"] == 0
    assert states(world)[forgotten] == "generated"
    assert run_sweep(olivia, forgetting="lru", limit=0.02)["archived"] == 1


def test_expired_memory_is_renewed_with_a_new_expiry(
    world: World,
    olivia: Contract,
    alice: Contract,
    bob: Contract,
    charlie: Contract,
    add_old_memory: Callable[..., str],
) -> None:
    marked, unmarked = (
        add_old_memory("The heron nests by the mill.", 5, expires_at=1),
        add_old_memory("The heron wades.", 5),
    )
    over = add_old_memory("The heron left.", 90, expires_at=31)
    run_sweep(olivia, purge=False)
    _expire(world, unmarked)
    later, earlier = {"expires_at": "2099-01-31T12:00:00Z"}, {"expires_at": "2020-01-31T12:00:00Z"}
    for client, status in ((bob, 403), (charlie, 404)):
        assert client.post(f"memories/{marked}/restore/", later).status == status
    assert alice.post(f"memories/{marked}/restore/", {}).status == 400
    assert alice.post(f"memories/{marked}/restore/", earlier).status == 400
    assert alice.post(f"memories/{marked}/restore/", later, if_match='"7"').status == 412
    assert alice.post(f"memories/{over}/restore/", later).status == 404
    for memory_id in (marked, unmarked):
        reply = alice.post(f"memories/{memory_id}/restore/", later)
        assert (reply.status, reply.json["state"], reply.json["version"]) == (200, "generated", 2)
        assert reply.json["expires_at"] == "2099-01-31T12:00:00Z"
    run_jobs()
    for mode in ("lexical", "dense"):
        found = alice.search_contents("heron", mode=mode)
        assert sorted(found) == ["The heron nests by the mill.", "The heron wades."]


def _expire(world: World, memory_id: str) -> None:
    with acting(world.alice.actor):
        Cube.objects.filter(id=memory_id).update(expires_at=Now())


# One memory cannot be archived: its UPDATE changes no row. The sequence counts the attempts, those rolled back too.
STUBBORN = """
CREATE SEQUENCE test_attempts;
CREATE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN PERFORM nextval('public.test_attempts'); RETURN NULL; END $$;
CREATE TRIGGER test_refuse BEFORE UPDATE ON vault_cube FOR EACH ROW
  WHEN (OLD.id = '{id}' AND NEW.state = 'archived') EXECUTE FUNCTION test_refuse()
"""


def test_memory_that_fails_is_retried_then_waits_and_changes_once_an_admin_retries_the_job(
    world: World,
    olivia: Contract,
    alice: Contract,
    charlie: Contract,
    add_old_memory: Callable[..., str],
    superuser: Superuser,
) -> None:
    stubborn, willing = add_old_memory("The heron nests by the mill.", 90), add_old_memory("The otter swims.", 90)
    superuser().execute(STUBBORN.format(id=stubborn).encode())
    schedule = olivia.post("schedules/", SWEEP).json["id"]
    job = olivia.post(f"schedules/{schedule}/run/", {}).json["job"]["id"]
    run_jobs()
    row = superuser().execute("SELECT last_value FROM test_attempts").fetchone()
    assert row == (2 * ATTEMPTS,), "in each attempt with all others first, then by itself"
    assert (states(world)[stubborn], states(world)[willing]) == ("generated", "archived")

    admin = signed_in(world.olivia)
    parked = olivia.get(f"jobs/{job}/").json
    assert (parked["status"], parked["dead_letter"], parked["result"]["archived"]) == ("failed", True, 1)
    assert parked["error"]["errors"] == [{"field": stubborn, "message": "conflict"}]
    assert f'action="/jobs/{job}/retry/"' in admin.get("/jobs/?list=dead").content.decode()
    page = admin.get(f"/jobs/{job}/").content.decode()
    assert f'<a href="/memories/{stubborn}/">' in page
    assert f"/memories/{willing}/" not in page
    for who, client, status in (("alice", alice, 403), ("charlie", charlie, 404)):
        assert client.post(f"jobs/{job}/retry/").status == status
        assert signed_in(world.person(who)).post(f"/jobs/{job}/retry/").status_code == status
    run_jobs()
    assert states(world)[stubborn] == "generated"

    superuser().execute("DROP TRIGGER test_refuse ON vault_cube")
    assert admin.post(f"/jobs/{job}/retry/").status_code == 303
    run_jobs()
    ended = olivia.get(f"jobs/{job}/").json
    assert (ended["status"], ended["dead_letter"], ended["error"]) == ("succeeded", False, None)
    assert (ended["result"]["archived"], ended["result"]["codes"]) == (2, {})
    assert states(world)[stubborn] == "archived"
    assert f"/jobs/{job}/" not in admin.get("/jobs/?list=dead").content.decode()
    page = admin.get(f"/jobs/{job}/").content.decode()
    assert "2 archived" in page
    assert 'href="/memories/?state=archived"' in page
    with acting(world.olivia.actor):
        assert sorted(map(str, StateTransition.objects.values_list("cube_id", flat=True))) == sorted(
            [stubborn, willing]
        )
