"""Retention: what is written gets its end by policy, what is there follows a change, and nobody outlives a maximum."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from governance.actor import system_actor
from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import DAY, age_memory, change_policy, create_policy, make_retention
from vault.cubes.expiry import retention_apply_step
from vault.models import Cube, CubeVersion

TEAM = {"namespace": "/team"}
UNCHANGED = ("version", "updated_at", "content", "pending_embedding")


def test_a_memory_gets_the_life_that_the_policy_gives(olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY, "retention_class": "short"})
    for path, expected in (("/team", 1), ("/team/notes", 1), ("/teamwork", None)):
        memory = alice.add(f"In {path}.", namespace=path)
        assert make_retention(memory) == (timedelta(days=expected) if expected else None), path


def test_a_writers_own_expiry_stands_up_to_the_maximum(olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY, "max_seconds": 3 * DAY})
    assert make_retention(alice.add("Hour.", namespace="/team", ttl_seconds=3600)) == timedelta(hours=1)
    assert make_retention(alice.add("Days.", namespace="/team", ttl_seconds=3 * DAY)) == timedelta(days=3)
    too_long = alice.post("memories/", {"content": "Week.", "namespace": "/team", "ttl_seconds": 7 * DAY})
    assert fields_at_fault(too_long) == {"expires_at"}
    assert "policy:one@1" in too_long.json["errors"][0]["message"]
    assert alice.list_contents() == ["Days.", "Hour."]


def test_maximum_without_a_default_applies_to_memories_without_a_lifetime(olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "retention", {"where": TEAM, "max_seconds": 2 * DAY})
    assert make_retention(alice.add("Plain.", namespace="/team")) == timedelta(days=2)


def test_a_change_of_a_memory_is_bound_by_the_maximum_too(olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "retention", {"where": TEAM, "max_seconds": 2 * DAY})
    inside, outside = alice.add("In.", namespace="/team")["id"], alice.add("Out.", namespace="/open")["id"]
    late = {"expires_at": "2099-01-01T00:00:00Z"}
    assert fields_at_fault(alice.patch(f"memories/{inside}/", late, if_match='"1"')) == {"expires_at"}
    assert alice.patch(f"memories/{outside}/", late, if_match='"1"').status == 200
    moved = alice.patch(f"memories/{outside}/", {"namespace": "/team"}, if_match='"2"')
    assert make_retention(moved.json) == timedelta(days=2)
    cleared = alice.patch(f"memories/{inside}/", {"expires_at": None}, if_match='"1"')
    assert make_retention(cleared.json) == timedelta(days=2)


def test_a_policy_saved_later_sets_the_expiry_and_makes_no_version(
    world: World, olivia: Contract, alice: Contract
) -> None:
    free, own = alice.add("Free.", namespace="/team"), alice.add("Own.", namespace="/team", ttl_seconds=9 * DAY)
    run_jobs()
    before, stored = alice.get(f"memories/{free['id']}/"), _read_stored_rows(world)
    policy_id = create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY})
    run_jobs()
    after = alice.get(f"memories/{free['id']}/")
    assert make_retention(after.json) == timedelta(days=1)
    assert after.headers["ETag"] == before.headers["ETag"] == '"1"'
    assert [after.json[name] for name in UNCHANGED] == [before.json[name] for name in UNCHANGED]
    assert make_retention(alice.get(f"memories/{own['id']}/").json) == timedelta(days=9)  # a person said so
    change_policy(olivia, policy_id, document={"where": TEAM, "ttl_seconds": 3 * DAY})
    run_jobs()
    assert make_retention(alice.get(f"memories/{free['id']}/").json) == timedelta(days=3)
    assert _read_stored_rows(world) == stored, "neither versions nor vectors nor postings are written again"
    assert alice.search_contents("free", mode="dense") == ["Free.", "Own."]
    with acting(world.olivia.actor):
        rows = AuditEntry.objects.filter(verb=Verb.RETENTION_APPLIED)
        assert {tuple(row.object_ids) for row in rows} == {(UUID(free["id"]),)}
        assert [row.detail["rules"] for row in rows.order_by("id")] == ["policy:one@1", "policy:one@2"]


def _read_stored_rows(world: World) -> dict[str, list[tuple[object, ...]]]:
    """Rows that hold content or are made of it, with the transaction that wrote each."""
    tables = ("vault_cubeversion", "vault_embedding", "vault_posting")
    found = {}
    with acting(world.olivia.actor), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT xmin::text, t::text FROM {table} AS t ORDER BY 2")
            found[table] = cursor.fetchall()
    return found


def test_a_policy_that_ends_takes_back_what_it_set(olivia: Contract, alice: Contract) -> None:
    policy_id = create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY})
    memory = alice.add("Free.", namespace="/team")
    assert olivia.delete(f"policies/{policy_id}/").status == 204
    run_jobs()
    assert make_retention(alice.get(f"memories/{memory['id']}/").json) is None


def test_memory_older_than_the_maximum_disappears_at_once_and_for_good(
    world: World, olivia: Contract, alice: Contract
) -> None:
    old, young = (alice.add(text, namespace="/team")["id"] for text in ("Old.", "Young."))
    age_memory(world.alice.actor, old, days=5)
    policy_id = create_policy(olivia, "retention", {"where": TEAM, "max_seconds": 2 * DAY})
    run_jobs()
    assert alice.get(f"memories/{old}/").status == 404
    assert alice.get(f"memories/{young}/").status == 200
    assert olivia.delete(f"policies/{policy_id}/").status == 204
    run_jobs()
    assert alice.get(f"memories/{old}/").status == 404  # what has expired is brought back by a person, not by a policy


def test_a_second_run_of_the_job_changes_nothing(world: World, olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY})
    alice.add("Free.", namespace="/team")
    run_jobs()
    with acting(world.olivia.actor):
        step = retention_apply_step(actor=world.olivia.actor, after=UUID(int=0))
        assert (step.changed, step.after) == (0, None)
        assert CubeVersion.objects.count() == 1


def test_it_takes_many_steps_over_many_memories(world: World, olivia: Contract, alice: Contract) -> None:
    items = [{"content": f"Row {number}.", "namespace": "/team"} for number in range(20)]
    assert alice.post("memories/bulk/", {"items": items}).status == 201
    run_jobs()
    create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY})
    actor = system_actor(tenant_id=world.acme.id, request_id="job-of-a-test")
    steps: list[int] = []
    after: UUID | None = UUID(int=0)
    while after is not None:
        step = retention_apply_step(actor=actor, after=after, looked_at=7)
        after = step.after
        steps.append(step.changed)
    assert (sum(steps), max(steps)) == (20, 7)
    with acting(actor):
        assert set(Cube.objects.values_list("version", flat=True)) == {1}
        assert not Cube.objects.filter(expires_at=None).exists()


def test_a_policy_of_one_tenant_moves_no_memory_of_another(
    olivia: Contract, charlie: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    foreign = charlie.add("Theirs.", namespace="/team")
    create_policy(olivia, "retention", {"ttl_seconds": DAY})
    run_jobs()
    assert charlie.get(f"memories/{foreign['id']}/").json["expires_at"] is None
    assert charlie.add("New.", namespace="/team")["expires_at"] is None


def test_a_shorter_grace_ends_restoring_sooner(world: World, olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "retention", {"where": TEAM, "grace_days": 0})
    inside, outside = alice.add("In.", namespace="/team")["id"], alice.add("Out.", namespace="/open")["id"]
    for item in (inside, outside):
        assert alice.delete(f"memories/{item}/").status == 204
    assert alice.post(f"memories/{inside}/restore/").status == 404
    assert alice.post(f"memories/{outside}/restore/").status == 200


@pytest.mark.parametrize("where", [{"tags": ["x"]}, {"semantic_types": ["goal"]}, {"sensitivities": ["restricted"]}])
def test_it_looks_at_more_than_the_namespace(olivia: Contract, alice: Contract, where: dict[str, list[str]]) -> None:
    create_policy(olivia, "retention", {"where": where, "ttl_seconds": DAY})
    fits = {"tags": ["x"], "semantic_type": "goal", "sensitivity": "restricted"}
    assert make_retention(alice.add("Fits.", **fits)) == timedelta(days=1)
    assert make_retention(alice.add("Does not.")) is None


def test_what_was_cut_to_the_maximum_stays_there(olivia: Contract, alice: Contract) -> None:
    memory = alice.add("Own.", namespace="/team", ttl_seconds=30 * DAY)
    policy_id = create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": 10 * DAY, "max_seconds": 20 * DAY})
    run_jobs()
    change_policy(olivia, policy_id, reason="the same again")
    run_jobs()
    after = alice.get(f"memories/{memory['id']}/").json
    assert (make_retention(after), after["version"]) == (timedelta(days=20), 1)


def test_what_is_held_follows_once_it_is_released(world: World, olivia: Contract, alice: Contract) -> None:
    held, free = alice.add("Held.", namespace="/team")["id"], alice.add("Free.", namespace="/team")["id"]
    assert alice.post(f"memories/{held}/freeze/", {"reason": "Do not touch."}).status == 200
    create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY})
    run_jobs()
    assert make_retention(alice.get(f"memories/{free}/").json) == timedelta(days=1)
    assert alice.get(f"memories/{held}/").json["expires_at"] is None
    assert alice.post(f"memories/{held}/unfreeze/").status == 200
    run_jobs()
    assert make_retention(alice.get(f"memories/{held}/").json) == timedelta(days=1)


def test_preview_counts_what_a_run_would_set_and_changes_nothing(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    free = alice.add("Free.", namespace="/team")["id"]
    alice.add("Elsewhere.", namespace="/open")
    create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY})
    schedule = olivia.post("schedules/", {"kind": "retention.apply", "cron": "0 3 * * *"}).json["id"]
    previewed = olivia.post(f"schedules/{schedule}/run/?dry_run=true")
    assert (previewed.status, previewed.json["count"], previewed.json["ids"]) == (200, 1, [free])
    assert make_retention(alice.get(f"memories/{free}/").json) is None
    page = signed_in(world.olivia).get(f"/jobs/schedules/{schedule}/?preview").content.decode()
    assert "A run now would set the expiry of 1 memory. Nothing was changed." in page
    for client, status in ((alice, 403), (bob, 403), (charlie, 404)):
        assert client.post(f"schedules/{schedule}/run/?dry_run=true").status == status
    run_jobs()
    assert olivia.post(f"schedules/{schedule}/run/?dry_run=true").json == {"count": 0, "ids": [], "counts": {}}
