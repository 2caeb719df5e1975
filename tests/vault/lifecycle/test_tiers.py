"""Storage tiers: a cold memory has no vector, a changed or warmed one gets it back, rules move what nobody used."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Topic, Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.models import Cube, Embedding
from vault.overview.counts import counts_ask


@pytest.fixture
def heron(alice: Contract) -> str:
    memory_id = str(alice.add("The heron nests by the mill.", namespace="/team/birds")["id"])
    run_jobs()
    return memory_id


def act(client: Contract, action: str, *ids: str) -> dict[str, Any]:
    reply = client.post("memories/actions/", {"action": action, "ids": list(ids)})
    assert reply.status == 202, reply
    run_jobs()
    job: dict[str, Any] = client.get(f"jobs/{reply.json['job']['id']}/").json
    return job


def vectors(world: World) -> int:
    with acting(world.alice.actor):
        return Embedding.objects.count()


def test_cold_memory_is_searchable_by_its_words(world: World, alice: Contract, heron: str) -> None:
    job = act(alice, "cool", heron)
    assert job["result"]["changed"] == 1
    assert vectors(world) == 0
    assert alice.search_contents("heron", mode="lexical", min_score=0.1) == ["The heron nests by the mill."]
    assert alice.search_contents("heron", mode="dense", min_score=0.1) == []
    memory = alice.get(f"memories/{heron}/").json
    assert (memory["state"], memory["version"], memory["pending_embedding"]) == ("generated", 1, False)
    assert act(alice, "cool", heron)["result"]["changed"] == 1  # it is cold already
    assert act(alice, "warm", heron)["result"]["changed"] == 1
    assert vectors(world) == 1
    with acting(world.alice.actor):
        steps = AuditEntry.objects.filter(verb=Verb.MEMORY_TIERED).order_by("id").values_list("detail", flat=True)
        assert list(steps) == [{"from": "hot", "to": "cold"}, {"from": "cold", "to": "hot"}]


def test_action_is_undone(world: World, alice: Contract, heron: str) -> None:
    job = act(alice, "cool", heron)
    assert alice.post(f"jobs/{job['id']}/undo/").status == 202
    run_jobs()
    assert vectors(world) == 1


def test_changed_or_recalled_memory_is_hot(world: World, alice: Contract, heron: str) -> None:
    act(alice, "cool", heron)
    assert alice.patch(f"memories/{heron}/", {"importance": 0.9}, if_match='"1"').status == 200
    run_jobs()
    assert vectors(world) == 1
    act(alice, "cool", heron)
    for to in ("archived", "activated"):
        assert alice.post(f"memories/{heron}/transition/", {"to": to}).status == 200
    run_jobs()
    assert vectors(world) == 1


def test_archived_and_held_memories_are_left_out(world: World, alice: Contract, heron: str) -> None:
    held = str(alice.add("Held.", namespace="/team")["id"])
    assert alice.post(f"memories/{held}/freeze/", {"reason": "Case 17"}).status == 200
    assert alice.post(f"memories/{heron}/transition/", {"to": "archived"}).status == 200
    counted = alice.post("memories/actions/?dry_run=true", {"action": "cool", "ids": [heron, held]}).json
    assert {row["code"] for row in counted["skipped"]} == {"illegal_transition", "held"}
    assert act(alice, "cool", heron, held)["result"]["codes"] == {"illegal_transition": 1, "held": 1}


def test_reader_and_stranger_change_no_tier(
    world: World, bob: Contract, charlie: Contract, alice: Contract, heron: str
) -> None:
    body = {"action": "cool", "ids": [heron]}
    assert bob.post("memories/actions/", body).status == 403
    assert act(charlie, "cool", heron)["result"]["changed"] == 0
    assert vectors(world) == 1


def _make_older(world: World, days: int) -> None:
    with acting(world.alice.actor):
        Cube.objects.update(created_at=F("created_at") - timedelta(days=days))
        Cube.objects.update(updated_at=F("created_at"))


def _schedule(client: Contract, **settings: Any) -> str:
    body = {"kind": Topic.TIERS_APPLY, "cron": "0 3 * * *", "settings": settings}
    reply = client.post("schedules/", body)
    assert reply.status == 201, reply
    return str(reply.json["id"])


def _run(client: Contract, schedule_id: str) -> dict[str, Any]:
    reply = client.post(f"schedules/{schedule_id}/run/")
    assert reply.status == 202, reply
    run_jobs()
    (job,) = client.get(f"jobs/?kind={Topic.TIERS_APPLY}").json["results"][:1]
    found: dict[str, Any] = client.get(f"jobs/{job['id']}/").json
    return found


@pytest.mark.parametrize(("to", "state"), [("cold", "generated"), ("archive", "archived")])
def test_rule_moves_what_nobody_used(
    world: World, olivia: Contract, alice: Contract, heron: str, to: str, state: str
) -> None:
    other = str(alice.add("Outside the rule.", namespace="/teams")["id"])
    run_jobs()
    _make_older(world, 100)
    fresh = str(alice.add("A fresh one.", namespace="/team")["id"])
    run_jobs()
    rule = _schedule(olivia, to=to, days=90, namespace="/team")
    preview = olivia.post(f"schedules/{rule}/run/?dry_run=true").json
    assert (preview["count"], preview["ids"]) == (1, [heron])
    assert _run(olivia, rule)["result"] == {"changed": 1, "codes": {}}
    with acting(world.alice.actor):
        assert set(Embedding.objects.values_list("cube_id", flat=True).distinct()) == {
            row.id for row in Cube.objects.filter(id__in=[other, fresh])
        }
        assert Cube.objects.get(id=heron).state == state
    assert olivia.post(f"schedules/{rule}/run/?dry_run=true").json["count"] == 0


def test_rule_is_for_who_manages_operations(alice: Contract, olivia: Contract) -> None:
    body = {"kind": Topic.TIERS_APPLY, "cron": "0 3 * * *"}
    assert alice.post("schedules/", body).status == 403
    assert fields_at_fault(olivia.post("schedules/", body | {"settings": {"to": "ice"}})) != set()


def test_overview_shows_what_each_tier_holds(world: World, alice: Contract, heron: str) -> None:
    archived = str(alice.add("Archived.", namespace="/team")["id"])
    assert alice.post(f"memories/{archived}/transition/", {"to": "archived"}).status == 200
    act(alice, "cool", heron)
    counts_ask()
    run_jobs()
    page = signed_in(world.olivia).get("/overview/").content.decode()
    assert "1 cold, 1 archived" in page
    assert "cold, 1 archived" not in signed_in(world.bob).get("/overview/").content.decode()


def test_page_stores_a_memory_cold_and_makes_it_hot(world: World, alice: Contract, heron: str) -> None:
    browser = signed_in(world.alice)
    form = {"action": "cool", "id": heron, "next": f"/memories/{heron}/"}
    assert "Cold memories have no vector" in browser.post("/memories/bulk/", form).content.decode()
    page = browser.post("/memories/bulk/", form | {"confirmed": "yes"}, follow=True).content.decode()
    assert 'value="warm"' in page
    assert "Cold: searches find it by its words." in page
    browser.post("/memories/bulk/", form | {"action": "warm", "confirmed": "yes"})
    run_jobs()
    assert vectors(world) == 1
    assert 'value="cool"' not in signed_in(world.bob).get(f"/memories/{heron}/").content.decode()
