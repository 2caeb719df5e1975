"""Exports on a schedule: the last ones are kept, and a pack or a namespace can start one."""

from typing import Any

from governance.database import acting
from governance.models import Job, Schedule
from governance.vocabulary import Topic
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.exchange.test_exchange import contents_of
from tests.vault.outbox import run_jobs


def create_schedule(olivia: Contract, **settings: Any) -> str:
    body = {"kind": "memories.export", "cron": "0 3 * * *", "settings": settings}
    reply = olivia.post("schedules/", body)
    assert reply.status == 201, reply
    return str(reply.json["id"])


def run_schedule(olivia: Contract, schedule: str) -> str:
    """The job of a run of now, which ended."""
    job = olivia.post(f"schedules/{schedule}/run/").json["job"]["id"]
    run_jobs()
    assert olivia.get(f"jobs/{job}/").json["status"] == "succeeded"
    return str(job)


def exports(world: World) -> int:
    with acting(world.olivia.actor):
        return Job.objects.filter(kind=Topic.MEMORIES_EXPORT).count()


def test_scheduled_export_holds_its_namespace_and_older_ones_are_replaced(world: World, olivia: Contract) -> None:
    olivia.add("The heron nests by the mill.", namespace="/birds")
    olivia.add("Bo likes tea.", namespace="/drinks")
    schedule = create_schedule(olivia, namespace="/birds", keep=2)
    first = run_schedule(olivia, schedule)
    assert contents_of(olivia.get(f"exports/{first}/jsonl/").body) == ["The heron nests by the mill."]
    olivia.add("The heron fishes at dawn.", namespace="/birds")
    second, third = run_schedule(olivia, schedule), run_schedule(olivia, schedule)
    assert olivia.get(f"exports/{first}/jsonl/").status == 409
    for job in (second, third):
        assert len(contents_of(olivia.get(f"exports/{job}/jsonl/").body)) == 2
    fourth = run_schedule(olivia, schedule)
    assert [olivia.get(f"exports/{job}/jsonl/").status for job in (first, second, third, fourth)] == [
        409,
        409,
        200,
        200,
    ]
    page = signed_in(world.olivia).get("/exchange/").content.decode()
    assert (f"{third}/jsonl" in page, f"{second}/jsonl" in page) == (True, False)


def test_export_that_somebody_asked_for_is_never_replaced(olivia: Contract) -> None:
    olivia.add("The heron nests by the mill.", namespace="/birds")
    own = olivia.post("exports/", {"filters": {"namespace": "/birds"}}).json["job"]["id"]
    schedule = create_schedule(olivia, namespace="/birds", keep=1)
    other = run_schedule(olivia, create_schedule(olivia, keep=1))
    run_schedule(olivia, schedule)
    run_schedule(olivia, schedule)
    assert {olivia.get(f"exports/{job}/jsonl/").status for job in (own, other)} == {200}


def test_preview_of_a_schedule_counts_the_memories(olivia: Contract) -> None:
    olivia.add("The heron nests by the mill.", namespace="/birds")
    olivia.add("Bo likes tea.", namespace="/drinks")
    reply = olivia.post(f"schedules/{create_schedule(olivia, namespace='/birds')}/run/?dry_run=true")
    assert reply.json["count"] == 1


@each_case("settings", [{"keep": 0}, {"keep": 101}, {"on": "noon"}, {"speling": 1}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any], world: World, olivia: Contract) -> None:
    body = {"kind": "memories.export", "cron": "0 3 * * *", "settings": settings}
    assert fields_at_fault(olivia.post("schedules/", body)) == {f"settings.{name}" for name in settings}
    for who in ("alice", "bob"):
        assert contract(world, who).post("schedules/", body | {"settings": {}}).status == 403
    with acting(world.olivia.actor):
        assert not Schedule.objects.filter(kind=Topic.MEMORIES_EXPORT).exists()


def test_moved_namespace_starts_the_exports_that_wait_for_it(world: World, olivia: Contract) -> None:
    olivia.add("The heron nests by the mill.", namespace="/birds")
    create_schedule(olivia, on="namespace")
    create_schedule(olivia, on="pack")
    create_schedule(olivia)
    off = create_schedule(olivia, on="namespace", keep=3)
    assert olivia.patch(f"schedules/{off}/", {"enabled": False}).status == 200
    (namespace,) = olivia.get("namespaces/?path=/birds").json["results"]
    moved = olivia.post(f"namespaces/{namespace['id']}/move/", {"path": "/herons"})
    assert moved.status in {200, 202}, moved
    run_jobs()
    assert exports(world) == 1


def test_ready_pack_starts_the_exports_that_wait_for_it_and_a_blocked_one_none(world: World, olivia: Contract) -> None:
    memory = olivia.add("The heron nests by the mill.", namespace="/birds")["id"]
    personal = olivia.add("Write to ana@example.org.", namespace="/birds")["id"]
    create_schedule(olivia, on="pack")
    create_schedule(olivia, on="namespace")
    pack = olivia.post("packs/", {"name": "herons", "title": "Herons"}).json["id"]
    for number, ids, count in (("1.0.0", [personal], 0), ("1.0.1", [memory], 1)):
        assert olivia.post(f"packs/{pack}/versions/", {"version": number, "ids": ids}).status == 202
        run_jobs()
        assert exports(world) == count, number
