"""Contradictions: asked once, settled by validity, and nothing changes before a person decides."""

from typing import Any

import pytest

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.models import Cube

ASK = {"kind": "conflicts.propose", "cron": "0 4 * * *"}
NINE = "The library by the river opens at 9 in the morning."
TEN = "The library by the river opens at 10 in the morning."
OTHER = "Invoices are due on the first Friday of the month."


def add_memory(client: Contract, content: str, **fields: Any) -> str:
    return str(client.add(content, **{"namespace": "/team", **fields})["id"])


def run_job(client: Contract, kind: str = "conflicts.propose", **chosen: Any) -> int:
    """Run the job to its end; how many reviews it opened."""
    run_jobs()
    made = client.post("schedules/", ASK | {"kind": kind, "settings": chosen})
    assert made.status == 201, made
    started = client.post(f"schedules/{made.json['id']}/run/", {})
    assert started.status == 202, started
    run_jobs()
    job = client.get(f"jobs/{started.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    return int(job["result"]["proposed"])


def open_pairs(client: Contract) -> set[tuple[str, str]]:
    found = client.get("reviews/?kind=conflict").json["results"]
    return {(memory["memory_id"], memory["other_memory_id"]) for memory in found}


def review_id(client: Contract) -> str:
    (review,) = client.get("reviews/?kind=conflict").json["results"]
    return str(review["id"])


def validity(client: Contract, memory_id: str) -> tuple[str | None, str | None]:
    memory = client.get(f"memories/{memory_id}/").json
    return memory["valid_to"], memory["superseded_by"]


def test_job_asks_about_stored_contradiction_and_later_statement_holds(olivia: Contract, alice: Contract) -> None:
    earlier, later = add_memory(alice, NINE), add_memory(alice, TEN)
    add_memory(alice, OTHER)
    assert run_job(olivia) == 1
    assert open_pairs(alice) == {(earlier, later)}
    assert validity(alice, earlier) == (None, None)
    accepted = alice.post(f"reviews/{review_id(alice)}/accept/", {})
    assert (accepted.status, accepted.json["status"]) == (200, "accepted")
    assert validity(alice, earlier) == (alice.get(f"memories/{later}/").json["created_at"], later)
    assert validity(alice, later) == (None, None)
    assert run_job(olivia) == 0


def test_contradiction_of_one_subject_is_asked_when_it_is_written(alice: Contract) -> None:
    earlier = add_memory(alice, "Mara likes her coffee black.", subject="mara")
    run_jobs()
    assert open_pairs(alice) == set()
    later = add_memory(alice, "Mara does not like her coffee black.", subject="mara")
    run_jobs()
    assert open_pairs(alice) == {(earlier, later)}


def test_statement_of_an_earlier_time_is_the_earlier_one_whenever_it_was_written(
    olivia: Contract, alice: Contract
) -> None:
    later = add_memory(alice, TEN, event_time="2026-03-01T00:00:00Z")
    earlier = add_memory(alice, NINE, event_time="2025-03-01T00:00:00Z")
    assert run_job(olivia) == 1
    assert open_pairs(alice) == {(earlier, later)}


def test_statements_whose_validity_does_not_overlap_are_no_contradiction(olivia: Contract, alice: Contract) -> None:
    add_memory(alice, NINE, valid_from="2024-01-01T00:00:00Z", valid_to="2025-01-01T00:00:00Z")
    add_memory(alice, TEN, valid_from="2025-01-01T00:00:00Z")
    assert run_job(olivia) == 0


def test_rejected_contradiction_is_remembered_and_changes_nothing(
    world: World, olivia: Contract, alice: Contract
) -> None:
    earlier, later = add_memory(alice, NINE), add_memory(alice, TEN)
    run_job(olivia)
    assert signed_in(world.alice).post(f"/reviews/{review_id(alice)}/reject/").status_code == 303
    assert run_job(olivia) == 0
    assert (validity(alice, earlier), validity(alice, later)) == ((None, None), (None, None))


def test_page_shows_both_statements_and_settles_them(world: World, olivia: Contract, alice: Contract) -> None:
    earlier, later = add_memory(alice, NINE), add_memory(alice, TEN)
    run_job(olivia)
    for person in (world.alice, world.bob):
        page = signed_in(person).get("/reviews/").text
        assert NINE in page
        assert f"/memories/{later}/" in page
        assert ("Both hold" in page) is (person is world.alice)
    done = signed_in(world.alice).post(f"/reviews/{review_id(alice)}/accept/")
    assert (done.status_code, done["Location"]) == (303, "/reviews/")
    assert validity(alice, earlier)[1] == later
    assert NINE not in signed_in(world.alice).get("/reviews/").text


def test_reader_and_stranger_decide_no_contradiction(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    earlier, later = add_memory(alice, NINE), add_memory(alice, TEN)
    add_memory(charlie, NINE)
    assert run_job(olivia) == 1
    assert run_job(charlie) == 0
    review = review_id(alice)
    for client, status in ((bob, 403), (charlie, 404)):
        for verb in ("accept", "reject"):
            assert client.post(f"reviews/{review}/{verb}/", {}).status == status
    assert open_pairs(charlie) == set()
    assert open_pairs(alice) == {(earlier, later)}
    assert validity(alice, earlier) == (None, None)


def test_statement_that_ended_meanwhile_cannot_be_settled(olivia: Contract, alice: Contract) -> None:
    earlier = add_memory(alice, NINE, event_time="2025-03-01T00:00:00Z")
    add_memory(alice, TEN, event_time="2026-03-01T00:00:00Z")
    run_job(olivia)
    ended = {"valid_to": "2025-06-01T00:00:00Z"}
    assert alice.patch(f"memories/{earlier}/", ended, if_match='"1"').status == 200
    assert alice.post(f"reviews/{review_id(alice)}/accept/", {}).status == 409
    assert validity(alice, earlier) == ("2025-06-01T00:00:00Z", None)


def test_contradicting_texts_are_not_proposed_as_duplicates(olivia: Contract, alice: Contract) -> None:
    add_memory(alice, NINE)
    add_memory(alice, TEN)
    assert run_job(olivia, kind="fusions.propose", threshold=0.6) == 0


@pytest.mark.parametrize("held", ["earlier", "later"])
def test_held_statement_is_not_asked_about(olivia: Contract, alice: Contract, held: str) -> None:
    ids = {"earlier": add_memory(alice, NINE), "later": add_memory(alice, TEN)}
    assert alice.post(f"memories/{ids[held]}/freeze/", {"reason": "An audit."}).status == 200
    assert run_job(olivia) == 0


def test_preview_counts_and_asks_nothing(olivia: Contract, alice: Contract, charlie: Contract) -> None:
    earlier = add_memory(alice, NINE)
    add_memory(alice, TEN)
    run_jobs()
    made = olivia.post("schedules/", ASK).json["id"]
    previewed = olivia.post(f"schedules/{made}/run/?dry_run=true", {})
    assert (previewed.status, previewed.json["count"], previewed.json["ids"]) == (200, 1, [earlier])
    assert open_pairs(alice) == set()
    assert alice.post("schedules/", ASK).status == 403
    assert charlie.post(f"schedules/{made}/run/", {}).status == 404
    assert fields_at_fault(olivia.post("schedules/", ASK | {"settings": {"threshold": 2}})) == {"settings.threshold"}


@pytest.mark.parametrize("verb", ["accept", "reject"])
def test_decision_on_the_page_is_undone_only_by_its_decider(
    world: World, olivia: Contract, alice: Contract, verb: str
) -> None:
    earlier, later = add_memory(alice, NINE), add_memory(alice, TEN)
    run_job(olivia)
    review, browser = review_id(alice), signed_in(world.alice)
    reopen = f"/reviews/{review}/reopen/"
    assert browser.post(reopen).status_code == 409, "nothing is decided"
    browser.post(f"/reviews/{review}/{verb}/")
    assert f'action="{reopen}"' in browser.get("/reviews/").text
    for other, status in ((world.olivia, 403), (world.bob, 403), (world.charlie, 404)):
        assert signed_in(other).post(reopen).status_code == status
    assert open_pairs(alice) == set()
    done = browser.post(reopen)
    assert (done.status_code, done["Location"]) == (303, f"/reviews/?case={review}")
    assert open_pairs(alice) == {(earlier, later)}
    assert validity(alice, earlier) == (None, None)
    browser.post(f"/reviews/{review}/accept/")
    assert validity(alice, earlier)[1] == later, "a review that was reopened is decided again"


def test_accepted_contradiction_stays_if_the_memory_has_another_successor_since(
    world: World, olivia: Contract, alice: Contract
) -> None:
    earlier = add_memory(alice, NINE)
    add_memory(alice, TEN)
    run_job(olivia)
    review, browser = review_id(alice), signed_in(world.alice)
    browser.post(f"/reviews/{review}/accept/")
    with acting(world.alice.actor):
        Cube.objects.filter(id=earlier).update(superseded_by=earlier)
    assert browser.post(f"/reviews/{review}/reopen/").status_code == 409
    assert open_pairs(alice) == set()
