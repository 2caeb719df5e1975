"""The transport of every outgoing HTTP call: to a checked address, bounded in time, bytes and pieces.

An answer is read as it comes and never trusted: its time is bounded from the first byte sent to the last one read, its
bytes as they arrive and after decompression, and its pieces in number and size. A call ends when its reader has left.
"""

import ipaddress
import re
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

import httpcore2
import httpx2

from governance.outbound import Refused, Undelivered, refuse_plaintext, resolve_destination, unreached

# Names that no public name server answers for (RFC 6761, RFC 6762, RFC 8375, ICANN's .internal), beside those without
# a dot: an operator who writes one means the machine or network that the product runs in.
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".lan")
EVENT_STREAM = "text/event-stream"
ENCODINGS = "gzip, deflate"  # for Accept-Encoding: what is decompressed here
BLOCK = 64 * 1024  # bytes that are decompressed or handed on at once
MOST_LINES = 1_000  # of an event
LOOK_SECONDS = 0.25  # between two looks at whether the reader has left
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL and halves of surrogate pairs, which PostgreSQL refuses
_LINE_END = re.compile(rb"\r\n|\n|\r")

# Set when the client whose request a call belongs to is gone.
READER_LEFT: ContextVar[threading.Event | None] = ContextVar("reader has left", default=None)


class CallEnded(Exception):
    """The transport ended a call at a bound. Clients do not try it again, as they would after a broken connection."""


class AddressRefused(CallEnded):
    """The host leads to no address, or to one that may not be called. Nothing was connected to."""


class OutOfTime(CallEnded):
    """The exchange took longer than all of it may."""


class ReaderLeft(CallEnded):
    """The reader of an answer has closed the connection, so the call was ended."""


class AnswerTooLong(CallEnded):
    """The other side sent more bytes or pieces than an answer may have."""


class Reach(StrEnum):
    """The addresses that a call may go to.

    PUBLIC: of a host that a tenant wrote: public addresses, over TLS. OPERATOR: also a private address that is written
    as host, and a name of the private network (`is_private_host`). ANY: a service of the installation itself.
    MEMOS_ALLOW_PRIVATE_ADDRESSES opens all.
    """

    PUBLIC = "public"
    OPERATOR = "operator"
    ANY = "any"


@dataclass(frozen=True)
class Limits:
    """The bounds of one exchange.

    seconds: from its begin to the last byte. connect_seconds, read_seconds: of each step. answer_bytes: of the body,
    decompressed; twice as many may come over the wire. piece_bytes: of an event of a stream. pieces: of a body.
    """

    seconds: float = 20.0
    connect_seconds: float = 3.0
    read_seconds: float = 5.0
    answer_bytes: int = 1024 * 1024
    piece_bytes: int = 256 * 1024
    pieces: int = 100_000


@dataclass
class _Exchange:
    """One request and its answer: the counts, and the time that is left."""

    limits: Limits
    reader_left: threading.Event | None = field(default_factory=READER_LEFT.get)
    begun: float = field(default_factory=time.monotonic)
    wire_bytes: int = 0
    reads: int = 0

    def find_seconds_left(self) -> float:
        """The seconds until the exchange has to end. Raises OutOfTime; ReaderLeft."""
        if self.reader_left is not None and self.reader_left.is_set():
            raise ReaderLeft("nobody waits for the answer")
        left = self.begun + self.limits.seconds - time.monotonic()
        if left <= 0:
            raise OutOfTime("the answer took too long")
        return left

    def count_read(self, size: int) -> None:
        """Count bytes as they arrive, before they are parsed. Raises AnswerTooLong."""
        self.wire_bytes += size
        self.reads += 1
        if self.wire_bytes > 2 * self.limits.answer_bytes + BLOCK or self.reads > self.limits.pieces:
            raise AnswerTooLong("the answer is too long")


_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange that is on its way")


@contextmanager
def _current_exchange(exchange: _Exchange) -> Iterator[None]:
    token = _EXCHANGE.set(exchange)
    try:
        yield
    finally:
        _EXCHANGE.reset(token)


