"""Tests of outgoing calls: public https addresses only, to the address that was checked."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from django.test import override_settings

from governance.requests_adapter import (
    LIMITS,
    AddressRefused,
    AnswerTooLong,
    OutgoingSession,
    url_usable,
)
from governance.transport import Limits
from tests.harness.cases import each_case

INSIDE = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost", "0.0.0.0", "10.0.0.1", "172.16.0.1",
    "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::", "2001:db8::1", "192.0.2.1", "203.0.113.9", "240.0.0.1",
]  # fmt: skip
UNUSABLE = ["http://example.org", "ftp://example.org", "file:///etc/passwd", "https://", "https://u:p@example.org", "x"]


class Answers(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        if self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                for _ in range(60):
                    self.wfile.write(b"x")
                    self.server.closing.wait(0.05)  # type: ignore[attr-defined]
            return
        if self.path == "/silent":
            self.rfile.read(1)
            return
        self.send_response(200)
        if self.path == "/dribble":
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"x")
            self.rfile.read(1)  # until the other side has had enough
            return
        self.end_headers()
        self.wfile.write(b"x" * (LIMITS.answer_bytes + 1 if self.path == "/long" else 3))

    def log_message(self, *_: object) -> None:
        """Write no line for a request, which BaseHTTPRequestHandler would write to standard error."""


@pytest.fixture
def inside() -> Iterator[ThreadingHTTPServer]:
    """A server of the operator's own network."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.asked = []  # type: ignore[attr-defined]
    server.closing = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.closing.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)


@each_case("host", INSIDE)
def test_no_address_of_the_inside_is_connected_to(host: str) -> None:
    with pytest.raises(AddressRefused), OutgoingSession() as session:
        session.get(f"https://[{host}]/" if ":" in host else f"https://{host}/")


@pytest.mark.parametrize("url", UNUSABLE)
def test_what_is_not_https_is_not_called(url: str) -> None:
    assert not url_usable(url)
    with pytest.raises(requests.RequestException), OutgoingSession() as session:
        session.get(url)


def test_nothing_reaches_a_server_of_the_inside(inside: ThreadingHTTPServer) -> None:
    for scheme in ("http", "https"):
        with pytest.raises(requests.RequestException), OutgoingSession() as session:
            session.get(f"{scheme}://127.0.0.1:{inside.server_port}/")
    assert inside.asked == []  # type: ignore[attr-defined]


def test_not_even_a_connection_is_opened() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        with pytest.raises(requests.RequestException), OutgoingSession() as session:
            session.get(f"https://127.0.0.1:{listener.getsockname()[1]}/")
        with pytest.raises(TimeoutError):
            listener.accept()


@override_settings(ALLOW_PRIVATE_ADDRESSES=True)
def test_the_operator_may_allow_it_and_then_redirects_and_long_answers_are_still_refused(
    inside: ThreadingHTTPServer,
) -> None:
    base = f"http://localhost:{inside.server_port}"
    with OutgoingSession() as session:
        assert session.get(f"{base}/").content == b"xxx"
        assert session.get(f"{base}/redirect").status_code == 302
        with pytest.raises(AnswerTooLong):
            session.get(f"{base}/long")
    assert "/elsewhere" not in inside.asked  # type: ignore[attr-defined]


@override_settings(ALLOW_PRIVATE_ADDRESSES=True)
def test_no_proxy_of_the_environment_is_used(inside: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with OutgoingSession() as session:
        assert session.get(f"http://127.0.0.1:{inside.server_port}/").status_code == 200


@pytest.mark.parametrize("path", ["silent", "dribble", "drip"])
def test_who_answers_a_byte_now_and_then_is_cut_off(
    inside: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Each byte may come in time, and the whole does not; whatever breaks off is an error that callers know."""
    monkeypatch.setattr("governance.requests_adapter.LIMITS", Limits(seconds=0.2))
    with (
        override_settings(ALLOW_PRIVATE_ADDRESSES=True),
        OutgoingSession() as session,
        pytest.raises(requests.ConnectionError),
    ):
        session.get(f"http://127.0.0.1:{inside.server_port}/{path}")
