"""POST memories/{id}/transition/ and the same on the pages: a step is a row, and moves what finds the memory."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import override_settings

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.models import Cube, StateTransition
from vault.vocabulary import State

ARCHIVE = {"to": "archived", "reason": "Nobody asks for it any more."}


@pytest.fixture
def heron(alice: Contract) -> str:
    """A memory that everyone in acme may read, found by words and by vector."""
    memory_id = str(alice.add("The heron nests by the mill.", namespace="/team")["id"])
    run_jobs()
    return memory_id


def steps(world: World) -> list[tuple[int, str, str, str]]:
    with acting(world.alice.actor):
        rows = StateTransition.objects.order_by("step")
        return [(row.step, row.from_state, row.to_state, row.reason) for row in rows]


def move_state(client: Contract, memory_id: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    reply = client.post(f"memories/{memory_id}/transition/", body, **headers)
    assert reply.status == 200, reply
    memory: dict[str, Any] = reply.json
    return memory


def test_archived_memory_is_searched_on_request_and_recalled(world: World, alice: Contract, heron: str) -> None:
    memory = move_state(alice, heron, ARCHIVE)
    assert (memory["state"], memory["version"]) == ("archived", 1)
    assert alice.search_contents("heron") == []
    assert alice.search_contents("heron", include_archived=True) == ["The heron nests by the mill."]
    assert move_state(alice, heron, {"to": "activated"})["state"] == "activated"
    run_jobs()
    assert alice.search_contents("heron") == ["The heron nests by the mill."]
    assert alice.get(f"memories/{heron}/").json["pending_embedding"] is False
    assert steps(world) == [
        (1, "generated", "archived", "Nobody asks for it any more."),
        (2, "archived", "activated", ""),
    ]
    with acting(world.alice.actor):
        told = AuditEntry.objects.filter(verb=Verb.MEMORY_TRANSITIONED).order_by("id")
        assert [row.detail for row in told] == [
            {"from": "generated", "to": "archived"},
            {"from": "archived", "to": "activated"},
        ]


@pytest.mark.parametrize("to", ["merged", "expired", "generated"])
def test_illegal_step_is_409_and_names_the_legal_ones(world: World, alice: Contract, heron: str, to: str) -> None:
    reply = alice.post(f"memories/{heron}/transition/", {"to": to})
    assert (reply.status, reply.code) == (409, "illegal_transition")
    assert "activated or archived" in reply.json["detail"]
    assert steps(world) == []


def test_step_to_the_present_state_is_illegal(world: World, alice: Contract, heron: str) -> None:
    move_state(alice, heron, ARCHIVE)
    reply = alice.post(f"memories/{heron}/transition/", ARCHIVE)
    assert (reply.status, reply.code) == (409, "illegal_transition")
    assert len(steps(world)) == 1


def test_reader_and_stranger_change_no_state(
    world: World, alice: Contract, bob: Contract, charlie: Contract, heron: str
) -> None:
    assert bob.post(f"memories/{heron}/transition/", ARCHIVE).status == 403
    assert charlie.post(f"memories/{heron}/transition/", ARCHIVE).status == 404
    assert alice.post(f"memories/{MISSING}/transition/", ARCHIVE).status == 404
    assert steps(world) == []


def test_dry_run_changes_nothing(world: World, alice: Contract, heron: str) -> None:
    reply = alice.post(f"memories/{heron}/transition/?dry_run=true", ARCHIVE)
    assert (reply.status, reply.json["ids"]) == (200, [heron])
    assert alice.post(f"memories/{heron}/transition/?dry_run=true", {"to": "merged"}).status == 409
    assert steps(world) == []
    assert alice.get(f"memories/{heron}/").json["state"] == "generated"


def test_repeated_key_takes_one_step(world: World, alice: Contract, heron: str) -> None:
    first = move_state(alice, heron, ARCHIVE, idempotency_key="once")
    assert move_state(alice, heron, ARCHIVE, idempotency_key="once") == first
    assert len(steps(world)) == 1


def test_old_version_is_412_and_a_hold_423(world: World, alice: Contract, heron: str) -> None:
    reply = alice.post(f"memories/{heron}/transition/", ARCHIVE, if_match='"7"')
    assert (reply.status, reply.code) == (412, "version_conflict")
    assert alice.post(f"memories/{heron}/freeze/", {"reason": "An audit."}).status == 200
    assert alice.post(f"memories/{heron}/transition/", ARCHIVE).status == 423
    assert steps(world) == []


def test_faults_of_the_body_are_named(alice: Contract, heron: str) -> None:
    assert fields_at_fault(alice.post(f"memories/{heron}/transition/", {"to": "asleep"})) == {"to"}
    assert fields_at_fault(alice.post(f"memories/{heron}/transition/", {"reason": "x" * 501})) == {"to", "reason"}


def test_number_of_a_step_is_taken_once(world: World, alice: Contract, heron: str) -> None:
    move_state(alice, heron, ARCHIVE)
    with acting(world.alice.actor):
        row = StateTransition.objects.get()
        row.pk = MISSING
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save(force_insert=True)


def test_steps_go_with_their_memory(world: World, alice: Contract, heron: str) -> None:
    move_state(alice, heron, ARCHIVE)
    assert alice.delete(f"memories/{heron}/?purge=true").status == 204
    assert steps(world) == []


def test_page_archives_after_a_count_and_undo_recalls(world: World, alice: Contract, heron: str) -> None:
    browser = signed_in(world.alice)
    form = {"action": "archive", "id": heron, "next": f"/memories/{heron}/"}
    asked = browser.post("/memories/bulk/", form)
    assert "Archive 1" in asked.text
    assert steps(world) == []
    done = browser.post("/memories/bulk/", form | {"confirmed": "yes", "reason": "Old."}, follow=True)
    assert "Old." in done.text
    assert _state(world, heron) == State.ARCHIVED
    browser.post("/memories/bulk/", {"action": "activate", "id": heron, "confirmed": "yes"})
    assert _state(world, heron) == State.ACTIVATED


def test_page_offers_a_reader_no_step(world: World, heron: str) -> None:
    page = signed_in(world.bob).get(f"/memories/{heron}/")
    assert "The heron nests" in page.text
    assert 'value="archive"' not in page.text


def _state(world: World, memory_id: str) -> str:
    with acting(world.alice.actor):
        return Cube.objects.get(id=memory_id).state


def test_step_of_a_bulk_action_names_its_job(world: World, alice: Contract, heron: str) -> None:
    reply = alice.post("memories/actions/", {"action": "archive", "ids": [heron], "args": {"reason": "Old."}})
    run_jobs()
    with acting(world.alice.actor):
        assert str(StateTransition.objects.get().job_id) == reply.json["job"]["id"]


def test_a_reason_is_as_private_as_the_memory_was_at_the_step(world: World, alice: Contract) -> None:
    memory_id = str(alice.add("The otter sleeps.")["id"])
    move_state(alice, memory_id, ARCHIVE)
    assert alice.post(f"memories/{memory_id}/move/", {"namespace": "/team"}).status == 200
    address = f"/memories/{memory_id}/"
    for headers in ({}, {"HX-Request": "true"}):
        to_bob = signed_in(world.bob).get(address, headers=headers)
        assert to_bob.status_code == 200
        assert ARCHIVE["reason"] not in to_bob.content.decode()
        assert ARCHIVE["reason"] in signed_in(world.alice).get(address, headers=headers).content.decode()


def test_a_reason_goes_with_the_words_of_its_version(world: World, alice: Contract, heron: str) -> None:
    move_state(alice, heron, ARCHIVE)
    assert ARCHIVE["reason"] in signed_in(world.bob).get(f"/memories/{heron}/").content.decode()
    assert alice.post(f"memories/{heron}/redact/", {"version": 1}).status == 200
    assert ARCHIVE["reason"] not in signed_in(world.bob).get(f"/memories/{heron}/").content.decode()


@override_settings(PII_ACTION="refuse")
def test_personal_data_in_a_reason_is_refused(world: World, alice: Contract, heron: str) -> None:
    reason = "ask li.lei@example.cn"
    reply = alice.post(f"memories/{heron}/transition/", {"to": "archived", "reason": reason})
    assert (reply.code, fields_at_fault(reply)) == ("pii_refused", {"reason"})
    reply = alice.post(f"memories/{heron}/freeze/", {"reason": reason})
    assert (reply.code, fields_at_fault(reply)) == ("pii_refused", {"reason"})
    fields = {"version": "1", "content": "New.", "semantic_type": "fact", "sensitivity": "internal", "reason": reason}
    assert signed_in(world.alice).post(f"/memories/{heron}/edit/", fields).status_code == 422
    assert steps(world) == []


@override_settings(PII_ACTION="redact")
def test_personal_data_in_a_reason_is_redacted(world: World, alice: Contract, heron: str) -> None:
    move_state(alice, heron, {"to": "archived", "reason": "ask li.lei@example.cn"})
    assert steps(world) == [(1, "generated", "archived", "ask [email]")]
