"""Child processes that never outlive their parent process."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from memos_web.embedded.account import Account

LARGEST_LOG = 10 * 1024 * 1024  # bytes; the next start truncates a longer log
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Program:
    """A child process: its command, account, log file, and signals."""

    name: str
    argv: tuple[str, ...]
    log: Path
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    folder: Path = Path("/")
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL  # sent by the kernel when the parent dies first
    descriptors: tuple[int, ...] = ()  # open files that the child shares
    niceness: int = 0
    health: Path | None = None  # the socket on which it answers health checks


@dataclass
class AdoptedProcess:
    """A child process that another process forked. It has the interface of Popen."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # collected elsewhere
                self.returncode = -signal.SIGKILL
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if timeout is not None and deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process = subprocess.Popen[bytes] | AdoptedProcess


def spawn(program: Program) -> subprocess.Popen[bytes]:
    """Start `program` in its own session, so that Ctrl-C in a terminal reaches only the parent.

    Call it from the main thread: the kernel sends `orphan_signal` when the thread that started the child ends.
    """
    parent = os.getpid()
    with open_log(program.log) as log:
        return subprocess.Popen(
            program.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(program.environ),
            cwd=program.folder,
            user=program.account.uid if program.account else None,
            group=program.account.gid if program.account else None,
            extra_groups=[] if program.account else None,
            start_new_session=True,
            pass_fds=program.descriptors,
            # Runs after the change of user, which would reset the death signal. No thread holds a lock here.
            preexec_fn=lambda: bind_to(parent, program),  # noqa: PLW1509
        )


def stop_all(children: Iterable[tuple[Program, Process]], *, seconds: float) -> None:
    """Signal all processes to end, wait for them together, and kill those left after `seconds`."""
    running = [(program, process) for program, process in children if process.poll() is None]
    for program, process in running:
        process.send_signal(program.stop_signal)
    deadline = time.monotonic() + seconds
    for _, process in running:
        try:
            process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def adopt_orphans() -> None:
    """Become the parent of grandchildren whose parent dies (Linux only)."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_orphans(known: Iterable[int]) -> None:
    """Kill and reap every child of this process that is not among `known`."""
    for pid in _child_pids() - set(known):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            continue  # it ended by itself


def last_line(path: Path) -> str:
    """Return the last non-empty line of a log, for a one-line report."""
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _child_pids() -> set[int]:
    own = os.getpid()
    return {int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _parent_of(entry) == own}


def _parent_of(entry: Path) -> int | None:
    try:
        after_name = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return None  # it ended while the list was read
    return int(after_name.split()[1])


def open_log(path: Path) -> BinaryIO:
    too_long = path.exists() and path.stat().st_size > LARGEST_LOG
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_long else 0), 0o600)
    return os.fdopen(descriptor, "ab")


def bind_to(parent: int, program: Program | None = None) -> None:
    """Make this process end with its parent. If the parent has ended already, exit at once."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.nice(program.niceness if program else 0)
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, int(program.orphan_signal if program else signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
