"""Calls with as much text as a call may have: what its words are is found out before any transaction waits for it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from governance import child_process
from governance.database import acting
from governance.errors import Unavailable
from governance.keys.services import TokenMaker
from governance.privacy.pii.detector import Detector, DetectorFailed, PatternDetector
from tests.factories import World
from tests.harness.processes import is_alive
from tests.harness.product import wait_until
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.api import memories
from vault.chat import plans
from vault.content.bulk_insert import insert_batches
from vault.cubes import services
from vault.cubes.writer import builder, prepared_texts, text_process
from vault.index.terms import MemoryTexts, TextIndex, text_index
from vault.listing.bulk import BulkAction, BulkArguments, bulk_apply, bulk_rehearse
from vault.models import Cube
from vault.reader.rules import read_statements
from vault.reviews import services as reviewing
from vault.screening import screen
from vault.screening.texts import Place, Texts, find_places
from vault.vocabulary import PiiField

TEXTS = [f"Number {number} met a heron, the otter and 水獭 in 20{number:02}." for number in range(9)]


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each text whether it was read within a transaction."""
    read: list[bool] = []

    def note_transaction(maker: TokenMaker, words: MemoryTexts) -> TextIndex:
        read.append(connection.in_atomic_block)
        return text_index(maker, words)

    def noted_places(detector: Detector, texts: Texts, fields: Iterable[PiiField]) -> list[Place]:
        read.append(connection.in_atomic_block)
        return find_places(detector, texts, fields)

    def noted_statements(text: str, *, speaker: str, said_at: datetime) -> Any:
        read.append(connection.in_atomic_block)
        return read_statements(text, speaker=speaker, said_at=said_at)

    monkeypatch.setattr(plans, "read_statements", noted_statements)

    monkeypatch.setattr(builder, "text_index", note_transaction)
    monkeypatch.setattr(prepared_texts, "text_index", note_transaction)
    monkeypatch.setattr(prepared_texts, "find_places", noted_places)
    monkeypatch.setattr(reviewing, "find_places", noted_places)
    monkeypatch.setattr(builder, "find_places", noted_places)
    monkeypatch.setattr(screen, "find_places", noted_places)
    return read


def test_the_texts_of_a_bulk_call_are_read_before_its_transaction(alice: Contract, within: list[bool]) -> None:
    assert alice.post("memories/bulk/", {"items": [{"content": text} for text in TEXTS]}).status == 201
    again = [{"content": f"{text} Again."} for text in TEXTS]
    assert alice.post("memories/bulk/?dry_run=true", {"items": again}).json["count"] == len(TEXTS)
    assert within == [False] * len(TEXTS) * 4  # for its words, and for personal data


def test_those_of_a_conversation_and_of_a_job_too(alice: Contract, within: list[bool]) -> None:
    body = {"messages": [{"role": "user", "name": "Ann", "content": text} for text in TEXTS], "infer": False}
    assert alice.post("memories/", {**body, "session_id": "a"}).status == 201
    assert alice.post("memories/?async=true", {**body, "session_id": "b"}).status == 202
    run_jobs()
    assert set(within) == {False}
    assert len(alice.search("heron otter", top_k=100, min_score=0.01)) == len(TEXTS) * 2


def test_the_texts_of_a_change_are_read_before_its_transaction(alice: Contract, within: list[bool]) -> None:
    memory = alice.add(TEXTS[0])
    within.clear()
    body = {"content": f"{TEXTS[1]} Call 13800138000.", "tags": ["heron"]}
    assert alice.patch(f"memories/{memory['id']}/", body, if_match='"1"').status == 200
    assert within == [False] * 2
    assert [hit["content"] for hit in alice.search("Number 1", min_score=0.01)] == [body["content"]]


