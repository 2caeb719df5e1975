"""A turn as server-sent events."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
from asgiref.sync import async_to_sync
from django.db import OperationalError

from governance.actor import Actor, system_actor
from governance.errors import Forbidden
from tests.factories import World
from vault.chat.services import Done, Token, TurnEvent
from vault.providers.ports import ProviderUnavailable
from vault.streams import EventStream, event_response

NOBODY = system_actor(tenant_id=UUID(int=1), request_id="request-of-a-test")


def encode(event: TurnEvent) -> tuple[str, dict[str, Any]]:
    assert isinstance(event, Token)
    return "token", {"text": event.text}


def stream_of(events: Iterator[TurnEvent], actor: Actor = NOBODY) -> EventStream:
    return EventStream(events, encode, actor=actor, path="/turns/")


def read(stream: EventStream) -> bytes:
    async def all_of_it() -> bytes:
        return b"".join([block async for block in stream])

    return async_to_sync(all_of_it)()


def test_each_event_is_a_block_with_a_name_and_one_line_of_json() -> None:
    stream = stream_of(iter([Token("a\nb"), Token("茶")]))
    assert read(stream).decode() == ('event: token\ndata: {"text": "a\\nb"}\n\nevent: token\ndata: {"text": "茶"}\n\n')


def test_a_failing_provider_is_the_last_event() -> None:
    def events() -> Iterator[TurnEvent]:
        yield Token("half")
        raise ProviderUnavailable("The model server did not answer in time.")

    body = read(stream_of(events())).decode()
    assert body.count("event: ") == 2
    assert body.endswith(
        'event: error\ndata: {"code": "provider_unavailable", "detail": "The model server did not answer in time."}\n\n'
    )


def test_stream_error_may_be_explained_in_the_readers_language() -> None:
    def events() -> Iterator[TurnEvent]:
        yield Token("half")
        raise ProviderUnavailable("The model server did not answer in time.")

    stream = EventStream(events(), encode, actor=NOBODY, path="/turns/", explain=lambda failure: f"说：{failure.code}")
    assert '"detail": "说：provider_unavailable"' in read(stream).decode()


def test_a_database_that_goes_away_is_an_error_event_without_its_words() -> None:
    def events() -> Iterator[TurnEvent]:
        yield Token("half")
        raise OperationalError("server closed the connection: host 10.0.0.7")

    body = read(stream_of(events())).decode()
    assert '"code": "unavailable"' in body
    assert "10.0.0.7" not in body


def test_a_deadlock_is_a_conflict() -> None:
    def events() -> Iterator[TurnEvent]:
        yield Token("half")
        raise OperationalError from psycopg.errors.DeadlockDetected()

    assert '"code": "conflict"' in read(stream_of(events())).decode()


def test_denial_during_a_stream_is_in_the_audit_log(world: World, superuser: Callable[[], psycopg.Connection]) -> None:
    def events() -> Iterator[TurnEvent]:
        yield Token("half")
        raise Forbidden("No more.", permission="conversation.use", rule="revoked")

    body = read(stream_of(events(), world.alice.actor)).decode()
    assert '"code": "forbidden"' in body
    denied = "SELECT principal_id, detail->>'path' FROM governance_auditentry WHERE outcome = 'denied'"
    assert superuser().execute(denied).fetchall() == [(world.alice.member.id, "/turns/")]


def test_closing_it_tells_the_events_that_nobody_listens() -> None:
    told: list[str] = []

    def events() -> Iterator[TurnEvent]:
        try:
            yield Token("one")
            yield Token("two")
        finally:
            told.append("closed")

    response = event_response(events(), encode, actor=NOBODY, path="/turns/")

    async def read_one() -> None:
        await anext(aiter(response))

    async_to_sync(read_one)()
    assert told == []
    response.close()
    assert told == ["closed"]


def test_nothing_on_the_way_may_hold_it_back() -> None:
    response = event_response(iter(list[Token | Done]()), encode, actor=NOBODY, path="/turns/")
    assert response["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response["Cache-Control"] == "no-cache"
    assert response["X-Accel-Buffering"] == "no"
    response.close()
