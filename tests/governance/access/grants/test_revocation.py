"""Revoked is revoked, and expired is over: with the next request, in what waits, and in what is being streamed."""

import json
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import psycopg
import pytest
from django.test import Client, override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memos_web.config import LlmChoice
from tests.factories import World
from tests.governance.access.grants.test_grants import FACT, give_grant, sees
from tests.governance.web.visitors import signed_in
from tests.harness.evidence import Evidence
from tests.vault.api.contract import Contract
from tests.vault.chat.test_model import PATH, chunk
from tests.vault.outbox import run_jobs
from vault.chat.services import Token, turn_begin, turn_stream
from vault.chat.stream_checks import ASKED_EVERY

pytestmark = pytest.mark.full

Superuser = Callable[[], psycopg.Connection]
QUESTION = "Where does the otter sleep?"


@pytest.fixture
def memory_id(alice: Contract) -> str:
    """A private memory of alice's."""
    memory_id: str = alice.add(FACT)["id"]
    run_jobs()
    return memory_id


@pytest.mark.parametrize("object_type", ["memory", "namespace"])
@pytest.mark.parametrize("seconds", [-1, 0])
def test_a_grant_opens_nothing_from_its_end_on(
    world: World, alice: Contract, bob: Contract, memory_id: str, superuser: Superuser, object_type: str, seconds: int
) -> None:
    """By the database's clock, with nothing that runs: at the very moment, and after."""
    namespace_id = alice.get(f"memories/{memory_id}/").json["namespace"]["id"]
    object_id = memory_id if object_type == "memory" else namespace_id
    give_grant(alice, world, "bob", object_type, object_id, expires_at="2099-01-01T00:00:00Z")
    assert sees(bob, memory_id) == (True,) * 4
    table = "vault_cubegrant" if object_type == "memory" else "vault_namespacegrant"
    superuser().execute(f"UPDATE {table} SET expires_at = now() + make_interval(secs => %s)".encode(), [seconds])
    assert sees(bob, memory_id) == (False,) * 4
    assert bob.get("memories/").json["count"] == 0


def test_a_denial_ends_by_the_same_clock(
    world: World, olivia: Contract, alice: Contract, bob: Contract, superuser: Superuser
) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    run_jobs()
    give_grant(olivia, world, "bob", "memory", memory_id, effect="deny", expires_at="2099-01-01T00:00:00Z")
    assert sees(bob, memory_id) == (False,) * 4
    superuser().execute("UPDATE vault_cubegrant SET expires_at = now()")
    assert sees(bob, memory_id) == (True,) * 4


def test_a_queued_job_has_the_rights_of_when_it_runs(
    world: World, olivia: Contract, bob: Contract, superuser: Superuser
) -> None:
    namespace_id = olivia.add("Shared.", namespace="/team")["namespace"]["id"]
    grant = give_grant(olivia, world, "bob", "namespace", namespace_id, action="write")
    body = {"content": "Written too late.", "namespace": "/team"}
    promised = bob.post("memories/?async=true", body)
    assert promised.status == 202
    olivia.delete(f"grants/{grant['id']}/")
    run_jobs()
    job = bob.get(f"jobs/{promised.json['job']['id']}/").json
    assert (job["status"], job["error"]["code"]) == ("failed", "forbidden")
    assert olivia.list_contents() == ["Shared."]
    denied = "SELECT detail->>'permission' FROM governance_auditentry WHERE outcome = 'denied'"
    assert superuser().execute(denied).fetchall() == [("memory.create",)]


def test_a_reply_that_is_repeated_after_a_revocation_is_not(world: World, olivia: Contract, bob: Contract) -> None:
    namespace_id = olivia.add("Shared.", namespace="/team")["namespace"]["id"]
    grant = give_grant(olivia, world, "bob", "namespace", namespace_id, action="write")
    body = {"content": "Once.", "namespace": "/team"}
    assert bob.post("memories/", body, idempotency_key="k").status == 201
    olivia.delete(f"grants/{grant['id']}/")
    assert bob.post("memories/", body, idempotency_key="k").status == 403


