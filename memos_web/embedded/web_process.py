"""One web process: serves the socket shared by all web processes, and answers health checks on its own socket.

Run as `python -m memos_web.embedded.web_process FD PATH`. FD: the shared socket. PATH: the health check's socket.
"""

import os
import socket
import sys
from pathlib import Path

import uvicorn

from memos_web.config import read_config

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
        proxy_headers=read_config(os.environ).trusted_proxy,  # of proxies that FORWARDED_ALLOW_IPS names
        backlog=BACKLOG,
    )
    uvicorn.Server(config).run(sockets=[shared, _health_socket(Path(path))])


def _health_socket(path: Path) -> socket.socket:
    """Return the process's own socket for health checks. On the shared one, any web process could answer."""
    path.unlink(missing_ok=True)
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own.bind(str(path))
    return own


if __name__ == "__main__":
    main(*sys.argv[1:])
