"""The transport of outgoing calls: whatever a server answers, a call ends within its bounds."""

import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from socket import create_server
from types import ModuleType

import httpx2
import pytest

from governance import transport
from governance.transport import (
    EVENT_STREAM,
    READER_LEFT,
    AddressRefused,
    AnswerTooLong,
    Limits,
    OutOfTime,
    Reach,
    ReaderLeft,
    Transport,
)
from tests.governance.mutants import mutant

MIB = 1024 * 1024
SMALL = Limits(answer_bytes=MIB, piece_bytes=64 * 1024, pieces=2_000)
EMPTY_PIECE = b'data: {"choices":[{"delta":{}}]}\n\n'


@contextmanager
def answering(head: bytes, body: Iterator[bytes]) -> Iterator[tuple[str, list[int]]]:
    """The address of a server that answers one call so, and a list with the number of bytes of the body it has sent."""
    sent = [0]

    def answer() -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
            for part in body:
                connection.sendall(part)
                sent[0] += len(part)

    with create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", sent
        thread.join(5)
        assert not thread.is_alive(), "the call did not end its connection"


def forever(part: bytes) -> Iterator[bytes]:
    while True:
        yield part


def call(address: str, limits: Limits = SMALL, *, accept: str = "*/*", module: ModuleType = transport) -> bytes:
    sender = module.Transport(limits, module.Reach.ANY)
    with httpx2.Client(transport=sender) as client:
        headers = {"Accept": accept, "Accept-Encoding": transport.ENCODINGS}
        return client.get(address, headers=headers).content


def chunked(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_a_compressed_answer_is_read(compress: Callable[[bytes], bytes]) -> None:
    content = json.dumps(list(range(100_000))).encode()
    body = compress(content)
    name = b"gzip" if compress is gzip.compress else b"deflate"
    head = b"Content-Encoding: %b\r\nContent-Length: %d" % (name, len(body))
    with answering(head, iter([body])) as (address, _):
        assert call(address) == content


def test_an_answer_in_many_small_parts_is_read() -> None:
    parts = [chunked(b"%d," % number) for number in range(500)]
    with answering(b"Transfer-Encoding: chunked", iter([*parts, b"0\r\n\r\n"])) as (address, _):
        assert call(address) == b"".join(b"%d," % number for number in range(500))


def test_a_small_compressed_answer_takes_little_memory() -> None:
    """64 MiB of zeros are 64 KiB of gzip: what is unpacked beyond the bound is never in memory."""
    body = gzip.compress(b"\x00" * 64 * MIB)
    with answering(b"Content-Encoding: gzip\r\nContent-Length: %d" % len(body), iter([body])) as (address, _):
        tracemalloc.start()
        try:
            with pytest.raises(AnswerTooLong):
                call(address)
            assert tracemalloc.get_traced_memory()[1] < 8 * MIB
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("head", [b"X: y", b"Content-Encoding: br", b"Content-Encoding: gzip"])
def test_an_answer_that_is_not_what_it_says_is_an_error(head: bytes) -> None:
    with answering(head, iter([b"plain"])) as (address, _):
        if head == b"X: y":
            assert call(address) == b"plain"
        else:
            with pytest.raises(httpx2.DecodingError):
                call(address)


@pytest.mark.parametrize("accept", ["*/*", EVENT_STREAM])
def test_an_endless_line_is_given_up_at_the_bound(accept: str) -> None:
    endless = answering(b"Content-Type: text/event-stream", forever(b"x" * 65536))
    with endless as (address, sent), pytest.raises(AnswerTooLong):
        call(address, accept=accept)
    assert sent[0] < 16 * MIB  # with all that lies in the buffers of both sides


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(EMPTY_PIECE, id="empty pieces"),
        pytest.param(b"\n\n", id="blank lines"),
        pytest.param(b": ping\n\n" * 100, id="comments"),
        pytest.param(b"data: x\n", id="an event of endless lines"),
    ],
)
def test_a_stream_of_nothing_ends_at_the_bound(part: bytes) -> None:
    with answering(b"Content-Type: text/event-stream", forever(part)) as (address, _), pytest.raises(AnswerTooLong):
        call(address, accept=EVENT_STREAM)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(chunked(b"x"), id="chunks of a byte"),
        pytest.param(chunked(gzip.compress(b"")), id="compressed nothing"),
        pytest.param(chunked(b"\x00\x00\x00\xff\xff"), id="blocks of nothing"),
    ],
)
def test_endless_chunks_of_little_end_at_the_bound(part: bytes) -> None:
    is_gzip = part != chunked(b"x")
    start = chunked(gzip.compress(b"")[:10]) if is_gzip else b""
    head = b"Transfer-Encoding: chunked" + b"\r\nContent-Encoding: gzip" * is_gzip

    def body() -> Iterator[bytes]:
        yield start
        yield from forever(part)

    with answering(head, body()) as (address, _), pytest.raises((AnswerTooLong, httpx2.DecodingError)):
        call(address)


