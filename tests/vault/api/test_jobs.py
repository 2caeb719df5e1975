"""`?async=true` and jobs/: promised, run as the one who asked, told how it went, run again."""

from collections.abc import Callable

import psycopg
import pytest

from governance.jobs.cleanup import jobs_tidy
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import MAX_ATTEMPTS, Task
from governance.outbox.runner import task_run
from governance.outbox.selectors import outbox_health
from governance.outbox.services import events_resume
from governance.tasks import jobs_tidy_task
from governance.vocabulary import Topic
from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.jobs.memory_additions import BATCH

Superuser = Callable[[], psycopg.Connection]


def promise(client: Contract, **body: object) -> str:
    reply = client.post("memories/?async=true", {"content": "Later."} | body)
    assert reply.status == 202
    assert reply.json["job"]["status"] == "pending"
    assert reply.json["job"]["progress"] == 0
    job_id: str = reply.json["job"]["id"]
    return job_id


def test_a_job_stores_what_was_promised(alice: Contract) -> None:
    job_id = promise(alice, tags=["t"], metadata={"k": [1]}, event_time="2020-01-01T00:00:00Z")
    assert alice.list_contents() == []
    run_jobs()
    job = alice.get(f"jobs/{job_id}/").json
    assert (job["kind"], job["status"], job["progress"], job["error"]) == ("memories.add", "succeeded", 1.0, None)
    memory = alice.get(f"memories/{job['result']['memory_ids'][0]}/").json
    assert (memory["content"], memory["tags"], memory["metadata"]) == ("Later.", ["t"], {"k": [1]})
    assert memory["event_time"] == "2020-01-01T00:00:00Z"
    assert memory["namespace"]["path"] == "/users/alice"


def test_many_queued_additions_become_few_tasks_and_keep_their_order(alice: Contract) -> None:
    for number in range(BATCH + 10):
        promise(alice, content=f"Addition {number}.")
    tasks: list[int] = []

    def send(task: Task) -> None:
        if task.topic == Topic.MEMORIES_ADD:
            tasks.append(len(task.event_ids))
        task_run(task, slice_seconds=60)

    while dispatch_once(send):
        pass
    assert tasks == [BATCH, 10]
    assert alice.list_contents("page_size=200") == [f"Addition {number}." for number in reversed(range(BATCH + 10))]


def test_messages_keep_their_order_in_a_job(alice: Contract) -> None:
    messages = [{"role": "user", "content": f"Message {number}."} for number in range(5)]
    body = {"messages": messages, "infer": False, "session_id": "s"}
    alice.post("memories/?async=true", body)
    run_jobs()
    assert alice.list_contents() == [f"Message {number}." for number in reversed(range(5))]


def test_a_job_that_runs_twice_has_one_effect(alice: Contract, superuser: Callable[[], psycopg.Connection]) -> None:
    promise(alice, allow_duplicates=True)
    run_jobs()
    superuser().execute("UPDATE governance_outboxevent SET done_at = NULL, available_at = now()")
    run_jobs()
    assert alice.list_contents() == ["Later."]


def test_a_job_that_may_not_fails_and_says_why(alice: Contract, olivia: Contract) -> None:
    olivia.add("Here I live.")
    job_id = promise(alice, namespace="/users/olivia")
    run_jobs()
    job = alice.get(f"jobs/{job_id}/").json
    assert job["status"] == "failed"
    assert job["error"]["code"] == "forbidden"
    assert alice.list_contents() == []


