"""The web server's handler: a request has one thread, which is kept; a stream goes on there until its reader goes."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.core import signals
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import override_settings
from django.urls import path, reverse

from governance.transport import READER_LEFT
from memos_web import handler as handler_module
from memos_web.callers import NOBODY
from memos_web.embedded.health_check import HealthCheck
from memos_web.handler import MOST_AT_WORK, ThreadedHandler
from memos_web.slots import Slots

seen: list[str] = []


def _note(what: str) -> None:
    seen.append(f"{what} {threading.get_ident()}")


def plain(request: HttpRequest) -> HttpResponse:
    _note("view")
    return HttpResponse(request.body)


def together(request: HttpRequest) -> HttpResponse:
    barrier.wait(5)
    return HttpResponse(b"")


class Steps:
    """Yields for ever; each step, and the end, in the request's own thread."""

    def __aiter__(self) -> "Steps":
        return self

    async def __anext__(self) -> bytes:
        await sync_to_async(_note, thread_sensitive=True)("step")
        return b"."

    def close(self) -> None:
        _note("close")


class Waits:
    """Waits in its thread for as long as somebody reads."""

    def __aiter__(self) -> "Waits":
        return self

    async def __anext__(self) -> bytes:
        await sync_to_async(self._wait, thread_sensitive=True)()
        return b"."

    @staticmethod
    def _wait() -> None:
        _note("waits")
        left = READER_LEFT.get()
        assert left is not None
        _note("left" if left.wait(10) else "never left")


def wait(request: HttpRequest) -> HttpResponseBase:
    return StreamingHttpResponse(Waits())


def stream(request: HttpRequest) -> HttpResponseBase:
    _note("view")
    return StreamingHttpResponse(Steps())


def address(request: HttpRequest) -> HttpResponse:
    return HttpResponse(reverse("plain"))


def held(request: HttpRequest) -> HttpResponse:
    _note("view")
    release.wait(10)
    return HttpResponse(b"")


def answer_valid_key(request: HttpRequest) -> HttpResponse:
    """Knows the key until it is revoked."""
    if keys_revoked.is_set():
        return HttpResponse(status=401)
    request.caller = SimpleNamespace(actor=SimpleNamespace(tenant_id=TENANT))  # type: ignore[attr-defined]
    return HttpResponse(b"")


def fails(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("on purpose")


urlpatterns = [
    path("healthz", plain),
    path("plain", plain, name="plain"),
    path("stream", stream),
    path("wait", wait),
    path("together", together),
    path("address", address),
    path("held", held),
    path("api/held", held),
    path("api/keyed", answer_valid_key),
    path("fails", fails),
]
release = threading.Event()
keys_revoked = threading.Event()
TENANT = uuid4()
barrier = threading.Barrier(2)


@pytest.fixture
def handler() -> Iterator[ThreadedHandler]:
    seen.clear()
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[]):
        yield ThreadedHandler()


async def _ask(
    handler: ThreadedHandler, where: str, *, body: bytes = b"", parts: int = 0, root_path: str = "", key: str = ""
) -> list[dict[str, Any]]:
    """Return the messages sent for a request; the reader leaves after `parts` parts of the body, if given."""
    arriving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    arriving.put_nowait({"type": "http.request", "body": body, "more_body": False})
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if parts and len(sent) > parts:
            arriving.put_nowait({"type": "http.disconnect"})

    scope = {"type": "http", "method": "POST", "path": where, "query_string": b"", "headers": []}
    scope["root_path"] = root_path
    if key:
        scope["headers"] = [(b"authorization", f"Bearer {key}".encode())]
    await handler(scope, arriving.get, send)
    return sent


def test_the_body_reaches_the_view_and_its_answer_the_caller(handler: ThreadedHandler) -> None:
    start, end = asyncio.run(_ask(handler, "/plain", body=b"heron"))
    assert (start["status"], end["body"]) == (200, b"heron")


def test_requests_that_follow_each_other_have_the_same_thread(handler: ThreadedHandler) -> None:
    for _ in range(3):
        asyncio.run(_ask(handler, "/plain"))
    assert len(set(seen)) == 1
    assert str(threading.get_ident()) not in seen[0]


