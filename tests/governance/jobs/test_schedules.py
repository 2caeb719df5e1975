"""schedules/: rows of the tenant, started when due by one periodic task, as the one who made them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from governance.errors import Invalid
from governance.ids import uuid7
from governance.jobs.cron import next_run
from governance.tasks import schedules_start_task
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]
DEFAULTS = {
    "behaviour.update": "30 2 * * *",
    "lifecycle.sweep": "0 3 * * *",
    "index.check": "0 4 * * 0",
    "conflicts.propose": "30 4 * * *",
    "fusions.propose": "0 5 * * *",
    "form.propose": "30 5 * * *",
    "summaries.write": "0 6 * * *",
}
NIGHTLY = {"kind": "audit.export", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "settings": {"format": "csv"}}


def _add(client: Contract, **body: Any) -> dict[str, Any]:
    reply = client.post("schedules/", NIGHTLY | body)
    assert reply.status == 201, reply
    made: dict[str, Any] = reply.json
    return made


def _come_due(superuser: Superuser) -> None:
    superuser().execute("UPDATE governance_schedule SET next_run_at = now() - interval '1 minute'")


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("0 3 * * *", "UTC", "2026-01-01T03:00", "2026-01-02T03:00"),
        ("*/15 * * * *", "UTC", "2026-01-01T03:01", "2026-01-01T03:15"),
        ("0 3 * * *", "Europe/Berlin", "2026-01-01T03:00", "2026-01-02T02:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-07-01T03:00", "2026-07-02T01:00"),
        ("0 0 1 * *", "Asia/Shanghai", "2026-01-15T00:00", "2026-01-31T16:00"),
        ("0 9 * * 1", "UTC", "2026-11-23T09:00", "2026-11-30T09:00"),
    ],
)
def test_next_run_is_at_the_local_time_of_the_zone(cron: str, zone: str, after: str, expected: str) -> None:
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    assert next_run(cron, zone, moment) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone"),
    [("daily", "UTC"), ("61 * * * *", "UTC"), ("", "UTC"), ("0 3 * * *", "Mars/Base"), ("* * *", "UTC")],
)
def test_what_is_no_time_is_refused(cron: str, zone: str) -> None:
    with pytest.raises(Invalid):
        next_run(cron, zone, datetime.now(UTC))


def test_a_schedule_is_made_changed_listed_and_removed(olivia: Contract) -> None:
    made = _add(olivia)
    assert (made["kind"], made["enabled"], made["last_job"]) == ("audit.export", True, None)
    assert made["next_run_at"].endswith(("T01:00:00Z", "T02:00:00Z"))
    address = f"schedules/{made['id']}/"
    changed = olivia.patch(address, {"enabled": False}).json
    assert (changed["enabled"], changed["next_run_at"]) == (False, None)
    assert olivia.get("schedules/").json["results"] == [changed] == [olivia.get(address).json]
    assert olivia.delete(address).status == 204
    assert olivia.get(address).status == 404


def test_a_due_schedule_starts_its_job_once(olivia: Contract, superuser: Superuser) -> None:
    made = _add(olivia)
    assert schedules_start_task() == 0
    _come_due(superuser)
    assert (schedules_start_task(), schedules_start_task()) == (1, 0)
    run_jobs()
    (job,) = olivia.get("jobs/?kind=audit.export").json["results"]
    assert job["status"] == "succeeded"
    after = olivia.get(f"schedules/{made['id']}/").json
    assert (after["last_job"], after["next_run_at"]) == (job["id"], made["next_run_at"])


def test_a_disabled_schedule_is_not_started_and_a_changed_one_at_its_new_time(
    olivia: Contract, superuser: Superuser
) -> None:
    made = _add(olivia, enabled=False)
    assert schedules_start_task() == 0
    changed = olivia.patch(f"schedules/{made['id']}/", {"enabled": True, "cron": "* * * * *"}).json
    assert changed["next_run_at"] is not None
    _come_due(superuser)
    assert schedules_start_task() == 1


def test_a_schedule_runs_now_and_previews(olivia: Contract) -> None:
    made = _add(olivia, settings={"filters": {"verb": "schedule.created"}})
    preview = olivia.post(f"schedules/{made['id']}/run/?dry_run=true")
    assert (preview.status, preview.json["count"]) == (200, 1)
    assert olivia.get("jobs/").json["count"] == 0
    started = olivia.post(f"schedules/{made['id']}/run/")
    assert (started.status, started.json["job"]["status"]) == (202, "pending")
    assert olivia.get(f"schedules/{made['id']}/").json["last_job"] == started.json["job"]["id"]
    other = _add(olivia, kind="memories.sync", settings={"peer": str(uuid7())})
    assert olivia.post(f"schedules/{other['id']}/run/?dry_run=true").status == 409


def test_a_schedule_of_someone_without_the_right_any_more_is_disabled(
    world: World, olivia: Contract, superuser: Superuser
) -> None:
    made = _add(olivia)
    superuser().execute("UPDATE governance_apikey SET revoked_at = now() WHERE id = %s", [world.olivia.key.id])
    _come_due(superuser)
    assert schedules_start_task() == 0
    row = superuser().execute("SELECT enabled, last_job_id FROM governance_schedule WHERE id = %s", [made["id"]])
    assert row.fetchone() == (False, None)


@each_case(
    ("body", "field"),
    [
        ({"kind": "memories.add"}, "kind"),
        ({"cron": "sometimes"}, "cron"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"settings": {"format": "pdf"}}, "settings.format"),
        ({"settings": {"colour": "red"}}, "settings.colour"),
        ({"settings": {"filters": {"colour": "red"}}}, "settings.filters.colour"),
        ({"settings": {"filters": {"verb": "sung"}}}, "settings.filters.verb"),
    ],
)
def test_a_schedule_that_could_not_run_is_refused(olivia: Contract, body: dict[str, Any], field: str) -> None:
    assert fields_at_fault(olivia.post("schedules/", NIGHTLY | body)) == {field}
    assert olivia.get("schedules/").json["count"] == 0


def test_only_who_manages_operations_may_and_a_refusal_leaves_no_row(
    olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    made = _add(olivia)
    for client, status in ((alice, 403), (bob, 403)):
        assert client.post("schedules/", NIGHTLY).status == status
        assert client.get("schedules/").status == status
        assert client.delete(f"schedules/{made['id']}/").status == status
    for address in (f"schedules/{made['id']}/", f"schedules/{MISSING}/"):
        assert charlie.patch(address, {"enabled": False}).status in {403, 404}
    assert olivia.get("schedules/").json["results"] == [made]


def test_default_schedules_are_added_once_at_their_times(world: World, olivia: Contract) -> None:
    client = signed_in(world.olivia)
    assert "Add the default schedules" in client.get("/schedules/").text
    for _ in range(2):
        added = client.post("/schedules/defaults/")
        assert (added.status_code, added["Location"]) == (303, "/schedules/")
    assert crons(olivia) == DEFAULTS
    assert "Add the default schedules" not in client.get("/schedules/").text


def test_kind_with_a_schedule_keeps_the_one_it_has(world: World, olivia: Contract) -> None:
    _add(olivia, kind="lifecycle.sweep", cron="0 1 * * 1", settings={})
    assert signed_in(world.olivia).post("/schedules/defaults/").status_code == 303
    assert crons(olivia) == DEFAULTS | {"lifecycle.sweep": "0 1 * * 1"}


def test_editor_adds_no_default_schedules_and_no_tenant_adds_anothers(
    world: World, olivia: Contract, charlie: Contract
) -> None:
    for person in (world.alice, world.bob):
        assert signed_in(person).post("/schedules/defaults/").status_code == 403
    assert signed_in(world.charlie).post("/schedules/defaults/").status_code == 303
    assert (crons(olivia), crons(charlie)) == ({}, DEFAULTS)


def test_default_schedules_are_added_by_one_call_and_a_second_adds_none(
    olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    for client in (alice, bob):
        assert client.post("schedules/defaults/").status == 403
    added = olivia.post("schedules/defaults/")
    assert (added.status, {schedule["kind"]: schedule["cron"] for schedule in added.json["results"]}) == (201, DEFAULTS)
    again = olivia.post("schedules/defaults/")
    assert (again.status, again.json) == (200, {"results": []})
    assert (crons(olivia), crons(charlie)) == (DEFAULTS, {})


def crons(client: Contract) -> dict[str, str]:
    rows = client.get("schedules/").json["results"]
    found = {row["kind"]: row["cron"] for row in rows}
    assert len(found) == len(rows)
    return found
