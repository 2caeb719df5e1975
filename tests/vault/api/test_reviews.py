"""reviews/ and memories/{id}/redact/: who may decide, what goes, and what stays."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Outcome, Verb
from tests.factories import World
from tests.governance.tables import read_all_rows
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id
from tests.vault.outbox import run_jobs
from vault.models import CubeVersion, Embedding, PiiFinding, Posting

Superuser = Callable[[], psycopg.Connection]
TEXT, CLEAN = "Mail li.lei@example.cn or call +86 138 1234 5678.", "Mail [email] or call [phone]."


def add_flagged(client: Contract, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A memory with personal data, and the review that asks about it."""
    memory = client.add(TEXT, namespace="/team", **fields)
    review = next(review for review in client.get("reviews/").json["results"] if review["memory_id"] == memory["id"])
    return memory, review


def test_a_review_tells_places_and_no_values(alice: Contract) -> None:
    memory, review = add_flagged(alice, metadata={"owner": {"mail": "li@example.cn"}})
    assert (review["kind"], review["status"], review["version"], review["is_current"]) == ("pii", "open", 1, True)
    assert [
        (finding["field"], finding["kind"], finding["start"], finding["end"]) for finding in review["findings"]
    ] == [
        ("content", "email", 5, 22),
        ("content", "phone", 31, 48),
        ("metadata.owner.mail", "email", 0, 13),
    ]
    body = alice.get("reviews/?kind=pii").body
    assert b"li.lei" not in body
    assert b"138" not in body
    assert alice.get(f"memories/{memory['id']}/").status == 200


def test_accepting_makes_a_clean_version_and_blanks_the_earlier_ones(world: World, alice: Contract) -> None:
    memory, review = add_flagged(alice, title="li.lei@example.cn", tags=["a"], metadata={"m": "li.lei@example.cn"})
    run_jobs()
    decided = alice.post(f"reviews/{review['id']}/accept/", {})
    assert (decided.status, decided.json["status"], decided.json["findings"]) == (200, "accepted", [])
    now = alice.get(f"memories/{memory['id']}/").json
    assert (now["content"], now["title"], now["metadata"]) == (CLEAN, "[email]", {"m": "[email]"})
    assert (now["version"], now["tags"], now["pending_embedding"]) == (2, ["a"], True)
    second, first = alice.get(f"memories/{memory['id']}/versions/").json["results"]
    assert (first["content"], first["title"], first["metadata"], first["tags"]) == ("", "", {}, [])
    assert second["previous_hash"] == first["hash"]
    assert alice.get("reviews/").json["count"] == 0
    assert alice.search("li.lei", mode="lexical", min_score=0.01) == []
    with acting(world.alice.actor):
        assert not PiiFinding.objects.exists()
        assert not Embedding.objects.exists()
        verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert {Verb.REVIEW_ACCEPTED, Verb.MEMORY_REDACTED, Verb.MEMORY_UPDATED} <= verbs
    run_jobs()
    assert alice.get(f"memories/{memory['id']}/").json["pending_embedding"] is False


def test_history_may_be_preserved(alice: Contract) -> None:
    memory, review = add_flagged(alice)
    assert alice.post(f"reviews/{review['id']}/accept/", {"redact_history": False}).status == 200
    second, first = alice.get(f"memories/{memory['id']}/versions/").json["results"]
    assert (first["content"], second["content"]) == (TEXT, CLEAN)


def test_rejecting_keeps_the_words_and_is_not_asked_again(alice: Contract) -> None:
    memory, review = add_flagged(alice)
    assert alice.post(f"reviews/{review['id']}/reject/").json["status"] == "rejected"
    assert alice.get(f"memories/{memory['id']}/").json["content"] == TEXT
    assert alice.get("reviews/").json["count"] == 0
    assert [review["id"] for review in alice.get("reviews/?status=rejected").json["results"]] == [review["id"]]
    for verb in ("accept", "reject"):
        again = alice.post(f"reviews/{review['id']}/{verb}/", {} if verb == "accept" else None)
        assert (again.status, again.code) == (409, "conflict")