def test_requests_at_once_have_threads_of_their_own(handler: ThreadedHandler) -> None:
    async def both() -> list[int]:
        answers = await asyncio.gather(_ask(handler, "/together"), _ask(handler, "/together"))
        return [answer[0]["status"] for answer in answers]

    assert asyncio.run(both()) == [200, 200]


def test_no_more_requests_are_at_work_than_there_are_connections(handler: ThreadedHandler) -> None:
    async def many() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(MOST_AT_WORK + 5):
                group.create_task(_ask(handler, "/plain"))

    asyncio.run(many())
    assert len(seen) == MOST_AT_WORK + 5
    assert len({entry.split(" ", 1)[1] for entry in seen}) <= MOST_AT_WORK
    assert len(handler._idle) <= MOST_AT_WORK


async def _ask_while_full(handler: ThreadedHandler, *wheres: str) -> list[int]:
    """The status of each address while other networks' requests hold all slots."""
    for network in range(MOST_AT_WORK):
        await handler._at_work.take(f"network {network}", quick=1)
    return [(await _ask(handler, where))[0]["status"] for where in wheres]


def test_health_check_is_answered_while_all_slots_are_taken(
    handler: ThreadedHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler._at_work, "_seconds", 0.01)
    assert asyncio.run(_ask_while_full(handler, "/healthz", "/plain")) == [200, 503]


def test_health_check_fails_where_no_request_has_ended_for_long(
    handler: ThreadedHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_module, "STUCK_SECONDS", 0.0)
    assert asyncio.run(_ask(handler, "/healthz"))[0]["status"] == 200
    assert asyncio.run(_ask_while_full(handler, "/healthz")) == [503]


@pytest.mark.parametrize(("answer", "is_good"), [(b"HTTP/1.1 200 OK\r\n", True), (b"HTTP/1.1 503 Busy\r\n", False)])
def test_supervisor_takes_a_process_that_answers_503_for_silent(
    tmp_path: Path, answer: bytes, *, is_good: bool
) -> None:
    check = HealthCheck(tmp_path / "web")
    ours, check.connection = socket.socketpair()
    with ours:
        ours.send(answer)
        check.is_silent()
    assert (check.last_answer is not None) is is_good


def test_a_stream_goes_on_in_its_requests_thread_and_is_closed_there_when_the_reader_goes(
    handler: ThreadedHandler,
) -> None:
    asyncio.run(_ask(handler, "/stream", parts=3))
    names = [entry.split(" ", 1) for entry in seen]
    assert [what for what, _ in names][:3] == ["view", "step", "step"]
    assert names[-1][0] == "close"
    assert len({thread for _, thread in names}) == 1


def test_calls_of_a_stream_end_when_its_reader_leaves(handler: ThreadedHandler) -> None:
    async def leave() -> None:
        arriving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        arriving.put_nowait({"type": "http.request", "body": b"", "more_body": False})

        async def send(_: dict[str, Any]) -> None:
            return

        asking = asyncio.create_task(
            handler({"type": "http", "method": "GET", "path": "/wait", "headers": []}, arriving.get, send)
        )
        while not seen:
            await asyncio.sleep(0)
        arriving.put_nowait({"type": "http.disconnect"})
        await asking

    asyncio.run(leave())
    assert [entry.split(" ", 1)[0] for entry in seen] == ["waits", "left"]


def test_what_a_request_holds_is_given_back_in_its_thread(handler: ThreadedHandler) -> None:
    """Django gives a connection back on this signal, and a connection belongs to its thread."""

    def note_end(**_: Any) -> None:
        _note("finished")

    signals.request_finished.connect(note_end)
    try:
        asyncio.run(_ask(handler, "/plain"))
        asyncio.run(_ask(handler, "/stream", parts=1))
    finally:
        signals.request_finished.disconnect(note_end)
    assert len({entry.split(" ", 1)[1] for entry in seen}) == 1
    assert sum(entry.startswith("finished") for entry in seen) == 2


def test_an_error_of_a_view_is_an_answer(handler: ThreadedHandler) -> None:
    (start, *_) = asyncio.run(_ask(handler, "/fails"))
    assert start["status"] == 500


