"""The data directory of an installation: its folders, its lock against a second start, and the port."""

import errno
import fcntl
import os
import socket
import stat
import time
from pathlib import Path

from memos_web.config import Config
from memos_web.embedded.account import Account, give
from memos_web.embedded.errors import StartError

PORT_PATIENCE = 1.0  # seconds until a killed server has released its port


def prepare_data_dir(folder: Path) -> None:
    """Create the data directory with its folders, and check that it is writable. Raises StartError."""
    probe = folder / f".writable.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("logs", "beat"):
            (folder / name).mkdir(exist_ok=True, mode=0o700)
        _deny_listing(folder)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StartError(
            f"cannot write to {folder}: {error.strerror}; set MEMOS_DATA_DIR to a folder of yours"
        ) from error


def _deny_listing(folder: Path) -> None:
    """Remove other users' right to list the folder. They may still pass, for the account of the servers."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o066:
        folder.chmod(mode & ~0o066)


def lock_data_dir(folder: Path) -> int:
    """Lock `<data dir>/lock` until this process ends. Raises StartError if another process holds the lock.

    Returns the file descriptor, which must stay open.
    """
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartError(
            f"cannot write to {folder}: {error.strerror}; set MEMOS_DATA_DIR to a folder of yours"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 20).decode(errors="replace").strip()
        raise StartError(f"already running on {folder} (process {holder})") from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def make_socket_dir(folder: Path, account: Account | None) -> None:
    """Create a folder that only the servers' account and root can enter. Raises StartError if another user owns it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    owners = {os.geteuid()} | ({account.uid} if account else set())
    if folder.is_symlink() or folder.stat().st_uid not in owners:
        raise StartError(f"{folder} belongs to somebody else: the servers' sockets cannot be kept there")
    folder.chmod(0o700)
    give(folder, account)


def folder_empty(folder: Path) -> None:
    """Create the folder, or remove its files."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in folder.iterdir():
        path.unlink()


def bind_port(config: Config) -> socket.socket:
    """Return a socket bound to the web server's address, not listening yet. Raises StartError."""
    deadline = time.monotonic() + PORT_PATIENCE
    while True:
        try:
            return _bound(config.host, config.port)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise StartError(f"cannot listen on {config.host}:{config.port}: {problem.strerror}") from problem
            if time.monotonic() > deadline:
                message = f"port {config.port} is busy on {config.host}: stop what uses it, or set MEMOS_PORT"
                raise StartError(message) from problem
        time.sleep(0.1)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made
