"""The health check of one web process, without blocking: a request is sent, and its response is read later.

A process that answers only 503 counts as silent.
"""

import errno
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 120.0  # until the first answer
SILENT_SECONDS = 10.0  # without a good answer, after the first
GOOD = b"HTTP/1.1 200"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@dataclass
class HealthCheck:
    """The mutable state of the health check. connection: the pending request; last_answer, started:
    time.monotonic()."""

    path: Path
    started: float = 0.0
    last_answer: float | None = None
    connection: socket.socket | None = None

    def restart(self) -> None:
        """Reset the state for a new process."""
        self._close()
        self.started, self.last_answer = time.monotonic(), None

    def is_silent(self) -> bool:
        """Read a pending response, send the next request, and return whether the process has been silent for too
        long."""
        self._look()
        if self.connection is None:
            self._ask()
        if self.last_answer is None:
            return time.monotonic() - self.started > START_SECONDS
        return time.monotonic() - self.last_answer > SILENT_SECONDS

    def _look(self) -> None:
        if self.connection is None:
            return
        with suppress(BlockingIOError):
            try:
                if self.connection.recv(len(GOOD)) == GOOD:
                    self.last_answer = time.monotonic()
            except ConnectionError:
                pass  # the process has ended, or will be asked again
            self._close()

    def _ask(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        if connection.connect_ex(str(self.path)) not in {0, errno.EINPROGRESS}:
            connection.close()  # nothing listens yet, or too many wait
            return
        try:
            connection.send(REQUEST)
        except OSError:
            connection.close()
            return
        self.connection = connection

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None
