"""Messages between supervisor and launcher: JSON, one packet each, on a socket pair.

To the launcher: one `Order`. To the supervisor: `say`, the step that begins; `refusal`, why the start ends here;
`made`, the answer of `tenant_create --json`; `pids`, the process of each program that was forked.
"""

import json
import socket
from dataclasses import dataclass
from typing import Any

LONGEST = 64 * 1024  # bytes of a message


@dataclass(frozen=True)
class Order:
    """Facts for the preparation that are not in the environment of the launcher.

    owner_url: the owner's address, empty for the embedded database. superuser: a connection string of the embedded
    database. makes_tenant: there is no record of a first tenant.
    """

    may_migrate: bool
    makes_tenant: bool
    owner_url: str = ""
    superuser: str = ""


def channel() -> tuple[socket.socket, socket.socket]:
    """Both ends of a channel for messages."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, **fields: Any) -> None:
    end.send(json.dumps(fields).encode())


def receive(end: socket.socket) -> dict[str, Any] | None:
    """The next message; None where there is none yet and the socket does not wait, or the other end is closed."""
    try:
        packet = end.recv(LONGEST)
    except BlockingIOError:
        return None
    return dict(json.loads(packet)) if packet else None