def test_texts_that_changed_since_they_were_read_are_read_again(
    alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another change came between: `If-Match` may name several versions."""
    memory = alice.add(TEXTS[0])
    read = services.prepare_changed_texts

    @contextmanager
    def read_then_change(**arguments: Any) -> Iterator[None]:
        with read(**arguments):
            monkeypatch.setattr(memories, "prepare_changed_texts", read)
            body = {"content": "A walrus, call 13800138000."}
            assert alice.patch(f"memories/{memory['id']}/", body, if_match='"1"').status == 200
            yield

    monkeypatch.setattr(memories, "prepare_changed_texts", read_then_change)
    body = {"title": "On walruses"}
    assert alice.patch(f"memories/{memory['id']}/", body, if_match='"1", "2"').status == 200
    assert [hit["id"] for hit in alice.search("walrus", min_score=0.01)] == [memory["id"]]
    assert alice.search("heron", min_score=0.01) == []


def test_texts_of_other_changes_are_read_before_their_transactions(alice: Contract, within: list[bool]) -> None:
    """Rolled back for a reason, moved, restored."""
    memory = alice.add(TEXTS[0])
    address = f"memories/{memory['id']}/"
    assert alice.patch(address, {"content": TEXTS[1]}, if_match='"1"').status == 200
    within.clear()
    assert alice.post(f"{address}rollback/", {"version": 1, "reason": "Ann asked for it."}).status == 200
    assert within == [False] * 3, "for its words, for personal data, and for that in the reason"
    assert alice.post(f"{address}move/", {"namespace": "/elsewhere"}).status == 200
    assert alice.delete(address).status == 204
    assert alice.post(f"{address}restore/").status == 200
    assert (len(within), set(within)) == (6, {False})
    assert [hit["content"] for hit in alice.search("Number 0", min_score=0.01)] == [TEXTS[0]]


@pytest.mark.parametrize("action", ["tag", "move", "expire", "restore"])
def test_texts_of_many_at_once_are_read_before_their_transaction(
    alice: Contract, world: World, within: list[bool], action: str
) -> None:
    """Those that keep their words and place are not read: only a new tag is, with its memory locked."""
    ids = [UUID(alice.add(text)["id"]) for text in TEXTS]
    actor = world.alice.actor
    if action == "restore":
        bulk_apply(actor=actor, action=BulkAction.DELETE, chosen=dict.fromkeys(ids), arguments=BulkArguments())
    within.clear()
    arguments = BulkArguments(tags=("heron",), namespace="/elsewhere")
    for call in (bulk_rehearse, bulk_apply):
        outcome = call(actor=actor, action=BulkAction(action), chosen=dict.fromkeys(ids), arguments=arguments)
        assert len(outcome.done) == len(ids)
    assert (within.count(False) >= 2 * len(ids)) is (action in {"move", "restore"})
    assert sum(within) == (2 * len(ids) if action == "tag" else 0)


@pytest.mark.parametrize("is_checked", [True, False])
def test_texts_of_a_redaction_are_read_before_its_transaction(
    alice: Contract, within: list[bool], monkeypatch: pytest.MonkeyPatch, is_checked: bool
) -> None:
    with monkeypatch.context() as broken:
        if not is_checked:
            broken.setattr(PatternDetector, "find", _fail)
        memory = alice.add("Ann met a heron, call 13800138000.")
    (review,) = alice.get("reviews/").json["results"]
    within.clear()
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 200
    assert within[0] is False
    assert sum(within) == (0 if is_checked else 1), "what only the check found is left out in the transaction"
    assert "13800138000" not in alice.get(f"memories/{memory['id']}/").json["content"]


def _fail(*_: object) -> None:
    raise DetectorFailed


def test_the_texts_of_a_turn_are_read_before_its_transaction(alice: Contract, within: list[bool]) -> None:
    alice.add(TEXTS[0])
    within.clear()
    conversation = alice.post("conversations/", {}).json["id"]
    question = f"My heron is called Ann. {'It flies. ' * 1_000}Where did number 0 meet a heron?"
    assert alice.post(f"conversations/{conversation}/turns/", {"content": question}).status == 201
    assert set(within) == {False}


def test_what_was_read_before_is_what_would_have_been(
    alice: Contract, charlie: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Titles, tags, speakers, and a text that comes twice."""
    items: list[dict[str, object]] = [{"content": text, "title": "On otters", "tags": ["a"]} for text in TEXTS]
    items.append({"messages": [{"role": "user", "name": "Ann", "content": TEXTS[0]}], "infer": False})
    items.append(items[0])

    def replies(who: Contract) -> list[object]:
        assert who.post("memories/bulk/", {"items": items}).status == 201
        questions = ("heron", "Ann", "otters", "水獭", "3", "Number 4")
        return [
            [(memory["content"], memory["score"], memory["keywords"]) for memory in who.search(asked)]
            for asked in questions
        ]

    plainly = replies(alice)
    monkeypatch.setattr(builder, "LARGE_CALL", 0)
    assert replies(charlie) == plainly


def test_large_texts_are_read_again_when_their_process_was_killed(
    alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder, "LARGE_CALL", 0)
    assert text_process.run_in_text_process(os.getpid) != os.getpid()
    os.kill(text_process.run_in_text_process(os.getpid), signal.SIGKILL)
    assert alice.post("memories/", {"content": TEXTS[0]}).status == 201
    assert len(alice.search("heron", min_score=0.01)) == 1


def read_for_a_minute(_maker: TokenMaker, _drafts: Any) -> None:
    time.sleep(60)


def find_process() -> int:
    return os.getpid()


def test_a_text_that_takes_too_long_ends_with_503_and_the_next_is_read(
    alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder, "LARGE_CALL", 0)
    text_process.run_in_text_process(find_process)  # it has started, and imported this module
    with monkeypatch.context() as slow:
        slow.setattr(text_process.PROCESS, "seconds", 3.0)
        slow.setattr(builder, "read_texts", read_for_a_minute)
        reply = alice.post("memories/", {"content": TEXTS[0]})
    assert reply.status == 503
    assert reply.json["detail"] == "The texts of this call took too long to read. Send fewer at once."
    assert alice.post("memories/", {"content": TEXTS[0]}).status == 201


def test_a_process_whose_code_lets_no_signal_in_is_ended() -> None:
    with pytest.raises(Unavailable, match="has ended"):
        text_process.run_in_text_process(child_process._run_limited, sum, (range(10**12),), 0.1, 0)


def test_the_process_that_reads_texts_ends_with_its_web_process() -> None:
    code = "import os, sys; from vault.cubes.writer import text_process"
    code += "; print(text_process.run_in_text_process(os.getpid))"
    code += "; sys.stdout.flush(); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as web:
        assert web.stdout is not None
        reader = int(web.stdout.readline())
        assert is_alive(reader)
        web.kill()
    wait_until(lambda: not is_alive(reader), seconds=10)


def test_more_words_than_one_statement_takes_are_written_in_several(
    alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "POSTINGS_AT_ONCE", 20)
    assert alice.post("memories/bulk/", {"items": [{"content": text} for text in TEXTS]}).status == 201
    assert {hit["content"] for hit in alice.search("heron", min_score=0.01, top_k=100)} == set(TEXTS)


def test_what_is_written_in_several_statements_is_stored_whole_or_not(
    alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "POSTINGS_AT_ONCE", 20)
    written: list[int] = []

    def failing(*arguments: Any) -> None:
        written.append(len(arguments))
        if len(written) == 3:
            raise Unavailable("The third statement fails.")
        insert_batches(*arguments)

    monkeypatch.setattr(services, "insert_batches", failing)
    assert alice.post("memories/bulk/", {"items": [{"content": text} for text in TEXTS]}).status == 503
    assert len(written) == 3
    assert alice.search("heron", top_k=100) == []


def test_a_sign_that_stands_for_four_words_does_not_make_a_text_many_times_as_long(
    world: World, alice: Contract
) -> None:
    content = "\ufdfa " * 1_500
    memory = alice.add(content)
    with acting(world.alice.actor):
        assert 0 < Cube.objects.get(id=memory["id"]).term_count < len(content)
    short = alice.add("ﷺ ten")
    assert short["id"] in {hit["id"] for hit in alice.search("ﷺ", min_score=0.01)}