def test_a_rejection_is_taken_back_once_and_only_by_its_decider(world: World, alice: Contract) -> None:
    _memory, review = add_flagged(alice)
    address = f"reviews/{review['id']}/reopen/"
    assert alice.post(address).status == 409, "it is open"
    alice.post(f"reviews/{review['id']}/reject/")
    refused = contract(world, "olivia").post(address)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert alice.post(address).json["status"] == "open"
    assert [row["id"] for row in alice.get("reviews/?kind=pii").json["results"]] == [review["id"]]
    assert alice.post(address).status == 409


def test_what_was_rejected_stays_where_it_is_when_the_rest_goes(alice: Contract) -> None:
    memory, review = add_flagged(alice)
    alice.post(f"reviews/{review['id']}/reject/")
    address = f"memories/{memory['id']}/"
    assert alice.patch(address, {"title": "li.lei@example.cn"}, if_match='"1"').status == 200
    (review,) = alice.get("reviews/").json["results"]
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 200
    now = alice.get(address).json
    assert (now["content"], now["title"]) == (TEXT, "[email]")


def test_of_an_earlier_version_all_words_go(alice: Contract) -> None:
    memory, review = add_flagged(alice)
    address = f"memories/{memory['id']}/"
    assert alice.patch(address, {"content": "Clean by hand."}, if_match='"1"').status == 200
    (left,) = alice.get("reviews/").json["results"]
    assert (left["id"], left["is_current"]) == (review["id"], False)
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 200
    second, first = alice.get(f"{address}versions/").json["results"]
    assert (first["content"], second["content"], second["version"]) == ("", "Clean by hand.", 2)


def test_a_newer_version_that_asks_the_same_answers_for_the_older(alice: Contract) -> None:
    memory, review = add_flagged(alice)
    alice.patch(f"memories/{memory['id']}/", {"importance": 0.9}, if_match='"1"')
    (newer,) = alice.get("reviews/").json["results"]
    assert newer["id"] != review["id"]
    assert alice.post(f"reviews/{newer['id']}/accept/", {}).status == 200
    contents = [row["content"] for row in alice.get(f"memories/{memory['id']}/versions/").json["results"]]
    assert contents == [CLEAN, "", ""]


def test_a_version_can_be_blanked_whatever_it_holds(world: World, alice: Contract) -> None:
    memory = alice.add("The secret of the house.", namespace="/team")
    address = f"memories/{memory['id']}/"
    alice.patch(address, {"content": "The house."}, if_match='"1"')
    run_jobs()
    reply = alice.post(f"{address}redact/", {"version": 1}, if_match='"2"')
    assert (reply.status, reply.json["content"], reply.headers["ETag"]) == (200, "The house.", '"2"')
    second, first = alice.get(f"{address}versions/").json["results"]
    assert first["content"] == ""
    assert (first["hash"], second["previous_hash"]) == (second["previous_hash"], first["hash"])
    assert alice.post(f"{address}redact/", {"version": 1}).status == 200  # once more changes nothing


def test_the_present_version_can_be_blanked_and_leaves_no_token(world: World, alice: Contract) -> None:
    memory = alice.add("The secret of the house.", namespace="/team", tags=["hidden"])
    address = f"memories/{memory['id']}/"
    alice.post("memories/", {"content": "The secret of the house.", "namespace": "/team"}, idempotency_key="kept")
    run_jobs()
    assert alice.post(f"{address}redact/", {"version": 1}).status == 200
    now = alice.get(address).json
    assert (now["content"], now["tags"], now["token_count"]) == ("", [], 0)
    with acting(world.alice.actor):
        assert not Posting.objects.filter(cube_id=memory["id"]).exists()
        assert not Embedding.objects.exists()
        assert bytes(CubeVersion.objects.get().sealed) == b""
    assert alice.search("secret", min_score=0.01) == []
    assert alice.add("The secret of the house.", namespace="/team")["id"] != memory["id"]
    again = alice.patch(address, {"content": "New words."}, if_match='"1"')
    assert again.json["content"] == "New words."


