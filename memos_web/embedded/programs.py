"""Child processes that never outlive the process that started them."""

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

LARGEST_LOG = 10 * 1024 * 1024  # bytes; a longer log starts anew with the next start
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Program:
    """One child: what to run, as whom, where its output goes, and how to ask it to end."""

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


def spawn(program: Program, *, capture: bool = False) -> subprocess.Popen[bytes]:
    """Start `program` in a session of its own, so that a terminal's Ctrl-C reaches the parent alone.

    capture: its stdout goes to a pipe instead of the log; for the few lines of a short command.
    Call it from the main thread: the kernel sends `orphan_signal` when the thread that started the child ends.
    """
    parent = os.getpid()
    with _open_log(program.log) as log:
        return subprocess.Popen(
            program.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else log,
            stderr=log,
            env=dict(program.environ),
            cwd=program.folder,
            user=program.account.uid if program.account else None,
            group=program.account.gid if program.account else None,
            extra_groups=[] if program.account else None,
            start_new_session=True,
            pass_fds=program.descriptors,
            # Runs after the change of user, which would clear what it asks of the kernel. No thread holds a lock here.
            preexec_fn=lambda: _bind_to(parent, program),  # noqa: PLW1509
        )


def stop_all(children: Iterable[tuple[Program, subprocess.Popen[bytes]]], *, seconds: float) -> None:
    """Ask all to end, wait for them together, and kill what is left after `seconds`."""
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
    """Become the parent of grandchildren whose parent dies, so that none is ever lost sight of (Linux only)."""
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
    """The last line of a log that says anything, for a one-line report."""
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


def _open_log(path: Path) -> BinaryIO:
    too_long = path.exists() and path.stat().st_size > LARGEST_LOG
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_long else 0), 0o600)
    return os.fdopen(descriptor, "ab")


def _bind_to(parent: int, program: Program) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.nice(program.niceness)
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, int(program.orphan_signal), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
