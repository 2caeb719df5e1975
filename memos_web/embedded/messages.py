"""Messages between supervisor and launcher: JSON, one packet each, on a socket pair.

The supervisor sends one `Order`. The launcher sends `say`, the step that begins; `refusal`, the reason why the start
fails; `made`, the output of `tenant_create --json`; `pids`, the process of each forked program.
"""

import json
import socket
from dataclasses import dataclass
from typing import Any

LONGEST = 64 * 1024  # bytes of a message


@dataclass(frozen=True)
class Order:
    """The input of the preparation, apart from the environment.

    owner_url: the owner's database address, empty for the embedded database. superuser: a connection string of the
    embedded database. makes_tenant: create the first tenant, because no record of one exists.
    """

    may_migrate: bool
    makes_tenant: bool
    owner_url: str = ""
    superuser: str = ""


def channel() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a channel for messages."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, **fields: Any) -> None:
    end.send(json.dumps(fields).encode())


def receive(end: socket.socket) -> dict[str, Any] | None:
    """Return the next message; None if a non-blocking socket has none yet, or the other end is closed."""
    try:
        packet = end.recv(LONGEST)
    except BlockingIOError:
        return None
    return dict(json.loads(packet)) if packet else None
