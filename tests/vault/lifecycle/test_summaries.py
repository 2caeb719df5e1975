"""Summaries: chosen by a job, opened for each reader, and without a copy of any text."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer

from governance.actor import system_actor
from governance.database import acting
from governance.ids import uuid7
from governance.jobs.kinds import JobRun
from governance.models import AuditEntry
from governance.vocabulary import Verb
from memos_web.config import LlmChoice
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.layers.test_model import replies
from tests.vault.outbox import run_jobs
from vault.lifecycle.summaries import numbers_read, summaries_write
from vault.lifecycle.summary_text import central_sentences, sentence_ranges
from vault.models import Summary

Superuser = Callable[[], psycopg.Connection]
WRITE = {"kind": "summaries.write", "cron": "0 6 * * *"}
HERONS = (
    "The heron nests by the old mill.",
    "The heron hunts by the old mill at dawn.",
    "The old mill has a water wheel.",
    "Invoices are due on Friday.",
    "The heron left the old mill in autumn.",
)


@pytest.fixture
def model(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    with override_settings(MEMOS_LLM=LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")):
        yield httpserver


def add_memories(client: Contract, **fields: Any) -> list[str]:
    return [str(client.add(text, **{"namespace": "/team", **fields})["id"]) for text in HERONS]


def run_job(olivia: Contract, **chosen: Any) -> int:
    """Run the job to its end; how many summaries it wrote."""
    run_jobs()
    made = olivia.post("schedules/", WRITE | {"settings": chosen})
    assert made.status == 201, made
    started = olivia.post(f"schedules/{made.json['id']}/run/", {})
    assert started.status == 202, started
    run_jobs()
    job = olivia.get(f"jobs/{started.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    return int(job["result"]["changed"])


def page_of(world: World, who: str, client: Contract) -> str:
    found = client.get("namespaces/").json["results"]
    place = next(row["id"] for row in found if row["path"] == "/team")
    return signed_in(getattr(world, who)).get(f"/namespaces/{place}/").text


def test_central_sentences_share_terms_with_others_and_repeat_nothing() -> None:
    assert central_sentences([*HERONS, HERONS[0]], 2) == [0, 2]
    assert central_sentences([], 3) == central_sentences(["Yes."], 3) == []


def test_ranges_delimit_the_sentences() -> None:
    text = "Good morning. The heron wades! The heron wades!"
    assert [text[start:end] for start, end in sentence_ranges(text)] == ["Good morning.", *["The heron wades!"] * 2]


def test_namespace_page_begins_with_its_summary(
    world: World, olivia: Contract, alice: Contract, superuser: Superuser
) -> None:
    add_memories(alice)
    assert run_job(olivia, sentences=2) == 1
    for who in ("alice", "bob"):
        page = page_of(world, who, alice)
        assert HERONS[0] in page
        assert HERONS[3] not in page
    kept = superuser().execute("SELECT passages::text FROM vault_summary").fetchall()
    assert "heron" not in str(kept)
    assert run_job(olivia) == 0
    alice.add("The old mill burned down.", namespace="/team")
    assert run_job(olivia) == 1


def test_reader_gets_no_sentence_of_a_deleted_or_private_memory(
    world: World, olivia: Contract, alice: Contract, charlie: Contract, superuser: Superuser
) -> None:
    ids = add_memories(alice)
    run_job(olivia, sentences=5)
    assert HERONS[0] in page_of(world, "bob", alice)
    superuser().execute("UPDATE vault_cube SET access_level = 'private' WHERE id = %s", [ids[0]])
    assert alice.delete(f"memories/{ids[2]}/").status == 204
    page = page_of(world, "bob", alice)
    assert HERONS[0] not in page
    assert HERONS[2] not in page
    assert HERONS[3] in page
    assert HERONS[0] in page_of(world, "alice", alice)
    assert run_job(charlie) == 0
    place = next(
        namespace["id"] for namespace in alice.get("namespaces/").json["results"] if namespace["path"] == "/team"
    )
    assert signed_in(world.charlie).get(f"/namespaces/{place}/").status_code == 404


def test_place_with_few_memories_has_no_summary(olivia: Contract, alice: Contract) -> None:
    alice.add(HERONS[0], namespace="/team")
    assert run_job(olivia) == 0


def test_summaries_are_read_over_rest_by_who_may_and_audited(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    ids = add_memories(alice)
    place = next(
        namespace["id"] for namespace in alice.get("namespaces/").json["results"] if namespace["path"] == "/team"
    )
    address = f"namespaces/{place}/summary/"
    assert bob.get(address).json == {"sentences": [], "memories": 0, "model": None, "made_at": None}
    run_job(olivia, sentences=2)
    shown = bob.get(address).json
    assert [(sentence["text"], sentence["memory_id"]) for sentence in shown["sentences"]] == [
        (HERONS[0], ids[0]),
        (HERONS[2], ids[2]),
    ]
    assert (shown["memories"], shown["model"]) == (5, None)
    with acting(world.bob.actor):
        entry = AuditEntry.objects.filter(verb=Verb.MEMORY_READ, object_ids__contains=[ids[0]]).latest("id")
        assert entry.principal_id == world.bob.key.id
    assert alice.delete(f"memories/{ids[0]}/").status == 204
    assert [sentence["text"] for sentence in bob.get(address).json["sentences"]] == [HERONS[2]]
    assert (charlie.get(address).status, bob.get(address + "?x=1").status) == (404, 400)
    conversation = alice.post("conversations/", {"title": "Herons"}).json["id"]
    for text in HERONS[:3]:
        assert alice.post(f"conversations/{conversation}/turns/", {"content": text}).status == 201
    run_job(olivia)
    assert alice.get(f"conversations/{conversation}/summary/").json["sentences"]
    for client, status in ((olivia, 404), (charlie, 404)):
        assert client.get(f"conversations/{conversation}/summary/").status == status


def test_models_of_the_tenant_choose_before_the_installations(
    olivia: Contract, alice: Contract, charlie: Contract, httpserver: HTTPServer
) -> None:
    asked = replies(httpserver, json.dumps({"sentences": [3]}))
    add_memories(alice)
    charlie.add(HERONS[0])
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        body = {"model": "own", "address": httpserver.url_for("/v1"), "key": "sk-own", "retries": 0}
        assert olivia.post("models/", body).status == 201
        assert run_job(olivia) == 1
        add_memories(charlie)
        assert run_job(charlie) == 1
    assert [row["model"] for row in asked] == ["own"]  # another tenant does not ask it
    place = next(
        namespace["id"] for namespace in alice.get("namespaces/").json["results"] if namespace["path"] == "/team"
    )
    shown = alice.get(f"namespaces/{place}/summary/").json
    assert ([sentence["text"] for sentence in shown["sentences"]], shown["model"]) == ([HERONS[3]], "tiny-1")


def test_conversation_shows_its_summary_to_its_member_only(world: World, olivia: Contract, alice: Contract) -> None:
    conversation = alice.post("conversations/", {"title": "Herons"}).json["id"]
    for text in HERONS[:3]:
        assert alice.post(f"conversations/{conversation}/turns/", {"content": text}).status == 201
    assert run_job(olivia) >= 1
    assert 'class="panel-head"><h2>Summary</h2>' in signed_in(world.alice).get(f"/chat/{conversation}/").text
    assert signed_in(world.bob).get(f"/chat/{conversation}/").status_code == 404


def test_configured_model_chooses_among_the_sentences(
    world: World, olivia: Contract, alice: Contract, model: HTTPServer
) -> None:
    add_memories(alice)
    replies(model, json.dumps({"sentences": [3, 99]}))
    assert run_job(olivia) == 1
    page = page_of(world, "alice", alice)
    assert HERONS[3] in page
    assert HERONS[0] not in page
    with acting(world.olivia.actor):
        assert Summary.objects.get().model == "tiny-1"


@pytest.mark.parametrize("reply", ["no JSON at all", '{"sentences": "1"}', '{"sentences": [99]}'])
def test_reply_that_cannot_be_read_leaves_the_choice_to_the_terms(
    world: World, olivia: Contract, alice: Contract, model: HTTPServer, reply: str
) -> None:
    add_memories(alice)
    replies(model, reply)
    assert run_job(olivia, sentences=2) == 1
    assert HERONS[0] in page_of(world, "alice", alice)
    with acting(world.olivia.actor):
        assert Summary.objects.get().model == ""


def test_numbers_of_a_reply_are_those_that_were_given() -> None:
    assert numbers_read({"sentences": [4, 1, 1, True, 9]}, 5, 3) == [1, 4]


def test_two_runs_at_once_leave_one_summary(world: World, alice: Contract) -> None:
    add_memories(alice)
    run_jobs()
    system = system_actor(tenant_id=world.acme.id, request_id="test")
    run = JobRun(uuid7(), system, system, {}, {}, 0, None, None, {}, lambda done, total: None)
    writes = [summaries_write(run) for _ in range(2)]
    with acting(system):
        for write in writes:
            assert callable(write)
            write()
        assert Summary.objects.count() == 1


def test_preview_counts_and_editor_and_stranger_may_not(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    add_memories(alice)
    run_jobs()
    schedule = olivia.post("schedules/", WRITE).json["id"]
    previewed = olivia.post(f"schedules/{schedule}/run/?dry_run=true", {})
    assert (previewed.status, previewed.json["count"]) == (200, 1)
    for client, status in ((alice, 403), (bob, 403), (charlie, 404)):
        assert client.post(f"schedules/{schedule}/run/", {}).status == status
    with acting(world.olivia.actor):
        assert not Summary.objects.exists()
