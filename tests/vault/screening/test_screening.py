"""Tests of screening in every kind of write: personal data is allowed, flagged, redacted or refused."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import psycopg
import pytest
from django.test import override_settings

from governance.database import acting
from governance.keys.services import open_sealed
from governance.models import AuditEntry, IdempotencyKey, Job
from governance.policies.rules import PiiRule
from governance.vocabulary import PiiAction, PiiKind, Verb
from tests.factories import World
from tests.governance.privacy.failing_detectors import FAILING
from tests.governance.tables import read_all_rows
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.content.words import words_open
from vault.models import Conversation, CubeVersion, PiiFinding, Review
from vault.screening.screen import Screen

Superuser = Callable[[], psycopg.Connection]
PHONE, MAIL, CARD = "13812345678", "li.lei@example.cn", "4111111111111111"
VALUES = (PHONE, MAIL, CARD)
TEXT = f"打{PHONE}找小李，邮箱{MAIL}，卡号{CARD}。"
CLEAN = "打[phone]找小李，邮箱[email]，卡号[card]。"


@pytest.fixture
def redacting() -> Iterator[None]:
    with override_settings(PII_ACTION="redact"):
        yield


@pytest.fixture
def refusing() -> Iterator[None]:
    with override_settings(PII_ACTION="refuse"):
        yield


def open_everything(world: World) -> str:
    """Open all sealed fields of acme into one text."""
    with acting(world.olivia.actor):
        parts = [
            *(_open_words(row) for row in CubeVersion.objects.all()),
            *(_open_field(row, "sealed_request", b"job" + row.id.bytes) for row in Job.objects.all()),
            *(_open_field(row, "sealed_result", b"job" + row.id.bytes) for row in Job.objects.all()),
            *(_open_field(row, "sealed_title", b"conversation" + row.id.bytes) for row in Conversation.objects.all()),
            *(
                _open_field(row, "sealed_reply", b"idempotency" + row.principal_id.bytes + row.key.encode())
                for row in IdempotencyKey.objects.all()
            ),
        ]
    return "\n".join(parts)


def _open_field(row: Any, name: str, place: bytes) -> str:
    blob = bytes(getattr(row, name) or b"")
    text = (open_sealed(tenant_id=row.tenant_id, place=place, blob=blob) or b"").decode() if blob else ""
    return json.dumps(json.loads(text), ensure_ascii=False) if text.startswith(("{", "[")) else text


def _open_words(row: CubeVersion) -> str:
    words = words_open(tenant_id=row.tenant_id, cube_id=row.cube_id, number=row.number, blob=row.sealed)
    return json.dumps(asdict(words), ensure_ascii=False)


def test_flagged_text_is_stored_with_its_places_and_reviewed(world: World, alice: Contract) -> None:
    memory = alice.add(TEXT, title=f"Mail {MAIL}", metadata={"contact": {"phone": 13812345678}, "n": [1, MAIL]})
    assert memory["content"] == TEXT
    with acting(world.alice.actor):
        rows = list(PiiFinding.objects.order_by("field", "leaf", "begins"))
        assert [(row.field, row.kind, row.begins, row.ends) for row in rows] == [
            ("content", "phone", 1, 12),
            ("content", "email", 18, 35),
            ("content", "card", 38, 54),
            ("metadata", "phone", 0, 11),
            ("metadata", "email", 0, 17),
            ("title", "email", 5, 22),
        ]
        assert {(row.detector, row.status) for row in rows} == {("patterns/2", "open")}
        review = Review.objects.get()
        assert (str(review.cube_id), review.status, review.kind) == (memory["id"], "open", "pii")
        entry = AuditEntry.objects.get(verb=Verb.MEMORY_CREATED)
        assert entry.detail == {"pii_found": 6}


def test_a_finding_never_holds_the_value(alice: Contract, superuser: Superuser) -> None:
    alice.add(TEXT, metadata={MAIL: PHONE})
    clear = "\n".join(row for rows in read_all_rows(superuser()).values() for row in rows)
    assert [value for value in VALUES if value in clear] == []


def test_allowed_personal_data_leaves_no_finding(world: World, alice: Contract) -> None:
    with override_settings(PII_ACTION="allow"):
        assert alice.add(TEXT)["content"] == TEXT
    with acting(world.alice.actor):
        assert not PiiFinding.objects.exists()
        assert not Review.objects.exists()


def add_content(client: Contract) -> None:
    body = {"content": TEXT, "title": MAIL, "tags": [PHONE], "metadata": {MAIL: [PHONE, 13812345678]}}
    reply = client.post("memories/", body, idempotency_key="once")
    memory = reply.json["results"][0]
    assert (memory["content"], memory["title"], memory["tags"]) == (CLEAN, "[email]", ["[phone]"])
    assert memory["metadata"] == {"[email]": ["[phone]", "[phone]"]}
    assert client.post("memories/", body, idempotency_key="once").body == reply.body


def add_messages(client: Contract) -> None:
    messages = [{"role": "user", "name": MAIL, "content": f"我叫小李。{TEXT}", "message_id": "1"}]
    reply = client.post("memories/", {"messages": messages, "session_id": "s"}, idempotency_key="messages")
    assert {memory["speaker"] for memory in reply.json["results"]} == {"[email]"}


def add_bulk(client: Contract) -> None:
    reply = client.post("memories/bulk/", {"items": [{"content": TEXT}, {"content": "nothing"}]}, idempotency_key="b")
    assert [row["memory"]["content"] for row in reply.json["results"]] == [CLEAN, "nothing"]


def change_content(client: Contract) -> None:
    memory = client.add("Nothing yet.")
    changed = client.patch(f"memories/{memory['id']}/", {"content": TEXT, "metadata": {"m": MAIL}}, if_match='"1"')
    assert (changed.json["content"], changed.json["metadata"]) == (CLEAN, {"m": "[email]"})


def add_by_job(client: Contract) -> None:
    reply = client.post("memories/?async=true", {"content": TEXT}, idempotency_key="later")
    assert reply.status == 202


def add_turn(client: Contract) -> None:
    conversation = client.post("conversations/", {"title": f"About {CARD}"}).json
    assert conversation["title"] == "About [card]"
    address = f"conversations/{conversation['id']}/turns/"
    turn = client.post(address, {"content": TEXT}, idempotency_key="turn").json
    assert turn["question"] == CLEAN
    untitled = client.post("conversations/", {}).json["id"]
    client.post(f"conversations/{untitled}/turns/", {"content": TEXT})


WAYS = [add_content, add_messages, add_bulk, change_content, add_by_job, add_turn]


@pytest.mark.parametrize("write", WAYS)
def test_redacted_value_is_in_no_row(
    write: Callable[[Contract], None], world: World, alice: Contract, superuser: Superuser, redacting: None
) -> None:
    write(alice)
    for _ in range(2):  # before its jobs, and after
        opened = open_everything(world)
        clear = "\n".join(row for rows in read_all_rows(superuser()).values() for row in rows)
        assert [value for value in VALUES if value in opened or value in clear] == []
        run_jobs()
    assert "[phone]" in open_everything(world)
    with override_settings(PII_ACTION="allow"):
        for value in VALUES:  # its token is not stored either
            assert (
                alice.post("memories/search/", {"query": value, "mode": "lexical", "min_score": 0.01}).json["results"]
                == []
            )


def test_canaries_are_detected_where_they_are_stored(world: World, alice: Contract) -> None:
    """The check of `test_redacted_value_is_in_no_row` finds values that were stored."""
    alice.post("memories/", {"content": TEXT, "title": MAIL}, idempotency_key="once")
    assert [value for value in VALUES if value not in open_everything(world)] == []
    assert alice.search(PHONE, mode="lexical") != []


def test_same_redacted_text_added_twice_is_one_memory(alice: Contract, redacting: None) -> None:
    first = alice.add(TEXT)
    again = alice.post("memories/", {"content": TEXT})
    assert (again.status, again.json["results"][0]["id"]) == (200, first["id"])


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", "memories/", {"content": TEXT}, "content"),
    ("POST", "memories/", {"content": "x", "title": MAIL, "namespace": "/new"}, "title"),
    ("POST", "memories/", {"content": "x", "metadata": {"a": {"b": PHONE}}}, "metadata"),
    ("POST", "memories/", {"messages": [{"role": "user", "content": TEXT}]}, "content"),
    ("POST", "memories/?async=true", {"content": TEXT}, "content"),
    ("POST", "memories/bulk/", {"items": [{"content": "x"}, {"content": TEXT}]}, "items.1.content"),
    ("POST", "conversations/", {"title": CARD}, "title"),
]


@each_case(("method", "address", "body", "field"), REFUSED)
def test_refused_text_leaves_no_row_and_is_not_repeated(
    method: str, address: str, body: dict[str, Any], field: str, alice: Contract, superuser: Superuser, refusing: None
) -> None:
    before = read_all_rows(superuser())
    reply = alice.send(method, address, body, idempotency_key="refused")
    assert (reply.status, reply.code) == (400, "pii_refused")
    assert {fault["field"] for fault in reply.json["errors"]} == {field}
    assert [value for value in VALUES if value.encode() in reply.body] == []
    assert read_all_rows(superuser()) == before


def test_refused_change_and_question_leave_all_rows(alice: Contract, superuser: Superuser, refusing: None) -> None:
    memory = alice.add("Nothing.")
    conversation = alice.post("conversations/", {}).json["id"]
    before = read_all_rows(superuser())
    changed = alice.patch(f"memories/{memory['id']}/", {"content": TEXT}, if_match='"1"')
    asked = alice.post(f"conversations/{conversation}/turns/", {"content": TEXT})
    assert [(reply.status, reply.code) for reply in (changed, asked)] == [(400, "pii_refused")] * 2
    after = read_all_rows(superuser())
    assert {name for name in after if after[name] != before[name]} <= {"governance_auditentry"}


def test_answer_loses_a_quoted_value_that_is_redacted(world: World, alice: Contract) -> None:
    """If new personal data is refused, answers keep no copy of older content."""
    memory_id = alice.add(f"Li Lei's card is {CARD}.")["id"]
    run_jobs()
    with override_settings(PII_ACTION="refuse"):
        conversation = alice.post("conversations/", {}).json["id"]
        turn = alice.post(f"conversations/{conversation}/turns/", {"content": "What is Li Lei's card?"}).json
    assert CARD in turn["content"]
    alice.post(f"memories/{memory_id}/redact/", {"version": 1})
    assert CARD not in alice.get(f"conversations/{conversation}/turns/").body.decode()


@pytest.mark.parametrize("action", ["redact", "refuse"])
def test_unchecked_text_is_not_stored_under_redact_and_refuse(
    alice: Contract, superuser: Superuser, action: str
) -> None:
    memory = alice.add("Nothing.")
    conversation = alice.post("conversations/", {}).json["id"]
    before = read_all_rows(superuser())
    with override_settings(PII_ACTION=action, PII_DETECTOR=FAILING):
        replies = [
            alice.post("memories/", {"content": "harmless"}),
            alice.post("memories/", {"messages": [{"role": "user", "content": "harmless"}]}),
            alice.post("memories/?async=true", {"content": "harmless"}),
            alice.post("memories/bulk/", {"items": [{"content": "harmless"}]}),
            alice.post("conversations/", {"title": "harmless"}),
            alice.post(f"conversations/{conversation}/turns/", {"content": "harmless"}),
            alice.patch(f"memories/{memory['id']}/", {"content": "harmless"}, if_match='"1"'),
        ]
    assert {(reply.status, reply.code) for reply in replies} == {(503, "pii_unavailable")}
    after = read_all_rows(superuser())
    assert {name for name in after if after[name] != before[name]} <= {"governance_auditentry"}


def test_unchecked_text_is_flagged_under_flag(world: World, alice: Contract) -> None:
    with override_settings(PII_DETECTOR=FAILING):
        memory = alice.add(TEXT)
    with acting(world.alice.actor):
        row = PiiFinding.objects.get()
        assert (row.kind, row.begins, row.ends, row.detector) == ("unchecked", 0, 0, "failing/1")
        review = Review.objects.get()
    with override_settings(PII_DETECTOR=FAILING):
        still = alice.post(f"reviews/{review.id}/accept/", {})
        assert (still.status, still.code) == (503, "pii_unavailable")
    assert alice.post(f"reviews/{review.id}/accept/", {}).status == 200
    assert alice.get(f"memories/{memory['id']}/").json["content"] == CLEAN


def test_kinds_with_different_actions_are_treated_differently(world: World) -> None:
    rule = PiiRule(PiiAction.FLAG, {PiiKind.PHONE: PiiAction.REDACT, PiiKind.EMAIL: PiiAction.ALLOW})
    with acting(world.alice.actor):
        draft, screened = Screen(world.alice.actor, lambda **_: rule).screen_draft(CubeDraft(content=TEXT), "/x")
    assert draft.content == TEXT.replace(PHONE, "[phone]")
    (finding,) = screened.findings
    span = finding.place.span
    assert (span.kind, draft.content[span.start : span.end]) == (PiiKind.CARD, CARD)


def test_change_of_a_field_keeps_the_decisions_about_other_fields(world: World, alice: Contract) -> None:
    memory = alice.add(TEXT, title=MAIL)
    (review,) = alice.get("reviews/").json["results"]
    assert alice.post(f"reviews/{review['id']}/reject/").status == 200
    address = f"memories/{memory['id']}/"
    assert alice.patch(address, {"importance": 0.9}, if_match='"1"').status == 200
    assert alice.get("reviews/").json["count"] == 0
    assert alice.patch(address, {"title": f"new: {MAIL}"}, if_match='"2"').status == 200
    (review,) = alice.get("reviews/").json["results"]
    by_field = {(finding["field"], finding["status"]) for finding in review["findings"]}
    assert by_field == {("content", "rejected"), ("title", "open")}
    assert alice.patch(address, {"sensitivity": "public"}, if_match='"3"').status == 200
    (review,) = alice.get("reviews/").json["results"]  # in another place all of it is new
    assert {finding["status"] for finding in review["findings"]} == {"open"}


def test_memory_moved_to_where_redaction_applies_is_redacted(alice: Contract) -> None:
    memory = alice.add(TEXT)
    with override_settings(PII_ACTION="redact"):
        moved = alice.patch(f"memories/{memory['id']}/", {"namespace": "/team"}, if_match='"1"')
    assert moved.json["content"] == CLEAN
