"""Turns become pages of a stream: in order, none lost and none doubled, whoever writes at once and whatever dies."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.db import connection, connections

from governance.database import acting
from governance.models import Persona
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import Task
from governance.outbox.runner import task_run
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.layers.placement import TO_PLACE
from vault.layers.services import memories_add
from vault.models import Cube, Page, Segment, Stream
from vault.reader.services import Message, messages_read
from vault.vocabulary import MessageRole, PageLayer

THREADS, ADDS = 8, 40


class Killed(BaseException):
    """The process ends here."""


def exchange(number: int, session: str = "s") -> list[CubeDraft]:
    messages = [
        Message(role=MessageRole.USER, content=f"Question number {number} about the garden?", message_id=f"q{number}"),
        Message(role=MessageRole.ASSISTANT, content=f"Answer number {number}.", message_id=f"a{number}"),
    ]
    return messages_read(messages, infer=True, common=CubeDraft(content="", namespace="/team", session_id=session))


def pages(world: World) -> list[Page]:
    with acting(world.alice.actor):
        return list(Page.objects.order_by("stream_id", "position").defer("vector"))


@contextmanager
def killed_at(statement: int) -> Iterator[list[int]]:
    """End the process, so to speak, at one of the statements; counts them all."""
    count = [0]

    def execute(run: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        count[0] += 1
        if count[0] == statement:
            raise Killed
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        yield count


def test_threads_adding_to_one_stream_leave_every_page_in_order(world: World) -> None:
    actor = world.alice.actor

    def work(thread: int) -> None:
        for number in range(ADDS):
            memories_add(actor=actor, drafts=exchange(thread * ADDS + number))
        connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    run_jobs()
    found = pages(world)
    assert [page.position for page in found] == list(range(1, THREADS * ADDS + 1))
    assert [page.layer for page in found[-7:]] == [PageLayer.SHORT_TERM] * 7
    assert {page.layer for page in found[:-7]} == {PageLayer.MID_TERM}
    with acting(actor):
        ids = [item for page in found for item in (page.query_id, page.response_id) if item]
        order = {cube.id: cube.position for cube in Cube.objects.filter(id__in=ids)}
        assert [order[memory_id] for memory_id in ids] == list(range(2 * THREADS * ADDS))
        assert not Page.objects.filter(TO_PLACE).exists()
        placed = Page.objects.exclude(segment=None).count()
        assert sum(Segment.objects.values_list("pages", flat=True)) == placed == THREADS * ADDS - 7


def test_turn_killed_at_any_statement_loses_no_page_and_doubles_none(world: World) -> None:
    actor = world.alice.actor
    memories_add(actor=actor, drafts=exchange(0))
    with killed_at(0) as count:
        memories_add(actor=actor, drafts=exchange(1))
    statements = count[0]
    assert statements > 10
    for statement in range(1, statements + 1):
        with suppress(Killed), killed_at(statement):
            memories_add(actor=actor, drafts=exchange(1 + statement))
        connection.close()
        before = len(pages(world))
        memories_add(actor=actor, drafts=exchange(1 + statement))  # the caller repeats what was not answered
        assert len(pages(world)) - before in {0, 1}
    found = pages(world)
    assert [page.position for page in found] == list(range(1, statements + 3))
    assert len({page.query_id for page in found}) == statements + 2


def test_job_killed_at_any_statement_places_each_page_once(world: World) -> None:
    actor = world.alice.actor
    for number in range(12):
        memories_add(actor=actor, drafts=exchange(number))

    def take(task: Task) -> None:
        task_run(task)

    for statement in itertools.count(1):
        with suppress(Killed), killed_at(statement) as reached:
            dispatch_once(take)
        connection.close()
        if reached[0] < statement:  # the run ended before it
            break
        with acting(actor), connection.cursor() as cursor:
            cursor.execute("UPDATE governance_outboxevent SET available_at = now(), lease = NULL, attempts = 0")
    run_jobs()
    with acting(actor):
        assert not Page.objects.filter(TO_PLACE).exists()
        assert sum(Segment.objects.values_list("pages", flat=True)) == 5
        assert Page.objects.exclude(segment=None).count() == 5
    assert statement > 20


def test_answer_sent_by_itself_completes_the_page_that_waits(world: World) -> None:
    actor = world.alice.actor
    question, answer = exchange(1)
    memories_add(actor=actor, drafts=[question])
    memories_add(actor=actor, drafts=[answer])
    memories_add(actor=actor, drafts=[exchange(2)[1]])
    assert [(page.query_id is None, page.response_id is None) for page in pages(world)] == [
        (False, False),
        (True, False),
    ]


def test_message_sent_twice_is_one_page(world: World) -> None:
    for _ in range(2):
        memories_add(actor=world.alice.actor, drafts=exchange(1))
    assert len(pages(world)) == 1


def test_page_goes_with_its_memory_and_its_segment_forgets_it(world: World, alice: Contract) -> None:
    actor = world.alice.actor
    for number in range(9):
        memories_add(actor=actor, drafts=exchange(number))
    run_jobs()
    with acting(actor):
        first = Page.objects.get(position=1)
        segment = Segment.objects.get()
        assert segment.pages == 2
    assert alice.delete(f"memories/{first.query_id}/?purge=true").status == 204
    with acting(actor):
        left = Segment.objects.get(id=segment.id)
        assert (left.pages, left.unpromoted, left.vector, left.keywords) == (1, 1, None, {})
        assert not Page.objects.filter(position=1).exists()


def test_changed_words_are_read_again(world: World, alice: Contract) -> None:
    actor = world.alice.actor
    for number in range(9):
        memories_add(actor=actor, drafts=exchange(number))
    run_jobs()
    with acting(actor):
        before = Page.objects.get(position=2)
    reply = alice.patch(f"memories/{before.query_id}/", {"content": "The volcano erupted at dawn."}, if_match='"1"')
    assert reply.status == 200
    run_jobs()
    with acting(actor):
        after = Page.objects.get(position=2)
        assert after.keywords != before.keywords
        assert after.read_versions == [2, 1]
        assert (after.segment_id, after.score) == (before.segment_id, before.score)
        assert before.score is not None
        assert Segment.objects.get().pages == 2


def test_turn_of_a_chat_is_a_page_of_its_persona(world: World, alice: Contract) -> None:
    conversation = alice.post("conversations/", {}).json["id"]
    assert alice.post(f"conversations/{conversation}/turns/", {"content": "Where is the heron?"}).status == 201
    with acting(world.alice.actor):
        (stream,) = Stream.objects.all()
        assert stream.persona_id == Persona.objects.get(member_id=world.alice.member.id).id
        assert Page.objects.filter(stream=stream, query__isnull=False, response__isnull=False).count() == 1


@pytest.mark.parametrize("infer", [False])
def test_messages_that_are_not_inferred_feed_no_stream(world: World, alice: Contract, infer: bool) -> None:
    body = {"messages": [{"role": "user", "content": "Only stored."}], "session_id": "s", "infer": infer}
    assert alice.post("memories/", body).status == 201
    assert pages(world) == []
