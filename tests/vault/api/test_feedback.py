"""memories/{id}/feedback/: who may change the memory changes it; feedback of anybody else becomes a review."""

from typing import Any

import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in, without_marks
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.api.test_reviews import Superuser
from tests.vault.outbox import run_jobs
from vault.models import Review

TEXT, RIGHT = "The heron nests by the mill.", "The kingfisher nests by the mill."
WRONG = {"kind": "wrong", "correction": RIGHT, "note": "I was there."}


@pytest.fixture
def memory_id(alice: Contract) -> str:
    return str(alice.add(TEXT, namespace="/team")["id"])


def memory_of(client: Contract, memory_id: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"memories/{memory_id}/").json
    return found


def give(client: Contract, memory_id: str, body: dict[str, str], *, status: int, **headers: str) -> dict[str, Any]:
    reply = client.post(f"memories/{memory_id}/feedback/", body, **headers)
    assert reply.status == status, reply
    given: dict[str, Any] = reply.json
    return given


def open_review(client: Contract) -> dict[str, Any]:
    (review,) = client.get("reviews/?kind=feedback").json["results"]
    found: dict[str, Any] = review
    return found


def test_useful_counts_as_a_use_and_raises_the_importance_without_a_version(alice: Contract, memory_id: str) -> None:
    run_jobs()
    before = memory_of(alice, memory_id)
    assert give(alice, memory_id, {"kind": "useful"}, status=200)["outcome"] == "counted"
    run_jobs()
    after = memory_of(alice, memory_id)
    assert after["access_count"] == before["access_count"] + 2  # the first reading, and the feedback
    assert (after["importance"], after["version"]) == (pytest.approx(before["importance"] + 0.05), 1)


def test_useful_of_a_reader_counts_and_leaves_the_importance(alice: Contract, bob: Contract, memory_id: str) -> None:
    run_jobs()
    assert give(bob, memory_id, {"kind": "useful"}, status=200)["review_id"] is None
    run_jobs()
    after = memory_of(alice, memory_id)
    assert (after["access_count"], after["importance"]) == (1, 0.5)
    assert alice.get("reviews/?kind=feedback").json["count"] == 0


def test_correction_makes_a_version_once(world: World, alice: Contract, memory_id: str) -> None:
    give(alice, memory_id, WRONG, status=428)
    give(alice, memory_id, WRONG, status=412, if_match='"7"')
    rehearsed = alice.post(f"memories/{memory_id}/feedback/?dry_run=true", WRONG, if_match='"1"').json
    assert (rehearsed["dry_run"], rehearsed["outcome"], rehearsed["version"]) == (True, "changed", 1)
    for _ in range(2):
        done = give(alice, memory_id, WRONG, status=200, if_match='"1"', idempotency_key="once")
        assert done == {"dry_run": False, "outcome": "changed", "version": 2, "review_id": None}
    assert memory_of(alice, memory_id)["content"] == RIGHT
    newest = alice.get(f"memories/{memory_id}/versions/").json["results"][0]
    assert (newest["version"], newest["reason"]) == (2, "I was there.")
    run_jobs()
    assert alice.search_contents("kingfisher", mode="lexical", min_score=0.01) == [RIGHT]
    with acting(world.alice.actor):
        (entry,) = AuditEntry.objects.filter(verb=Verb.MEMORY_FEEDBACK_GIVEN)
    assert (entry.version, entry.detail) == (2, {"kind": "wrong", "outcome": "changed"})


def test_outdated_ends_the_validity_and_sensitive_raises_the_level(alice: Contract, memory_id: str) -> None:
    give(alice, memory_id, {"kind": "outdated"}, status=200)
    assert memory_of(alice, memory_id)["valid_to"] is not None
    give(alice, memory_id, {"kind": "outdated"}, status=409)
    for level in ("confidential", "restricted"):
        give(alice, memory_id, {"kind": "sensitive"}, status=200)
        assert memory_of(alice, memory_id)["sensitivity"] == level
    give(alice, memory_id, {"kind": "sensitive"}, status=409)
    assert memory_of(alice, memory_id)["version"] == 4


def test_correction_of_a_reader_waits_as_a_review_until_it_is_accepted(
    alice: Contract, bob: Contract, memory_id: str, superuser: Superuser
) -> None:
    given = give(bob, memory_id, WRONG, status=202, if_match='"1"', idempotency_key="once")
    assert give(bob, memory_id, WRONG, status=202, if_match='"1"', idempotency_key="once") == given
    assert give(bob, memory_id, WRONG, status=409, if_match='"1"')["code"] == "conflict"
    assert memory_of(alice, memory_id)["version"] == 1
    assert "kingfisher" not in str(read_all_rows(superuser()))
    for client in (alice, bob):
        review = open_review(client)
        assert (review["id"], review["content"]) == (given["review_id"], TEXT)
        assert (review["feedback"]["correction"], review["feedback"]["note"]) == (RIGHT, "I was there.")
    assert bob.post(f"reviews/{review['id']}/accept/", {}).status == 403
    decided = alice.post(f"reviews/{review['id']}/accept/", {})
    assert (decided.status, decided.json["status"]) == (200, "accepted")
    memory = memory_of(alice, memory_id)
    assert (memory["content"], memory["version"]) == (RIGHT, 2)
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 409


