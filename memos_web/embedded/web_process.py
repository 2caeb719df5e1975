"""One web process: serves on the socket that the supervisor listens on, and answers its health check on its own.

Run as `python -m memos_web.embedded.web_process FD PATH`: FD is the shared socket, PATH the health check's.
"""

import socket
import sys
from pathlib import Path

import uvicorn

GRACE_SECONDS = 4
BACKLOG = 2048


def main(descriptor: str, path: str) -> None:
    shared = socket.socket(fileno=int(descriptor))
    shared.setblocking(False)
    config = uvicorn.Config(
        "memos_web.asgi:application",
        timeout_graceful_shutdown=GRACE_SECONDS,
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
    )
    uvicorn.Server(config).run(sockets=[shared, _health_socket(Path(path))])


def _health_socket(path: Path) -> socket.socket:
    """A socket of this process alone: on the shared one any of them would answer."""
    path.unlink(missing_ok=True)
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own.bind(str(path))
    return own


if __name__ == "__main__":
    main(*sys.argv[1:])