def test_what_cannot_be_blanked_says_so(alice: Contract) -> None:
    address = f"memories/{alice.add('One.', namespace='/team')['id']}/redact/"
    assert fields_at_fault(alice.post(address, {"version": 9})) == {"version"}
    assert fields_at_fault(alice.post(address, {})) == {"version"}
    assert fields_at_fault(alice.post(address, {"version": 1, "speling": 1})) == {"speling"}
    assert alice.post(address, {"version": 1}, if_match='"7"').status == 412
    assert alice.post(address, {"speling": 1}, if_match='"7"').status == 412


@pytest.mark.parametrize(("name", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_it_refuses_whoever_may_not_and_leaves_no_trace(
    world: World, alice: Contract, superuser: Superuser, name: str, status: int
) -> None:
    memory, review = add_flagged(alice)
    client, before = contract(world, name), read_all_rows(superuser())
    calls: list[tuple[str, Any]] = [
        (f"memories/{memory['id']}/redact/", {"version": 1}),
        (f"memories/{memory['id']}/redact/", {"speling": 1}),
        (f"reviews/{review['id']}/accept/", {}),
        (f"reviews/{review['id']}/accept/", {"speling": 1}),
        (f"reviews/{review['id']}/reject/", None),
        (f"reviews/{review['id']}/reopen/", None),
    ]
    replies = [client.post(address, body, idempotency_key=f"k{at}") for at, (address, body) in enumerate(calls)]
    assert {reply.status for reply in replies} == {status}
    after = read_all_rows(superuser())
    assert {table for table in after if after[table] != before[table]} <= {"governance_auditentry"}
    if status == 403:
        with acting(world.olivia.actor):
            assert AuditEntry.objects.filter(outcome=Outcome.DENIED).count() == len(calls)


def test_a_foreign_review_is_like_one_that_never_was(alice: Contract, charlie: Contract) -> None:
    _, review = add_flagged(alice)
    for verb, body in (("accept", {}), ("reject", None)):
        foreign, none = (charlie.post(f"reviews/{item}/{verb}/", body) for item in (review["id"], MISSING))
        assert without_id(foreign) == without_id(none)
    assert charlie.get("reviews/").json["count"] == 0


def test_the_inbox_holds_what_its_reader_may_read(
    world: World, alice: Contract, bob: Contract, olivia: Contract
) -> None:
    alice.add(TEXT)  # in her private namespace
    add_flagged(alice)
    assert [client.get("reviews/").json["count"] for client in (alice, olivia, bob)] == [2, 2, 1]
    assert contract(world, "ada").get("reviews/").status == 403


def test_what_is_deleted_is_not_asked_about_and_comes_back_with_it(alice: Contract) -> None:
    memory, review = add_flagged(alice)
    alice.delete(f"memories/{memory['id']}/")
    assert alice.get("reviews/").json["count"] == 0
    assert alice.post(f"reviews/{review['id']}/reject/").status == 404
    alice.post(f"memories/{memory['id']}/restore/")
    assert alice.get("reviews/").json["count"] == 1


def test_what_is_purged_takes_its_findings_with_it(world: World, alice: Contract) -> None:
    memory, _ = add_flagged(alice)
    assert alice.delete(f"memories/{memory['id']}/?purge=true").status == 204
    with acting(world.alice.actor):
        assert not PiiFinding.objects.exists()


def test_a_decision_is_made_once(alice: Contract) -> None:
    memory, review = add_flagged(alice)
    address = f"reviews/{review['id']}/accept/"
    first, again = (alice.post(address, {}, idempotency_key="once") for _ in range(2))
    assert (first.status, again.body) == (200, first.body)
    assert alice.get(f"memories/{memory['id']}/").json["version"] == 2


def test_what_it_does_not_know_is_refused(alice: Contract) -> None:
    assert fields_at_fault(alice.get("reviews/?kind=nothing")) == {"kind"}
    assert fields_at_fault(alice.get("reviews/?status=nothing")) == {"status"}
    assert fields_at_fault(alice.get("reviews/?speling=1")) == {"speling"}