def test_endless_headers_end_at_the_bound() -> None:
    with answering(b"X: y", iter([])) as (address, _):
        assert call(address) == b""

    def informational() -> Iterator[bytes]:
        yield from forever(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)

    with _raw_answer(informational()) as address, pytest.raises(AnswerTooLong):
        call(address)


@contextmanager
def _raw_answer(parts: Iterator[bytes]) -> Iterator[str]:
    """The address of a server that answers with these bytes, status line and all."""

    def answer() -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            connection.recv(65536)
            for part in parts:
                connection.sendall(part)

    with create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(5)


def _drip(stop: threading.Event) -> Iterator[bytes]:
    while not stop.wait(0.02):
        yield b"x"


@pytest.mark.parametrize("accept", ["*/*", EVENT_STREAM])
def test_an_answer_that_drips_ends_in_time(accept: str) -> None:
    """Each byte comes in time for its read, and the whole does not."""
    stop = threading.Event()
    with answering(b"Content-Type: text/event-stream", _drip(stop)) as (address, _):
        with pytest.raises(OutOfTime):
            call(address, replace(SMALL, seconds=0.3), accept=accept)
        stop.set()


def test_an_answer_that_does_not_come_is_a_timeout() -> None:
    stop = threading.Event()

    def body() -> Iterator[bytes]:
        stop.wait(5)
        yield b""

    with answering(b"Content-Length: 3", body()) as (address, _):
        with pytest.raises(httpx2.ReadTimeout):
            call(address, replace(SMALL, read_seconds=0.1))
        stop.set()


def test_a_call_ends_when_its_reader_leaves() -> None:
    left, stop = threading.Event(), threading.Event()
    token = READER_LEFT.set(left)
    try:
        with answering(b"Content-Type: text/event-stream", _drip(stop)) as (address, _):
            threading.Timer(0.1, left.set).start()
            with pytest.raises(ReaderLeft):
                call(address, accept=EVENT_STREAM)
            stop.set()
    finally:
        READER_LEFT.reset(token)


def test_an_event_comes_before_the_next_one_is_sent() -> None:
    read = threading.Event()

    def body() -> Iterator[bytes]:
        yield b"data: 1\n\ndata: 2\r\n\r\nda"
        assert read.wait(5)
        yield b"ta: 3\r\rdata: 4"

    with (
        answering(b"Content-Type: text/event-stream", body()) as (address, _),
        httpx2.Client(transport=Transport(SMALL, Reach.ANY)) as client,
        client.stream("GET", address, headers={"Accept": EVENT_STREAM}) as answer,
    ):
        events = answer.iter_bytes()
        assert [next(events), next(events)] == [b"data: 1\n\n", b"data: 2\r\n\r\n"]
        read.set()
        assert list(events) == [b"data: 3\r\r", b"data: 4"]


def test_a_receiver_that_takes_nothing_is_given_up() -> None:
    with create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        client = httpx2.Client(transport=Transport(replace(SMALL, seconds=0.3), Reach.ANY))
        with client, pytest.raises((OutOfTime, httpx2.TimeoutException)):
            client.post(address, content=b"x" * 32 * MIB)


def test_tenants_addresses_are_public_and_called_over_tls() -> None:
    for address in ("http://example.org/", "https://127.0.0.1/", "https://[::1]/"):
        with httpx2.Client(transport=Transport(SMALL)) as client, pytest.raises(AddressRefused):
            client.get(address)


# Broken on purpose


def _ends_empty_pieces(module: ModuleType) -> bool:
    """Return whether a stream of empty pieces ends before its sender stops."""

    def body() -> Iterator[bytes]:
        yield from (EMPTY_PIECE for _ in range(SMALL.pieces + 10))

    with answering(b"Content-Type: text/event-stream", body()) as (address, _):
        try:
            call(address, accept=EVENT_STREAM, module=module)
        except module.AnswerTooLong:
            return True
    return False


def _ends_long_compressed_answers(module: ModuleType) -> bool:
    body = gzip.compress(b"\x00" * 8 * MIB)
    with answering(b"Content-Encoding: gzip\r\nContent-Length: %d" % len(body), iter([body])) as (address, _):
        try:
            call(address, module=module)
        except module.AnswerTooLong:
            return True
    return False


BREAKS = [
    ("count > limits.pieces or", "", _ends_empty_pieces),
    ("size > limits.answer_bytes or", "", _ends_long_compressed_answers),
]


@pytest.mark.parametrize(("old", "new", "holds"), BREAKS)
def test_a_bound_that_is_taken_away_shows(old: str, new: str, holds: Callable[[ModuleType], bool]) -> None:
    assert holds(transport)
    assert not holds(mutant(transport, old, new))
