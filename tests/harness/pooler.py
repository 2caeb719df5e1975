"""A pooler of transactions, as PgBouncer is one: it refuses startup options, and two transactions of a client in turn
never have the same session of the server."""

import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

SSL_REQUEST, STARTUP = 80877103, 196608
CLOSE = b"X"


class Ended(Exception):
    """One side closed its connection."""


@dataclass
class Wire:
    """One connection, read by whole messages of the protocol."""

    peer: socket.socket

    def take(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self.peer.recv(size - len(found))
            if not part:
                raise Ended
            found += part
        return found

    def startup(self) -> tuple[int, bytes]:
        (size,) = struct.unpack("!i", self.take(4))
        body = self.take(size - 4)
        return int(struct.unpack("!i", body[:4])[0]), body[4:]

    def message(self) -> tuple[bytes, bytes]:
        """Return the kind of a message and all its bytes."""
        head = self.take(5)
        return head[:1], head + self.take(struct.unpack("!i", head[1:])[0] - 4)


@dataclass
class MixingPooler:
    """server: the socket of PostgreSQL. refused: the startup parameters that clients were refused for."""

    server: Path
    database: str
    sessions: int = 3
    refused: list[str] = field(default_factory=list)
    transactions: int = 0
    _free: deque[Wire] = field(default_factory=deque)
    _guard: threading.Condition = field(default_factory=threading.Condition)
    _greeting: bytes = b""

    def open(self) -> None:
        self._free.extend(self._connect() for _ in range(self.sessions))

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._client, args=(Wire(peer),), daemon=True).start()

    def close(self) -> None:
        while self._free:
            self._free.pop().peer.close()

    def _connect(self) -> Wire:
        wire = Wire(socket.socket(socket.AF_UNIX))
        wire.peer.connect(str(self.server))
        named = f"user\0memos_app\0database\0{self.database}\0client_encoding\0UTF8\0\0".encode()
        wire.peer.sendall(struct.pack("!ii", len(named) + 8, STARTUP) + named)
        greeting = b""
        while True:
            kind, message = wire.message()
            greeting += message
            if kind == b"E":
                raise RuntimeError(message)
            if kind == b"Z":
                self._greeting = greeting
                return wire

    def _client(self, client: Wire) -> None:
        with suppress(Ended, OSError), client.peer:
            code, body = client.startup()
            while code != STARTUP:
                client.peer.sendall(b"N")
                code, body = client.startup()
            names = body.split(b"\0")[0:-2:2]
            if b"options" in names:
                self.refused.append("options")
                text = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
                client.peer.sendall(b"E" + struct.pack("!i", len(text) + 4) + text)
                return
            client.peer.sendall(self._greeting)
            while self._transaction(client):
                pass

    def _transaction(self, client: Wire) -> bool:
        """Pass one transaction on; return whether the client goes on."""
        kind, message = client.message()
        if kind == CLOSE:
            return False
        with self._guard:
            self._guard.wait_for(lambda: bool(self._free))
            server = self._free.popleft()
            self.transactions += 1
        waiting, is_open = 0, True
        while is_open:
            server.peer.sendall(message)
            waiting += kind in {b"Q", b"S"}
            while waiting and is_open:
                answer, answered = server.message()
                client.peer.sendall(answered)
                waiting -= answer == b"Z"
                is_open = waiting > 0 or answered[-1:] != b"I" or answer != b"Z"
                if answer == b"G":  # COPY from the client, who speaks now
                    break
            if is_open:
                kind, message = client.message()
        with self._guard:
            self._free.append(server)
            self._guard.notify()
        return True


@contextmanager
def mixing_pooler(server: Path, database: str) -> Iterator[tuple[MixingPooler, int]]:
    """Yield the pooler and its port on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pooler = MixingPooler(server, database)
        pooler.open()
        thread = threading.Thread(target=pooler.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield pooler, listener.getsockname()[1]
        finally:
            pooler.close()