def revoke_and_read(world: World, giver: Contract, reader: Contract, rounds: int) -> tuple[int, int]:
    """Give, take away, write, read: how many requests after the revocation, and how many of them showed something."""
    memory = giver.add(FACT)
    run_jobs()
    address, asked, shown = f"memories/{memory['id']}/", 0, 0
    for number in range(rounds):
        object_type = ("memory", "namespace")[number % 2]
        object_id = memory["id"] if object_type == "memory" else memory["namespace"]["id"]
        grant = give_grant(giver, world, "bob", object_type, object_id, action=("read", "write")[number // 2 % 2])
        assert reader.get(address).status == 200
        assert giver.delete(f"grants/{grant['id']}/").status == 204
        version = giver.patch(address, {"content": f"{FACT} Otter {number}."}, if_match="*")
        assert version.status == 200
        run_jobs()
        replies = [
            reader.get(address),
            reader.get("memories/"),
            reader.get(address + "versions/"),
            reader.get(address + "provenance/"),
            reader.get(address + "?provenance=true"),
            reader.patch(address, {"title": "mine"}, if_match="*"),
            reader.post("memories/search/", {"query": "otter weir"}),
            reader.post("memories/search/", {"query": f"otter {number}", "mode": "dense"}),
        ]
        asked += len(replies)
        shown += sum(b"otter" in reply.body.lower() for reply in replies)
    return asked, shown


def test_the_next_request_after_a_revocation_reads_nothing(
    world: World, alice: Contract, bob: Contract, full_size: bool, evidence: Evidence
) -> None:
    rounds = 100 if full_size else 4
    asked, shown = revoke_and_read(world, alice, bob, rounds)
    assert shown == 0
    figures = {"revocations": rounds, "requests after them": asked, "that showed something": shown}
    evidence(row=11, name="next-request", figures=figures)


def test_revocation_without_effect_is_detected(
    world: World, alice: Contract, bob: Contract, superuser: Superuser
) -> None:
    """The mutant: what was granted stays, whatever the reply says."""
    superuser().execute(
        "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; "
        "CREATE TRIGGER stay BEFORE DELETE ON vault_cubegrant FOR EACH ROW EXECUTE FUNCTION stay()"
    )
    asked, shown = revoke_and_read(world, alice, bob, 1)
    assert 0 < shown <= asked


@pytest.mark.parametrize("ended", ["role", "membership"])
def test_an_export_asked_for_before_is_not_had_after(
    world: World, olivia: Contract, ada: Contract, superuser: Superuser, ended: str
) -> None:
    """Neither is one that waits written, nor one that is ready given out."""
    ready = ada.post("audit/export/", {}).json["id"]
    run_jobs()
    assert ada.get(f"audit/export/{ready}/file/").status == 200
    waiting = ada.post("audit/export/", {}).json["id"]
    address = f"members/{world.ada.member.id}/"
    took = olivia.patch(address, {"role": "viewer"}) if ended == "role" else olivia.delete(address)
    assert took.status in {200, 204}
    assert ada.get(f"audit/export/{ready}/file/").status == (403 if ended == "role" else 401)
    run_jobs()
    status = superuser().execute("SELECT status FROM governance_job WHERE id = %s", [waiting]).fetchone()
    assert status == ("failed",)


@pytest.fixture
def slow_model(httpserver: HTTPServer) -> Iterator[Event]:
    """A model that says one piece, waits until the event is set and a little longer, and goes on for long."""
    go_on = Event()

    def pieces() -> Iterator[str]:
        yield f"data: {json.dumps(chunk('The otter '))}\n\n"
        go_on.wait(20)
        Event().wait(ASKED_EVERY + 0.1)
        for number in range(50):
            yield f"data: {json.dumps(chunk(f'sleeps {number} '))}\n\n"
        yield f"data: {json.dumps(chunk())}\n\ndata: [DONE]\n\n"

    def handler(request: Request) -> Response:
        return Response(pieces(), mimetype="text/event-stream")

    httpserver.expect_request(PATH).respond_with_handler(handler)
    choice = LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")
    with override_settings(MEMOS_LLM=choice):
        yield go_on
        go_on.set()


def test_a_stream_is_cut_within_a_second_of_the_revocation(
    world: World,
    alice: Contract,
    bob: Contract,
    memory_id: str,
    slow_model: Event,
    full_size: bool,
    evidence: Evidence,
) -> None:
    grant = give_grant(alice, world, "bob", "memory", memory_id)
    conversation = bob.post("conversations/", {}).json["id"]
    plan = turn_begin(actor=world.bob.actor, conversation_id=conversation, content=QUESTION)
    assert [str(citation.memory_id) for citation in plan.citations] == [memory_id]
    stream = turn_stream(plan=plan)
    first = next(stream)
    assert isinstance(first, Token)
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    revoked = time.monotonic()
    slow_model.set()
    with pytest.raises(Exception, match="may no longer be read"):
        next(stream)
    cut_after = time.monotonic() - revoked
    if full_size:  # beside other tests the machine's own slowness would be measured
        assert cut_after <= 1
    evidence(row=11, name="stream", figures={"cut after seconds": round(cut_after, 3)})
    assert bob.get(f"conversations/{conversation}/turns/").json["count"] == 0


def test_cut_stream_is_reported_to_the_reader_and_in_the_audit_log(
    world: World, alice: Contract, bob: Contract, memory_id: str, slow_model: Event, superuser: Superuser
) -> None:
    give_grant(alice, world, "bob", "memory", memory_id)
    conversation = bob.post("conversations/", {}).json["id"]
    database = superuser()
    database.execute(
        "CREATE FUNCTION take_back() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
        "$$ BEGIN DELETE FROM vault_cubegrant; RETURN NEW; END $$"
    )
    database.execute(  # the grant goes in the moment in which what was found for the answer is committed
        "CREATE TRIGGER take_back AFTER INSERT ON governance_auditentry FOR EACH ROW "
        "WHEN (NEW.verb = 'memory.searched') EXECUTE FUNCTION take_back()"
    )
    slow_model.set()
    events = bob.stream(f"conversations/{conversation}/turns/", {"content": QUESTION})
    assert [event.name for event in events] == ["token", "error"]
    assert events[-1].data["code"] == "forbidden"
    denied = "SELECT detail->>'rule' FROM governance_auditentry WHERE outcome = 'denied'"
    assert database.execute(denied).fetchall() == [("revoked",)]


@pytest.mark.parametrize(
    "ended", ["UPDATE governance_apikey SET revoked_at = now()", "UPDATE governance_member SET removed_at = now()"]
)
def test_a_stream_ends_with_the_key_and_with_the_membership(
    world: World, alice: Contract, bob: Contract, slow_model: Event, superuser: Superuser, ended: str
) -> None:
    alice.add(FACT, namespace="/team")
    run_jobs()
    conversation = bob.post("conversations/", {}).json["id"]
    plan = turn_begin(actor=world.bob.key_actor(), conversation_id=conversation, content=QUESTION)
    stream = turn_stream(plan=plan)
    next(stream)
    superuser().execute(ended.encode())
    slow_model.set()
    with pytest.raises(Exception, match="may no longer"):
        next(stream)


def test_what_is_denied_leaves_no_trace_in_a_score(
    world: World, olivia: Contract, alice: Contract, bob: Contract
) -> None:
    """Two worlds that differ only in memories that bob may not read give him the same numbers."""

    def list_scores() -> list[Any]:
        return [
            (hit["content"], hit["score"], hit["score_parts"])
            for hit in bob.search("Where does Zelda see the otter sleep?", explain=True)
        ]

    for text in ("The otter swims at noon.", "The heron waits by the weir.", "Zelda feeds the otter."):
        alice.add(text, namespace="/team", session_id="s")
    run_jobs()
    before = list_scores()
    messages = [{"role": "user", "name": "Zelda", "content": f"The otter, the otter {n}."} for n in range(9)]
    body = {"messages": messages, "infer": False, "session_id": "s2", "namespace": "/team"}
    hidden = [memory["id"] for memory in alice.post("memories/", body).json["results"]]
    run_jobs()
    assert list_scores() != before
    for memory_id in hidden:
        give_grant(olivia, world, "bob", "memory", memory_id, effect="deny")
    assert list_scores() == before
    assert bob.search("Zelda", mode="graph") == bob.search("Zelda", mode="graph", top_k=3)


def test_denials_do_not_starve_a_search(world: World, olivia: Contract, alice: Contract, bob: Contract) -> None:
    """Ninety of a hundred are denied: the ten others are all found, the nearest among them first."""
    items = [{"content": f"The otter number {n} sleeps.", "namespace": "/team"} for n in range(100)]
    added = alice.post("memories/bulk/", {"items": items}).json["results"]
    run_jobs()
    for result in added[:90]:
        give_grant(olivia, world, "bob", "memory", result["memory"]["id"], effect="deny")
    open_to_bob = {result["memory"]["id"] for result in added[90:]}
    for mode in ("hybrid", "dense", "lexical"):
        found = [memory["id"] for memory in bob.search("otter number sleeps", mode=mode, top_k=10)]
        assert set(found) == open_to_bob, mode


def test_a_page_that_was_open_asks_again(world: World, alice: Contract, memory_id: str) -> None:
    browser: Client = signed_in(world.bob)
    grant = give_grant(alice, world, "bob", "memory", memory_id)
    assert browser.get(f"/memories/{memory_id}/").status_code == 200
    alice.delete(f"grants/{grant['id']}/")
    assert browser.get(f"/memories/{memory_id}/").status_code == 404
