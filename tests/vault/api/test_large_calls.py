"""Calls with as much text as a call may have: what its words are is found out before any transaction waits for it."""

from typing import Any

import pytest
from django.db import connection

from governance.database import acting
from governance.errors import Unavailable
from governance.keys.services import TokenMaker
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.cubes import building, services
from vault.cubes.inserting import insert_together
from vault.cubes.rules import TextIndex, Worded, text_index
from vault.models import Cube

TEXTS = [f"Number {number} met a heron, the otter and 水獭 in 20{number:02}." for number in range(9)]


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Every call is a large one; for each text whether it was read within a transaction."""
    read: list[bool] = []

    def noted(maker: TokenMaker, words: Worded) -> TextIndex:
        read.append(connection.in_atomic_block)
        return text_index(maker, words)

    monkeypatch.setattr(building, "text_index", noted)
    monkeypatch.setattr(building, "LARGE_CALL", 0)
    return read


def test_the_texts_of_a_bulk_call_are_read_before_its_transaction(alice: Contract, within: list[bool]) -> None:
    assert alice.post("memories/bulk/", {"items": [{"content": text} for text in TEXTS]}).status == 201
    again = [{"content": f"{text} Again."} for text in TEXTS]
    assert alice.post("memories/bulk/?dry_run=true", {"items": again}).json["count"] == len(TEXTS)
    assert within == [False] * len(TEXTS) * 2


def test_those_of_a_conversation_and_of_a_job_too(alice: Contract, within: list[bool]) -> None:
    body = {"messages": [{"role": "user", "name": "Ann", "content": text} for text in TEXTS], "infer": False}
    assert alice.post("memories/", {**body, "session_id": "a"}).status == 201
    assert alice.post("memories/?async=true", {**body, "session_id": "b"}).status == 202
    run_jobs()
    assert within == [False] * len(TEXTS) * 2
    assert len(alice.search("heron otter", top_k=100, min_score=0.01)) == len(TEXTS) * 2


def test_what_was_read_before_is_what_would_have_been(
    alice: Contract, charlie: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Titles, tags, speakers, and a text that comes twice."""
    items: list[dict[str, object]] = [{"content": text, "title": "On otters", "tags": ["a"]} for text in TEXTS]
    items.append({"messages": [{"role": "user", "name": "Ann", "content": TEXTS[0]}], "infer": False})
    items.append(items[0])

    def told(who: Contract) -> list[object]:
        assert who.post("memories/bulk/", {"items": items}).status == 201
        questions = ("heron", "Ann", "otters", "水獭", "3", "Number 4")
        return [[(one["content"], one["score"], one["keywords"]) for one in who.search(asked)] for asked in questions]

    plainly = told(alice)
    monkeypatch.setattr(building, "LARGE_CALL", 0)
    assert told(charlie) == plainly


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
        insert_together(*arguments)

    monkeypatch.setattr(services, "insert_together", failing)
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