class Transport(httpx2.BaseTransport):
    """Connects to the address that was checked, and reads answers within `limits`. No proxy, no redirect.

    Every call, and every read of an answer, raises CallEnded; httpx2.RequestError.
    """

    def __init__(self, limits: Limits, reach: Reach = Reach.PUBLIC) -> None:
        self._limits = limits
        self._reach = reach
        self._pool = httpcore2.ConnectionPool(ssl_context=_ssl_context(), network_backend=_Backend(reach))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Of the answer the body is still to be read, or closed."""
        limits, exchange = self._limits, _Exchange(self._limits)
        is_stream = request.headers.get("accept") == EVENT_STREAM
        with _translate_errors(request), _current_exchange(exchange):
            self._check_scheme(request.url.scheme)
            answer = self._pool.handle_request(_core_request(request, limits))
        headers = httpx2.Headers(answer.headers)
        encoding = headers.pop("content-encoding", "").strip().casefold()
        if encoding not in {"", "identity"}:
            headers.pop("content-length", None)  # which counts compressed bytes
        body = _Body(answer, request, exchange, encoding, is_stream=is_stream)
        return httpx2.Response(answer.status, headers=headers, stream=body, extensions=answer.extensions)

    def close(self) -> None:
        self._pool.close()

    def _check_scheme(self, scheme: str) -> None:
        if self._reach is Reach.PUBLIC:
            try:
                refuse_plaintext(tls=scheme == "https")
            except Refused as error:
                raise AddressRefused(str(error)) from error


def is_private_host(host: str) -> bool:
    """Return True for a written address, a name without a dot, and a name of a private suffix."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        name = host.rstrip(".").casefold()
        return "." not in name or name.endswith(PRIVATE_SUFFIXES)
    return True


def is_storable(text: str) -> bool:
    """Return False for a text of an answer that PostgreSQL would refuse."""
    return _UNSTORABLE.search(text) is None


def clean_text(text: str) -> str:
    """The text of an answer with U+FFFD for each character that cannot be stored."""
    return _UNSTORABLE.sub("\ufffd", text)


class _Body(httpx2.SyncByteStream):
    """The body of an answer, decompressed and bounded; in whole events where a stream was asked for."""

    def __init__(
        self,
        answer: httpcore2.Response,
        request: httpx2.Request,
        exchange: _Exchange,
        encoding: str,
        *,
        is_stream: bool,
    ) -> None:
        self._answer = answer
        self._request = request
        self._exchange = exchange
        self._encoding = encoding
        self._is_stream = is_stream

    def __iter__(self) -> Iterator[bytes]:
        limits = self._exchange.limits
        blocks = _bound_blocks(_decompress(self._read(), self._encoding), limits)
        with _translate_errors(self._request):
            yield from _split_events(blocks, limits) if self._is_stream else _join_blocks(blocks)

    def close(self) -> None:
        self._answer.close()

    def _read(self) -> Iterator[bytes]:
        """The parts of the body as they come. The exchange is current while one is waited for, and not between."""
        parts = iter(self._answer.iter_stream())
        while True:
            with _current_exchange(self._exchange):
                self._exchange.find_seconds_left()
                part = next(parts, None)
            if part is None:
                return
            yield part


def _bound_blocks(blocks: Iterable[bytes], limits: Limits) -> Iterator[bytes]:
    """Raises AnswerTooLong once they are too many or too long."""
    size = 0
    for number, block in enumerate(blocks, 1):
        size += len(block)
        if size > limits.answer_bytes or number > limits.pieces:
            raise AnswerTooLong("the answer is too long")
        yield block


