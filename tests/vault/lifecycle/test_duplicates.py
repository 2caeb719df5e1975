"""Duplicates: their fusion is proposed once, a person decides it, and nothing crosses an owner, a place or a tenant."""

from typing import Any

import pytest
from pytest_django import Settings

from governance.actor import Actor, system_actor
from governance.database import acting
from governance.ids import uuid7
from governance.jobs.kinds import JobRun
from memos_web.config import EmbedderChoice
from tests.factories import World
from tests.governance.web.visitors import signed_in, without_marks
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.lifecycle import pairs
from vault.lifecycle.duplicates import fusions_propose
from vault.models import Review

PROPOSE = {"kind": "fusions.propose", "cron": "0 5 * * *"}
HERON = "The heron nests by the mill."
NEARLY = "The heron nests by the mill!"
OTHER = "Invoices are due on the first Friday of the month."


def add_memory(client: Contract, content: str = HERON, namespace: str = "/team") -> str:
    return str(client.add(content, namespace=namespace, allow_duplicates=True)["id"])


def run_job(client: Contract, **chosen: Any) -> int:
    """Run the job to its end; how many fusions it proposed."""
    run_jobs()
    made = client.post("schedules/", PROPOSE | {"settings": chosen})
    assert made.status == 201, made
    started = client.post(f"schedules/{made.json['id']}/run/", {})
    assert started.status == 202, started
    run_jobs()
    job = client.get(f"jobs/{started.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    return int(job["result"]["proposed"])


def open_pairs(client: Contract) -> set[tuple[str, str]]:
    found = client.get("reviews/?kind=fusion").json["results"]
    return {(memory["memory_id"], memory["other_memory_id"]) for memory in found}


def review_id(client: Contract) -> str:
    (review,) = client.get("reviews/?kind=fusion").json["results"]
    return str(review["id"])


def states(client: Contract, *ids: str) -> list[str]:
    return [client.get(f"memories/{memory_id}/").json["state"] for memory_id in ids]


@pytest.mark.parametrize(
    ("family", "few"), [("hashing", 2_000), ("universal-sentence-encoder", 0)], ids=["compared", "by_index"]
)
@pytest.mark.parametrize("text", [HERON, NEARLY], ids=["equal", "near"])
def test_duplicates_are_proposed_and_fused_where_the_review_is_accepted(
    olivia: Contract,
    alice: Contract,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    family: str,
    few: int,
) -> None:
    settings.MEMOS_EMBEDDER = EmbedderChoice(family=family, model="", url="", key="")  # the second has an index
    monkeypatch.setattr(pairs, "FEW", few)
    older, later = add_memory(alice), add_memory(alice, text)
    add_memory(alice, OTHER)
    assert run_job(olivia) == 1
    assert open_pairs(alice) == {(later, older)}
    accepted = alice.post(f"reviews/{review_id(alice)}/accept/", {})
    assert (accepted.status, accepted.json["status"]) == (200, "accepted")
    run_jobs()
    assert states(alice, older, later) == ["merged", "merged"]
    assert set(alice.search_contents("heron")) == {text, OTHER}
    assert open_pairs(alice) == set()


def test_page_shows_both_texts_and_fuses_them(world: World, olivia: Contract, alice: Contract) -> None:
    older, later = add_memory(alice), add_memory(alice, NEARLY)
    run_job(olivia)
    for person in (world.alice, world.bob):
        page = without_marks(signed_in(person).get("/reviews/").text)
        assert HERON in page
        assert NEARLY in page
        assert ("Keep both" in page) is (person is world.alice)
    done = signed_in(world.alice).post(f"/reviews/{review_id(alice)}/accept/")
    assert (done.status_code, done["Location"]) == (303, "/reviews/")
    assert states(alice, older, later) == ["merged", "merged"]
    assert HERON not in signed_in(world.alice).get("/reviews/").text


def test_fusion_that_was_accepted_is_undone_and_can_be_decided_again(
    world: World, olivia: Contract, alice: Contract
) -> None:
    older, later = add_memory(alice), add_memory(alice, NEARLY)
    run_job(olivia)
    address, browser = f"/reviews/{review_id(alice)}", signed_in(world.alice)
    assert browser.post(f"{address}/accept/").status_code == 303
    assert states(alice, older, later) == ["merged", "merged"]
    assert f'action="{address}/reopen/"' in browser.get("/reviews/").text
    for other, status in ((world.bob, 403), (world.charlie, 404)):
        assert signed_in(other).post(f"{address}/reopen/").status_code == status
    assert browser.post(f"{address}/reopen/").status_code == 303
    assert states(alice, older, later) == ["generated", "generated"]
    assert len(open_pairs(alice)) == 1
    assert browser.post(f"{address}/accept/").status_code == 303
    assert states(alice, older, later) == ["merged", "merged"]


def test_second_run_proposes_nothing_more(olivia: Contract, alice: Contract) -> None:
    ids = [add_memory(alice) for _ in range(3)]
    assert run_job(olivia) == 1
    assert run_job(olivia) == 0
    assert open_pairs(alice) == {(ids[1], ids[0])}


def test_rejected_pair_stays_rejected(world: World, olivia: Contract, alice: Contract) -> None:
    older, later = add_memory(alice), add_memory(alice, NEARLY)
    run_job(olivia)
    assert signed_in(world.alice).post(f"/reviews/{review_id(alice)}/reject/").status_code == 303
    assert alice.patch(f"memories/{later}/", {"tags": ["mill"]}, if_match='"1"').status == 200
    assert run_job(olivia) == 0
    assert open_pairs(alice) == set()
    assert states(alice, older, later) == ["generated", "generated"]
    third = add_memory(alice)
    assert run_job(olivia) == 1
    assert open_pairs(alice) == {(third, older)}


def test_reader_and_stranger_decide_no_fusion(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    older, later = add_memory(alice), add_memory(alice)
    add_memory(charlie)
    assert run_job(olivia) == 1
    assert run_job(charlie) == 0
    assert open_pairs(charlie) == set()
    review = review_id(alice)
    for client, status in ((bob, 403), (charlie, 404)):
        for verb in ("accept", "reject"):
            assert client.post(f"reviews/{review}/{verb}/", {}).status == status
    assert signed_in(world.bob).post(f"/reviews/{review}/accept/").status_code == 403
    assert signed_in(world.charlie).post(f"/reviews/{review}/accept/").status_code == 404
    assert states(alice, older, later) == ["generated", "generated"]
    assert open_pairs(alice) == {(later, older)}


def test_memories_of_other_places_and_owners_and_held_ones_are_left_out(
    world: World, olivia: Contract, alice: Contract
) -> None:
    add_memory(alice)
    add_memory(alice, namespace="/team/notes")
    add_memory(olivia)
    held = add_memory(alice, NEARLY)
    assert alice.post(f"memories/{held}/freeze/", {"reason": "An audit."}).status == 200
    assert run_job(olivia) == 0
    with acting(world.olivia.actor):
        assert not Review.objects.exists()


def test_fused_or_archived_memories_leave_the_inbox(world: World, olivia: Contract, alice: Contract) -> None:
    older, later = add_memory(alice), add_memory(alice)
    run_job(olivia)
    review = review_id(alice)
    assert alice.post(f"memories/{older}/transition/", {"to": "archived"}).status == 200
    assert open_pairs(alice) == set()
    assert alice.post(f"reviews/{review}/accept/", {}).status == 409
    assert signed_in(world.alice).post(f"/reviews/{review}/accept/").status_code == 409
    assert states(alice, older, later) == ["archived", "generated"]


def test_run_that_stops_goes_on_behind_its_last_step(
    olivia: Contract, alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "LOOKED_AT", 1)
    ids = [add_memory(alice) for _ in range(4)]
    assert run_job(olivia) == 2
    assert open_pairs(alice) == {(ids[1], ids[0]), (ids[3], ids[2])}


def test_threshold_decides_what_is_near(olivia: Contract, alice: Contract) -> None:
    older, later = add_memory(alice), add_memory(alice, "The heron nests by the old mill.")
    assert run_job(olivia) == 0
    assert run_job(olivia, threshold=0.9) == 1
    assert open_pairs(alice) == {(later, older)}


def test_preview_counts_and_proposes_nothing(
    world: World, olivia: Contract, alice: Contract, charlie: Contract
) -> None:
    add_memory(alice)
    later = add_memory(alice, NEARLY)
    run_jobs()
    made = olivia.post("schedules/", PROPOSE).json["id"]
    previewed = olivia.post(f"schedules/{made}/run/?dry_run=true", {})
    assert (previewed.status, previewed.json["count"], previewed.json["ids"]) == (200, 1, [later])
    assert open_pairs(alice) == set()
    assert alice.post("schedules/", PROPOSE).status == 403
    assert charlie.post(f"schedules/{made}/run/", {}).status == 404
    assert fields_at_fault(olivia.post("schedules/", PROPOSE | {"settings": {"threshold": 2}})) == {
        "settings.threshold"
    }


def test_two_runs_at_once_propose_each_fusion_once(world: World, alice: Contract) -> None:
    older, later = add_memory(alice), add_memory(alice, NEARLY)
    run_jobs()
    system = system_actor(tenant_id=world.acme.id, request_id="test")
    writes = [fusions_propose(run_of(system)) for _ in range(2)]  # both have read before one writes
    with acting(system):
        proposals = [write().result for write in writes if callable(write)]
    assert proposals == [{"proposed": 1}, {"proposed": 0}]
    assert open_pairs(alice) == {(later, older)}


def run_of(system: Actor) -> JobRun:
    return JobRun(uuid7(), system, system, {}, {}, 0, None, None, {}, lambda done, total: None)
