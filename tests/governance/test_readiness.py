"""Tests of `/readyz` and `doctor`: each part that does not work is reported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.test import Client, override_settings

from governance.audit.checkpoints import checkpoint_folder, checkpoints_folder
from governance.heartbeats import EVERY_SECONDS, Part, heartbeat, silent_parts
from governance.tasks import worker_heartbeat_task
from memos_web.celery import app, note_beat, note_worker
from memos_web.management.checks import Failed, background, checkpoints, disk, purged_bytes
from tests.factories import World
from tests.governance.audit.logs import entries_make, seal_all
from tests.harness.servers import needs_maintain

Superuser = Callable[[], psycopg.Connection]
SECONDS_AGO = "clock_timestamp() - make_interval(secs => %s)"


@pytest.fixture(autouse=True)
def working(world: World, redis_address: str) -> None:
    """Write a heartbeat of every part."""
    for tenant in (world.acme, world.other):
        seal_all(tenant.id)
    for part in Part:
        heartbeat(part)


def ready() -> tuple[int, str, dict[str, Any]]:
    reply = Client().get("/readyz")
    found = reply.json()
    return reply.status_code, found["status"], found["checks"]


def test_all_at_work_is_ready() -> None:
    code, status, checks = ready()
    assert (code, status) == (200, "ready"), checks
    assert {name for name, state in checks.items() if state == "up"} == {*checks} - {"outbox"}
    assert [background(part) for part in Part] == ["at work"] * len(Part)
    assert checkpoints() == str(checkpoints_folder())
    assert disk().endswith("GB free")


@pytest.mark.parametrize(
    ("part", "seconds"),
    [
        (Part.DISPATCHER, 31),
        (Part.SEALER, 31),
        (Part.BEAT, 121),
        (Part.WORKER, 121),
        (Part.WORKER_HEAVY, 601),
    ],
)
def test_silent_part_degrades_and_fails_its_check(superuser: Superuser, part: Part, seconds: int) -> None:
    superuser().execute(f"UPDATE governance_heartbeat SET at = {SECONDS_AGO} WHERE part = %s", [seconds, part])
    code, status, checks = ready()
    assert (code, status, checks[part]) == (200, "degraded", "silent")
    assert [checks[other] for other in Part if other is not part] == ["up"] * (len(Part) - 1)
    with pytest.raises(Failed, match=f"silent for {seconds} seconds"):
        background(part)
    superuser().execute("DELETE FROM governance_heartbeat WHERE part = %s", [part])
    assert ready()[2][part] == "silent"
    with pytest.raises(Failed, match="never"):
        background(part)


def test_part_that_is_silent_for_less_is_at_work(superuser: Superuser) -> None:
    superuser().execute(f"UPDATE governance_heartbeat SET at = {SECONDS_AGO}", [25])
    assert silent_parts() == {}


def test_heartbeat_is_written_once_in_a_while_and_by_beat_when_it_sends(superuser: Superuser) -> None:
    superuser().execute("DELETE FROM governance_heartbeat")
    for part in Part:
        heartbeat(part)
    assert set(silent_parts()) == set(Part), f"written less than {EVERY_SECONDS} seconds ago"
    from governance import heartbeats

    heartbeats._written.clear()
    note_beat()
    assert Part.BEAT not in silent_parts()
    note_worker()
    worker_heartbeat_task(Part.WORKER_HEAVY)
    assert set(silent_parts()) == {Part.DISPATCHER, Part.SEALER}


def test_each_kind_of_worker_gets_a_task_that_shows_it_at_work() -> None:
    """The task goes through the queue of each worker. A worker that runs but takes no tasks does not execute it."""
    sent = {
        entry["args"][0]: entry.get("options", {}).get("queue", settings.CELERY_TASK_DEFAULT_QUEUE)
        for entry in app.conf.beat_schedule.values()
        if entry["task"] == worker_heartbeat_task.name
    }
    assert sent == {Part.WORKER: "background", Part.WORKER_HEAVY: "heavy"}


def test_sealer_that_does_not_seal_degrades(world: World, superuser: Superuser) -> None:
    entries_make(world.alice.actor, 1)
    superuser().execute(f"UPDATE governance_auditunsealed SET created_at = {SECONDS_AGO}", [61])
    code, status, checks = ready()
    assert (code, status, checks["sealer"]) == (200, "degraded", "late")
    with pytest.raises(Failed, match="waited 61 seconds for its seal"):
        background(Part.SEALER)


def test_checkpoints_that_are_late_degrade(world: World, superuser: Superuser) -> None:
    entries_make(world.alice.actor, 1)
    from governance.audit.seals import entries_seal

    entries_seal(world.acme.id)
    assert ready()[1] == "ready", "the next one is not due yet"
    connection = superuser()
    connection.execute("SET session_replication_role = replica")
    connection.execute(f"UPDATE governance_auditseal SET created_at = {SECONDS_AGO}", [121])
    code, status, checks = ready()
    assert (code, status, checks["checkpoints"]) == (200, "degraded", "late")
    with pytest.raises(Failed, match="121 seconds late"):
        checkpoints()


@needs_maintain
def test_purged_bytes_that_stay_too_long_degrade(superuser: Superuser) -> None:
    connection = superuser()
    note = f"INSERT INTO governance_heartbeat (part, at) VALUES ('purged bytes', {SECONDS_AGO})"
    connection.execute(note, [24 * 3600 - 60])
    assert ready()[1] == "ready"
    assert "within 24 hours" in purged_bytes()
    connection.execute("CREATE TABLE maintenance.vault_cube (id uuid)")
    code, status, checks = ready()
    assert (code, status, checks["purged_bytes"]) == (200, "ready", "at work")
    connection.execute(f"UPDATE governance_heartbeat SET at = {SECONDS_AGO} WHERE part = 'purged bytes'", [24 * 3600])
    code, status, checks = ready()
    assert (code, status, checks["purged_bytes"]) == (200, "degraded", "late")
    with pytest.raises(Failed, match="more than 24 hours"):
        purged_bytes()


def replace_by_a_file(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    folder.write_text("")


@pytest.mark.parametrize("of_tenant", [True, False])
def test_checkpoints_that_cannot_be_written_degrade(world: World, of_tenant: bool) -> None:
    replace_by_a_file(checkpoint_folder(world.acme.id) if of_tenant else checkpoints_folder())
    code, status, checks = ready()
    assert (code, status, checks["checkpoints"]) == (200, "degraded", "unwritable")
    with pytest.raises(Failed, match="cannot be written"):
        checkpoints()


def test_full_disk_is_not_ready() -> None:
    with override_settings(DISK_LEAST_FREE_BYTES=1 << 60):
        code, status, checks = ready()
        assert (code, status, checks["disk"]) == (503, "unavailable", "full")
        with pytest.raises(Failed, match="MB left"):
            disk()


def test_broker_that_is_down_degrades() -> None:
    with override_settings(REDIS_ADDRESS="unix:///nonexistent/redis.sock?db=0"):
        code, status, checks = ready()
    assert (code, status, checks["broker"]) == (200, "degraded", "down")


def test_health_says_nothing_of_tenants_or_paths(world: World) -> None:
    replace_by_a_file(checkpoints_folder())
    text = Client().get("/readyz").content.decode()
    assert str(world.acme.id) not in text
    assert "/" not in text