def _join_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of BLOCK bytes or more: a reader that joins them does so a bounded number of times."""
    joined = bytearray()
    for block in blocks:
        joined += block
        if len(joined) >= BLOCK:
            yield bytes(joined)
            joined.clear()
    if joined:
        yield bytes(joined)


def _split_events(blocks: Iterable[bytes], limits: Limits) -> Iterator[bytes]:
    """The events of a stream, each whole. Raises AnswerTooLong for a long one, and for too many."""
    waiting, searched, count = bytearray(), 0, 0
    for block in blocks:
        waiting += block
        while (end := _EVENT_END.search(waiting, max(0, searched - 3))) is not None:
            count += 1
            yield _check_event(bytes(waiting[: end.end()]), count, limits)
            del waiting[: end.end()]
            searched = 0
        searched = len(waiting)
        if searched > limits.piece_bytes:
            raise AnswerTooLong("a piece of the answer is too long")
    if waiting:
        yield _check_event(bytes(waiting), count + 1, limits)


def _check_event(event: bytes, count: int, limits: Limits) -> bytes:
    if len(event) > limits.piece_bytes or count > limits.pieces or len(_LINE_END.findall(event)) > MOST_LINES:
        raise AnswerTooLong("the answer has too many pieces, or too long ones")
    return event


def _decompress(parts: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """The body as it was before compression, at most BLOCK bytes at once. Raises httpx2.DecodingError."""
    if encoding in {"", "identity"}:
        yield from parts
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise httpx2.DecodingError("the answer is compressed in a way that was not asked for")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # takes both headers
    try:
        for part in parts:
            block = decoder.decompress(part, BLOCK)
            yield block
            while not decoder.eof and (decoder.unconsumed_tail or len(block) == BLOCK):
                block = decoder.decompress(decoder.unconsumed_tail, BLOCK)
                yield block
    except zlib.error as error:
        raise httpx2.DecodingError("the answer cannot be decompressed") from error
    if not decoder.eof:
        raise httpx2.DecodingError("the answer broke off")


def _core_request(request: httpx2.Request, limits: Limits) -> httpcore2.Request:
    url = request.url
    target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    seconds = {"connect": limits.connect_seconds, "pool": limits.connect_seconds}
    seconds |= {"read": limits.read_seconds, "write": limits.read_seconds}
    extensions = {**request.extensions, "timeout": seconds}
    headers = request.headers.raw
    return httpcore2.Request(request.method, target, headers=headers, content=request.stream, extensions=extensions)


@contextmanager
def _translate_errors(request: httpx2.Request) -> Iterator[None]:
    """Errors of httpcore2 as those of the same name of httpx2, each with the request that its readers look for."""
    try:
        yield
    except httpx2.DecodingError as error:
        error.request = request
        raise
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        kind: type[httpx2.RequestError] = getattr(httpx2, type(error).__name__)
        raise kind(str(error), request=request) from error
    except httpcore2.UnsupportedProtocol as error:
        raise httpx2.UnsupportedProtocol(str(error), request=request) from error


class _Backend(httpcore2.NetworkBackend):
    """Opens connections to checked addresses: what is checked is what is connected to."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        is_private_allowed = self._reach is Reach.ANY or (self._reach is Reach.OPERATOR and is_private_host(host))
        try:
            address = resolve_destination(host, port, allow_private=is_private_allowed).address
        except (Refused, Undelivered) as error:
            failure = unreached(error)
            if self._reach is Reach.PUBLIC or isinstance(error, Refused):
                raise AddressRefused(str(failure)) from error
            raise httpcore2.ConnectError(str(failure)) from error
        seconds = _bound_seconds(timeout)
        return _Stream(self._sockets.connect_tcp(address, port, seconds, local_address, socket_options))


class _Stream(httpcore2.NetworkStream):
    """A connection that is read and written within the bounds of the current exchange."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        waits_until = time.monotonic() + (timeout or LOOK_SECONDS)
        while True:
            seconds = min(_bound_seconds(timeout), LOOK_SECONDS, max(waits_until - time.monotonic(), 0.001))
            try:
                received = self._stream.read(min(max_bytes, BLOCK), seconds)
            except httpcore2.ReadTimeout:
                if time.monotonic() >= waits_until:
                    raise
                continue
            _EXCHANGE.get().count_read(len(received))
            return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it, a part at a time: a receiver that takes a byte now and then is given up, too."""
        sock, left = self._stream.get_extra_info("socket"), memoryview(buffer)
        while left:
            sock.settimeout(_bound_seconds(timeout))
            try:
                left = left[sock.send(left) :]
            except TimeoutError as error:
                raise httpcore2.WriteTimeout(str(error)) from error
            except OSError as error:
                raise httpcore2.WriteError(str(error)) from error

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _bound_seconds(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _bound_seconds(step: float | None) -> float:
    """The seconds that a step of the current exchange may take. Raises OutOfTime; ReaderLeft."""
    left = _EXCHANGE.get().find_seconds_left()
    return left if step is None else min(step, left)


@cache
def _ssl_context() -> ssl.SSLContext:
    """One for all: loading the certificates of the world takes longer than a call."""
    return httpx2.create_ssl_context(trust_env=False)