def test_a_reader_who_goes_before_the_body_has_come_is_not_answered(handler: ThreadedHandler) -> None:
    async def disconnect() -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await handler({"type": "http", "method": "GET", "path": "/plain", "headers": []}, receive, send)
        return sent

    assert asyncio.run(disconnect()) == []
    assert seen == []
    assert not handler._idle, "no thread waited for the body"


def test_the_prefix_that_the_server_is_mounted_at_reaches_the_view(handler: ThreadedHandler) -> None:
    (_, end) = asyncio.run(_ask(handler, "/memos/address", root_path="/memos"))
    assert end["body"] == b"/memos/plain"


def test_the_thread_of_a_request_that_was_cancelled_serves_no_other(handler: ThreadedHandler) -> None:
    async def cancel_request() -> None:
        held = asyncio.create_task(_ask(handler, "/held"))
        while not seen:
            await asyncio.sleep(0)
        held.cancel()
        with suppress(asyncio.CancelledError):
            await held
        assert not handler._idle
        await _ask(handler, "/plain")

    try:
        asyncio.run(cancel_request())
    finally:
        release.set()
    assert len({entry.split(" ", 1)[1] for entry in seen}) == 2


@pytest.mark.parametrize("where", ["/held", "/api/held"])
def test_requests_above_bound_and_queue_are_refused_with_503(
    handler: ThreadedHandler, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async def many() -> list[list[dict[str, Any]]]:
        handler._at_work = Slots(2, each=2, queue=3, seconds=0.2)
        at_work = [asyncio.create_task(_ask(handler, where)) for _ in range(2)]
        while len(seen) < 2:
            await asyncio.sleep(0)
        refused = await asyncio.gather(*(_ask(handler, where) for _ in range(5)))  # two at once, three after a wait
        release.set()
        await asyncio.gather(*at_work)
        assert (await _ask(handler, "/plain"))[0]["status"] == 200, "slots come back"
        return refused

    release.clear()
    answers = asyncio.run(many())
    assert {answer[0]["status"] for answer in answers} == {503}
    assert all((b"retry-after", b"2") in answer[0]["headers"] for answer in answers)
    assert (b'"code": "busy"' in answers[0][1]["body"]) is where.startswith("/api/")
    assert sum(entry.startswith("view") for entry in seen) == 3


def test_a_request_in_the_queue_is_served_when_another_ends(handler: ThreadedHandler) -> None:
    async def two() -> list[int]:
        handler._at_work = Slots(1, each=1, queue=1, seconds=10)
        first = asyncio.create_task(_ask(handler, "/held"))
        while not seen:
            await asyncio.sleep(0)
        second = asyncio.create_task(_ask(handler, "/plain"))
        await asyncio.sleep(0)
        release.set()
        return [(await task)[0]["status"] for task in (first, second)]

    release.clear()
    assert asyncio.run(two()) == [200, 200]


def test_streams_leave_the_slots_of_requests_and_are_bounded(handler: ThreadedHandler) -> None:
    async def streams() -> list[int]:
        handler._at_work, handler._streams = Slots(1, each=1), Slots(1, each=1)
        first = asyncio.create_task(_ask(handler, "/stream", parts=200))
        while "step" not in "".join(seen):
            await asyncio.sleep(0)
        second = (await _ask(handler, "/stream", parts=1))[0]["status"]
        return [(await first)[0]["status"], second, (await _ask(handler, "/plain"))[0]["status"]]

    assert asyncio.run(streams()) == [200, 503, 200]


def test_key_answered_401_stands_for_its_tenant_no_longer(handler: ThreadedHandler) -> None:
    scope = {"path": "/api/keyed", "headers": [(b"authorization", b"Bearer one")]}
    keys_revoked.clear()
    asyncio.run(_ask(handler, "/api/keyed", key="one"))
    assert handler._callers.caller_of(scope) == f"tenant {TENANT}"
    keys_revoked.set()
    (start, *_) = asyncio.run(_ask(handler, "/api/keyed", key="one"))
    assert start["status"] == 401
    assert handler._callers.caller_of(scope) == NOBODY


def test_only_http_is_served(handler: ThreadedHandler) -> None:
    with pytest.raises(ValueError, match="websocket"):
        asyncio.run(handler({"type": "websocket"}, None, None))