@pytest.mark.parametrize(("kind", "field"), [("outdated", "valid_to"), ("sensitive", "sensitivity")])
def test_feedback_of_a_reader_changes_the_memory_only_when_accepted(
    alice: Contract, bob: Contract, memory_id: str, kind: str, field: str
) -> None:
    before = memory_of(alice, memory_id)[field]
    give(bob, memory_id, {"kind": kind}, status=202)
    assert alice.post(f"reviews/{open_review(alice)['id']}/reject/").status == 200
    assert memory_of(alice, memory_id)[field] == before
    give(bob, memory_id, {"kind": kind}, status=202)
    assert alice.post(f"reviews/{open_review(alice)['id']}/accept/", {}).status == 200
    assert memory_of(alice, memory_id)[field] != before


def test_correction_of_an_earlier_version_is_not_accepted(
    world: World, alice: Contract, bob: Contract, memory_id: str
) -> None:
    give(bob, memory_id, WRONG, status=202, if_match='"1"')
    alice.patch(f"memories/{memory_id}/", {"content": "The owl nests there."}, if_match='"1"')
    review = open_review(alice)
    assert not review["is_current"]
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 409
    assert signed_in(world.alice).post(f"/reviews/{review['id']}/accept/").status_code == 409
    assert memory_of(alice, memory_id)["content"] == "The owl nests there."


def test_redaction_erases_a_correction_that_waits(world: World, alice: Contract, bob: Contract, memory_id: str) -> None:
    give(bob, memory_id, WRONG, status=202, if_match='"1"')
    assert alice.post(f"memories/{memory_id}/redact/", {"version": 1}).status == 200
    with acting(world.alice.actor):
        review = Review.objects.get(kind="feedback")
    assert (review.status, bytes(review.sealed)) == ("superseded", b"")


def test_stranger_and_auditor_give_no_feedback_and_a_hold_refuses_it(
    alice: Contract, bob: Contract, ada: Contract, charlie: Contract, memory_id: str
) -> None:
    for body in ({"kind": "useful"}, {"kind": "outdated"}, WRONG):
        give(charlie, memory_id, body, status=404, if_match='"1"')
        give(ada, memory_id, body, status=403, if_match='"1"')
    assert alice.post(f"memories/{memory_id}/freeze/", {"reason": "An audit."}).status == 200
    for client in (alice, bob):
        for body in ({"kind": "useful"}, {"kind": "sensitive"}, WRONG):
            give(client, memory_id, body, status=423, if_match='"1"')
    assert alice.get("reviews/?kind=feedback").json["count"] == 0


@each_case(
    ("body", "field"),
    [
        ({"kind": "nice"}, "kind"),
        ({"kind": "wrong"}, "correction"),
        ({"kind": "wrong", "correction": " "}, "correction"),
        ({"kind": "outdated", "correction": RIGHT}, "correction"),
        ({"kind": "useful", "note": "Thanks."}, "note"),
    ],
)
def test_faults_of_a_feedback_are_named(alice: Contract, memory_id: str, body: dict[str, str], field: str) -> None:
    assert fields_at_fault(alice.post(f"memories/{memory_id}/feedback/", body, if_match='"1"')) == {field}


def test_page_corrects_a_memory_and_shows_a_refused_correction_again(
    world: World, alice: Contract, memory_id: str
) -> None:
    browser, address = signed_in(world.alice), f"/memories/{memory_id}/feedback/"
    page = browser.get(f"/memories/{memory_id}/").text
    assert [f'value="{kind}"' in page for kind in ("useful", "wrong", "outdated", "sensitive")] == [True] * 4
    refused = browser.post(address, {"kind": "wrong", "correction": " ", "version": "1"})
    assert (refused.status_code, 'name="correction"' in refused.text) == (422, True)
    done = browser.post(address, {"kind": "wrong", "correction": RIGHT, "version": "1"}, follow=True)
    assert RIGHT in done.text
    assert "The memory has a new version" in done.text
    assert browser.post(address, {"kind": "wrong", "correction": TEXT, "version": "1"}).status_code == 412
    browser.post(address, {"kind": "outdated", "version": "2"})
    assert browser.post(address, {"kind": "outdated", "version": "3"}).status_code == 422
    assert memory_of(alice, memory_id)["valid_to"] is not None


def test_page_sends_the_feedback_of_a_reader_to_the_inbox(
    world: World, alice: Contract, bob: Contract, memory_id: str
) -> None:
    reader = signed_in(world.bob)
    body = {"kind": "wrong", "correction": RIGHT, "version": "1"}
    assert "Sent for review" in reader.post(f"/memories/{memory_id}/feedback/", body, follow=True).text
    assert signed_in(world.charlie).post(f"/memories/{memory_id}/feedback/", body).status_code == 404
    browser = signed_in(world.alice)
    inbox = without_marks(browser.get("/reviews/").text)
    for shown in (RIGHT, TEXT, "bob", "Take this text", "Leave unchanged"):
        assert shown in inbox
    assert browser.post(f"/reviews/{open_review(alice)['id']}/accept/").status_code == 303
    assert memory_of(alice, memory_id)["content"] == RIGHT
