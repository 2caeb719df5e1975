"""`?async=true` and jobs/: promised, run as the one who asked, told how it went, run again."""

from collections.abc import Callable

import psycopg

from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.outbox import run_jobs


def promise(client: Contract, **body: object) -> str:
    reply = client.post("memories/?async=true", {"content": "Later.", **body})
    assert reply.status == 202
    assert reply.json["job"]["status"] == "pending"
    assert reply.json["job"]["progress"] == 0
    job_id: str = reply.json["job"]["id"]
    return job_id


def test_a_job_stores_what_was_promised(alice: Contract) -> None:
    job_id = promise(alice, tags=["t"], metadata={"k": [1]}, event_time="2020-01-01T00:00:00Z")
    assert alice.listed() == []
    run_jobs()
    job = alice.get(f"jobs/{job_id}/").json
    assert (job["kind"], job["status"], job["progress"], job["error"]) == ("memories.add", "succeeded", 1.0, None)
    memory = alice.get(f"memories/{job['result']['memory_ids'][0]}/").json
    assert (memory["content"], memory["tags"], memory["metadata"]) == ("Later.", ["t"], {"k": [1]})
    assert memory["event_time"] == "2020-01-01T00:00:00Z"
    assert memory["namespace"]["path"] == "/users/alice"


def test_messages_keep_their_order_in_a_job(alice: Contract) -> None:
    messages = [{"role": "user", "content": f"Message {number}."} for number in range(5)]
    body = {"messages": messages, "infer": False, "session_id": "s"}
    alice.post("memories/?async=true", body)
    run_jobs()
    assert alice.listed() == [f"Message {number}." for number in reversed(range(5))]


def test_a_job_that_runs_twice_has_one_effect(alice: Contract, superuser: Callable[[], psycopg.Connection]) -> None:
    promise(alice, allow_duplicates=True)
    run_jobs()
    superuser().execute("UPDATE governance_outboxevent SET done_at = NULL, available_at = now()")
    run_jobs()
    assert alice.listed() == ["Later."]


def test_a_job_that_may_not_fails_and_says_why(alice: Contract, olivia: Contract) -> None:
    olivia.add("Here I live.")
    job_id = promise(alice, namespace="/users/olivia")
    run_jobs()
    job = alice.get(f"jobs/{job_id}/").json
    assert job["status"] == "failed"
    assert job["error"]["code"] == "forbidden"
    assert alice.listed() == []


def test_a_job_acts_with_the_rights_of_when_it_runs(
    world: World, alice: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    promise(alice, namespace="/team")
    superuser().execute("UPDATE governance_apikey SET revoked_at = now() WHERE id = %s", [world.alice.key.id])
    run_jobs()
    olivia = Contract(key=world.olivia.key.text)
    assert [job["error"]["code"] for job in olivia.get("jobs/").json["results"]] == ["forbidden"]
    assert olivia.listed() == []


def test_a_failed_job_is_run_again_on_request_and_no_other(
    alice: Contract, olivia: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    olivia.add("Here I live.")
    job_id = promise(alice, namespace="/users/olivia")
    assert alice.post(f"jobs/{job_id}/retry/").status == 409
    run_jobs()
    superuser().execute("UPDATE vault_namespace SET owner_id = NULL, kind = 'shared' WHERE path = '/users/olivia'")
    again = alice.post(f"jobs/{job_id}/retry/")
    assert (again.status, again.json["status"], again.json["error"]) == (200, "pending", None)
    run_jobs()
    assert alice.get(f"jobs/{job_id}/").json["status"] == "succeeded"
    assert alice.post(f"jobs/{job_id}/retry/").status == 409
    assert "Later." in alice.listed()


def test_a_bad_body_is_refused_before_it_is_promised(alice: Contract) -> None:
    assert fields_at_fault(alice.post("memories/?async=true", {"content": ""})) == {"content"}
    assert fields_at_fault(alice.post("memories/?async=perhaps", {"content": "x"})) == {"async"}
    assert alice.get("jobs/").json["count"] == 0


def test_jobs_come_newest_first_in_pages(alice: Contract) -> None:
    jobs = [promise(alice) for _ in range(3)]
    page = alice.get("jobs/?page_size=2").json
    assert [job["id"] for job in page["results"]] == [jobs[2], jobs[1]]
    assert page["count"] == 3
    rest = alice.get(page["next"].removeprefix("http://testserver")).json
    assert [job["id"] for job in rest["results"]] == [jobs[0]]


def test_an_unknown_job_is_not_found(alice: Contract) -> None:
    assert alice.get(f"jobs/{MISSING}/").status == 404
    assert alice.post(f"jobs/{MISSING}/retry/").status == 404
