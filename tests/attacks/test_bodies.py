"""A body is bounded before it is read, by address and by who sends it, and none of it is written to a file."""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client

from memos_web.bodies import HeldBodies
from memos_web.handler import ThreadedHandler
from memos_web.slots import Busy
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case

KIB = 1024
PART = 64 * KIB
MEMORY = {"content": "A heron stood by the mill."}
HUGE = 400 * KIB * KIB
SENT_AT_MOST = 2 * KIB * KIB  # of a refused body, with what is discarded for the sender's sake


class Sender:
    """Sends a body in parts of 64 KiB; counts what is taken, and the files of this process that have no name."""

    def __init__(self, body: bytes, size: int) -> None:
        self.body, self.size, self.taken, self.files = body, size, 0, 0
        self.before = _nameless_files()

    async def receive(self) -> dict[str, Any]:
        part = (self.body + b" " * PART)[:PART] if self.taken == 0 else b" " * PART
        part = part[: self.size - self.taken]
        self.taken += len(part)
        self.files = max(self.files, _nameless_files() - self.before)
        return {"type": "http.request", "body": part, "more_body": self.taken < self.size}


def _nameless_files() -> int:
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).endswith("(deleted)") for link in links if os.path.islink(link))


@pytest.fixture
def handler(world: World, redis_address: str) -> Iterator[ThreadedHandler]:
    yield ThreadedHandler()
    connections.close_all()


def _send(
    handler: ThreadedHandler,
    path: str,
    size: int,
    *,
    announced: bool = True,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any, Sender]:
    """(status, JSON, sender) of a POST with `size` bytes; not announced: chunked, without a Content-Length."""
    sender = Sender(body, size)
    sent: list[dict[str, Any]] = []
    raw = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    raw += [(b"content-length", str(size).encode())] if announced else [(b"transfer-encoding", b"chunked")]
    raw += [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": raw, "root_path": ""}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(handler({**scope, "client": ("192.0.2.7", 40000)}, sender.receive, send))
    reply = b"".join(message.get("body", b"") for message in sent[1:])
    kinds = dict(sent[0]["headers"])
    kind = kinds.get(b"Content-Type") or kinds[b"content-type"]
    return sent[0]["status"], json.loads(reply) if b"json" in kind else None, sender


def _session(client: Client) -> str:
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


@each_case("announced", [True, False])
@each_case("path", ["/healthz", "/sign-in/", "/api/v1/memories/", "/api/v1/nowhere/", "/language/"])
def test_large_body_of_a_stranger_is_refused_unread(handler: ThreadedHandler, path: str, announced: bool) -> None:
    status, problem, sender = _send(handler, path, HUGE, announced=announced)
    assert (status, problem["code"]) == (413, "too_large")
    assert "65,536 bytes" in problem["detail"]
    assert (sender.taken <= SENT_AT_MOST, sender.files) == (True, 0)


def test_forged_key_or_session_raises_no_limit(handler: ThreadedHandler, world: World) -> None:
    wrong = world.alice.key.text[:-2] + "xx"
    forged = [
        {"authorization": f"Bearer {wrong}"},
        {"authorization": "Bearer mos_000000000000_" + "x" * 43},
        {"authorization": "Basic YTpi"},
        {"cookie": f"{settings.SESSION_COOKIE_NAME}=" + "a" * 32},
    ]
    for headers in forged:
        status, _, sender = _send(handler, "/api/v1/memories/", HUGE, headers=headers)
        assert (status, sender.taken <= SENT_AT_MOST) == (413, True), headers
    key = {"authorization": f"Bearer {world.alice.key.text}"}
    assert _send(handler, "/settings/members/", 300 * KIB, headers=key)[0] == 413, "pages know no keys"


def test_small_body_of_a_stranger_is_answered_by_the_view(handler: ThreadedHandler) -> None:
    assert _send(handler, "/healthz", 64 * KIB)[0] == 403, "the form's token is missing"
    assert _send(handler, "/api/v1/memories/", 64 * KIB, announced=False)[0] == 401


@pytest.mark.parametrize("announced", [True, False])
def test_caller_with_a_key_sends_as_much_as_the_address_takes(
    handler: ThreadedHandler, world: World, announced: bool
) -> None:
    key = {"authorization": f"Bearer {world.alice.key.text}"}
    body, size = json.dumps(MEMORY).encode(), 5 * KIB * KIB
    status, reply, sender = _send(handler, "/api/v1/memories/", size, announced=announced, body=body, headers=key)
    assert (status, sender.files) == (201, 0), reply
    status, problem, sender = _send(handler, "/api/v1/memories/search/", size, announced=announced, headers=key)
    assert (status, problem["code"], sender.taken <= 3 * KIB * KIB) == (413, "too_large", True)
    assert f"{settings.BODY_BYTES:,} bytes" in problem["detail"]
    status, _, sender = _send(handler, "/api/v1/memories/", settings.BODY_BYTES_BULK + 1, announced=True, headers=key)
    assert (status, sender.taken <= SENT_AT_MOST) == (413, True)


def test_page_of_a_member_takes_a_long_form_and_tells_in_words_what_is_too_long(
    handler: ThreadedHandler, world: World
) -> None:
    cookie = {"cookie": _session(signed_in(world.alice))}
    assert _send(handler, "/chat/", 300 * KIB, headers=cookie)[0] in {403, 405}, "read, then refused without its token"
    status, problem, _ = _send(handler, "/chat/", 2 * KIB * KIB, headers={**cookie, "accept": "text/html"})
    assert (status, problem) == (413, None)


def test_file_in_a_form_is_refused_and_never_written(world: World, settings: Any) -> None:
    """The API takes JSON alone; who asks for the token of a form does not read a file for it."""
    settings.FILE_UPLOAD_TEMP_DIR = "/nonexistent"
    client = signed_in(world.alice)
    client.handler.enforce_csrf_checks = True
    with tempfile.TemporaryFile() as file:
        file.write(b" " * (3 * KIB * KIB))
        file.seek(0)
        assert client.post("/api/v1/memories/", {"file": file}).status_code == 415


def test_bodies_held_at_once_are_bounded_in_all_and_for_each_caller() -> None:
    held = HeldBodies(100)
    held.hold("a", 50)
    with pytest.raises(Busy):
        held.hold("a", 1)
    held.hold("b", 40)
    with pytest.raises(Busy):
        held.hold("c", 11)
    held.release("a", 50)
    held.hold("c", 11)


def test_large_body_without_room_is_answered_503_unread_and_room_comes_back(
    handler: ThreadedHandler, world: World
) -> None:
    key = {"authorization": f"Bearer {world.alice.key.text}"}
    body, size = json.dumps(MEMORY).encode(), 5 * KIB * KIB
    handler._bodies = HeldBodies(8 * KIB * KIB)
    status, problem, sender = _send(handler, "/api/v1/memories/", size, body=body, headers=key)
    assert (status, problem["code"], sender.taken <= PART) == (503, "busy", True)
    handler._bodies = HeldBodies(10 * KIB * KIB)
    for _ in range(2):
        assert _send(handler, "/api/v1/memories/", size, body=body, headers=key)[0] in {200, 201}
    assert _send(handler, "/api/v1/memories/search/", size, headers=key)[0] == 413
    assert not handler._bodies._held