def test_a_job_acts_with_the_rights_of_when_it_runs(
    world: World, alice: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    promise(alice, namespace="/team")
    superuser().execute("UPDATE governance_apikey SET revoked_at = now() WHERE id = %s", [world.alice.key.id])
    run_jobs()
    olivia = Contract(key=world.olivia.key.text)
    assert [job["error"]["code"] for job in olivia.get("jobs/").json["results"]] == ["forbidden"]
    assert olivia.list_contents() == []


def test_a_failed_job_is_run_again_on_request_and_no_other(
    alice: Contract, olivia: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    olivia.add("Here I live.")
    job_id = promise(alice, namespace="/users/olivia")
    assert alice.post(f"jobs/{job_id}/retry/").status == 409
    run_jobs()
    superuser().execute("UPDATE vault_namespace SET owner_id = NULL, kind = 'shared' WHERE path = '/users/olivia'")
    again = alice.post(f"jobs/{job_id}/retry/")
    assert (again.status, again.json["status"], again.json["error"]) == (202, "pending", None)
    run_jobs()
    assert alice.get(f"jobs/{job_id}/").json["status"] == "succeeded"
    assert alice.post(f"jobs/{job_id}/retry/").status == 409
    assert "Later." in alice.list_contents()


def test_input_of_a_job_is_deleted_after_success_or_seven_days(alice: Contract, superuser: Superuser) -> None:
    stored, failed = promise(alice), promise(alice, persona="nobody")
    run_jobs()
    assert _request(superuser, stored) == b""
    jobs_tidy()
    assert _request(superuser, failed) != b""
    superuser().execute("UPDATE governance_job SET kept_until = kept_until - interval '7 days'")
    assert jobs_tidy_task() == 1
    assert _request(superuser, failed) == b""
    assert alice.post(f"jobs/{failed}/retry/").status == 202
    run_jobs()
    assert alice.get(f"jobs/{failed}/").json["error"]["detail"] == "The memories of this job were erased."


def test_a_failed_job_says_which_fields_were_at_fault(alice: Contract) -> None:
    job_id = promise(alice, persona="nobody")
    run_jobs()
    error = alice.get(f"jobs/{job_id}/").json["error"]
    assert (error["code"], [fault["field"] for fault in error["errors"]]) == ("unknown_persona", ["persona"])


def test_a_job_acts_in_the_context_of_its_request(alice: Contract, superuser: Superuser) -> None:
    headers = {"x_memory_purpose": "billing", "x_memory_session": "s-1", "x_memory_task": "t-1"}
    headers["x_request_id"] = "the-request"
    assert alice.post("memories/?async=true", {"content": "Later."}, **headers).status == 202
    run_jobs()
    told = superuser().execute("SELECT context FROM governance_auditentry WHERE verb = 'memory.created'").fetchone()
    assert told is not None
    assert told[0] == {
        "channel": "worker",
        "purpose": "billing",
        "session": "s-1",
        "task": "t-1",
        "address": "127.0.0.1",
        "causes": ["the-request"],
    }


@pytest.mark.parametrize("revoked", [False, True])
def test_a_job_that_may_not_is_in_the_audit_log(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser, revoked: bool
) -> None:
    olivia.add("Here I live.")
    job_id = promise(alice, namespace="/users/olivia")
    if revoked:
        superuser().execute("UPDATE governance_apikey SET revoked_at = now() WHERE id = %s", [world.alice.key.id])
    run_jobs()
    denied = superuser().execute(
        "SELECT principal_id, member_id, detail->>'path' FROM governance_auditentry WHERE outcome = 'denied'"
    )
    assert denied.fetchall() == [(world.alice.key.id, world.alice.member.id, f"jobs/{job_id}/")]


# What a job needs is not there


def test_a_job_that_cannot_be_done_now_holds_up_no_other(alice: Contract, superuser: Superuser) -> None:
    """A sealed request that was tampered with cannot be opened."""
    broken, whole = promise(alice), promise(alice, content="Fine.")
    _tamper(superuser, broken)
    run_jobs()
    assert alice.get(f"jobs/{broken}/").json["status"] == "running"
    assert alice.get(f"jobs/{whole}/").json["status"] == "succeeded"


def test_a_job_whose_work_was_given_up_has_failed_and_can_be_run_again(alice: Contract, superuser: Superuser) -> None:
    job_id = promise(alice)
    request = _tamper(superuser, job_id)
    superuser().execute("UPDATE governance_outboxevent SET attempts = %s", [MAX_ATTEMPTS])
    run_jobs()
    job = alice.get(f"jobs/{job_id}/").json
    assert (job["status"], job["error"]["code"]) == ("failed", "unavailable")
    superuser().execute("UPDATE governance_job SET sealed_request = %s", [request])
    assert alice.post(f"jobs/{job_id}/retry/").status == 202
    run_jobs()
    assert alice.get(f"jobs/{job_id}/").json["status"] == "succeeded"
    assert outbox_health().parked == 0


def test_a_job_that_was_given_up_is_done_when_its_work_is_resumed(
    world: World, alice: Contract, superuser: Superuser
) -> None:
    job_id = promise(alice)
    request = _tamper(superuser, job_id)
    superuser().execute("UPDATE governance_outboxevent SET attempts = %s", [MAX_ATTEMPTS])
    run_jobs()
    superuser().execute("UPDATE governance_job SET sealed_request = %s", [request])
    assert events_resume(actor=world.olivia.actor) == 1
    run_jobs()
    job = alice.get(f"jobs/{job_id}/").json
    assert (job["status"], job["error"]) == ("succeeded", None)


def test_a_job_that_was_left_running_by_dead_letter_work_can_be_run_again(
    alice: Contract, superuser: Superuser
) -> None:
    """A worker was killed between parking the event and telling the job."""
    job_id = promise(alice)
    superuser().execute("UPDATE governance_job SET status = 'running'")
    assert alice.post(f"jobs/{job_id}/retry/").status == 409
    superuser().execute("UPDATE governance_outboxevent SET parked_at = now()")
    assert alice.post(f"jobs/{job_id}/retry/").json["status"] == "pending"
    run_jobs()
    assert alice.list_contents() == ["Later."]


def test_running_a_job_again_under_a_key_happens_once(alice: Contract) -> None:
    job_id = promise(alice, persona="nobody")
    run_jobs()
    first = alice.post(f"jobs/{job_id}/retry/", idempotency_key="k")
    run_jobs()
    again = alice.post(f"jobs/{job_id}/retry/", idempotency_key="k")
    assert (first.status, first.json) == (again.status, again.json)
    assert alice.get(f"jobs/{job_id}/").json["status"] == "failed"
    assert alice.post(f"jobs/{job_id}/retry/", {"x": 1}, idempotency_key="k").status == 422


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


def test_missing_job_is_not_found(alice: Contract) -> None:
    assert alice.get(f"jobs/{MISSING}/").status == 404
    assert alice.post(f"jobs/{MISSING}/retry/").status == 404


def _request(superuser: Superuser, job_id: str) -> bytes:
    row = superuser().execute("SELECT sealed_request FROM governance_job WHERE id = %s", [job_id]).fetchone()
    assert row is not None
    return bytes(row[0])


def _tamper(superuser: Superuser, job_id: str) -> bytes:
    """Change what the job should store; what it was."""
    request = _request(superuser, job_id)
    changed = request[:-1] + bytes([request[-1] ^ 1])
    superuser().execute("UPDATE governance_job SET sealed_request = %s WHERE id = %s", [changed, job_id])
    return request
