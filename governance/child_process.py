"""A separate process for work on texts and files of others, bounded in time and memory, so that serving goes on."""

import faulthandler
import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from governance.collector import collect_seldom
from governance.errors import DomainError, Unavailable

TRIES = 2  # a process that ended on the work of another call is replaced
SPARE_CPU_SECONDS = 5  # beyond the seconds of a call, for code that lets no signal in
_runs_jobs = True
BUSY = "Too much is being read at the moment. Try again."
Result = TypeVar("Result")


class TookTooLong(Exception):
    """A call has used up its seconds."""


@dataclass(frozen=True)
class Refusals:
    """The error of a call that meets a bound. slow, ended: what it says, also where the process ended on the call."""

    error: type[DomainError]
    slow: str
    ended: str


class ChildProcess:
    """One process that runs one call after the other, started at the first one.

    seconds: of a call, by the clock; a call waits as long again at most for others. memory_bytes: beyond what the
    process has at its first call; 0 for no bound. niceness: added to that of this process.
    """

    def __init__(self, refusals: Refusals, *, seconds: float, memory_bytes: int = 0, niceness: int = 0) -> None:
        self.seconds = seconds
        self._refusals = refusals
        self._memory_bytes = memory_bytes
        self._niceness = niceness
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._turns = threading.Condition()
        self._callers: set[object] = set()

    def run(self, function: Callable[..., Result], *values: Any, caller: object = None) -> Result:
        """Call `function(*values)` in the process; both must pickle. Of a caller one call at a time waits for it.

        Raises the refusal; Unavailable where others keep the process busy; the errors of `function`.
        """
        with self._take_turn(caller):
            for _ in range(TRIES):
                pool = self._open_pool()
                try:
                    call = pool.submit(_run_limited, function, values, self.seconds, self._memory_bytes)
                    return self._wait(call)
                except BrokenProcessPool:
                    self._discard_pool(pool)
            raise self._refusals.error(self._refusals.ended)

    def _wait(self, call: Future[Result]) -> Result:
        try:
            return call.result(timeout=2 * self.seconds)
        except (TookTooLong, MemoryError) as error:
            raise self._refusals.error(self._refusals.slow) from error
        except TimeoutError as error:
            call.cancel()
            raise Unavailable(BUSY) from error

    @contextmanager
    def _take_turn(self, caller: object) -> Iterator[None]:
        if caller is None:
            yield
            return
        with self._turns:
            if not self._turns.wait_for(lambda: caller not in self._callers, timeout=2 * self.seconds):
                raise Unavailable(BUSY)
            self._callers.add(caller)
        try:
            yield
        finally:
            with self._turns:
                self._callers.discard(caller)
                self._turns.notify_all()

    def _open_pool(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None:
                spawned = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
                self._pool = ProcessPoolExecutor(
                    max_workers=1, mp_context=spawned, initializer=_start_process, initargs=(self._niceness,)
                )
            return self._pool

    def _discard_pool(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        pool.shutdown(wait=False)


def runs_jobs() -> bool:
    """Return whether this process may run jobs: one that reads texts and files loads none, which halves its start."""
    return _runs_jobs


def _start_process(niceness: int) -> None:
    """Set up the new process: load Django, and end when the parent ends."""
    import django

    global _runs_jobs
    _runs_jobs = False

    os.nice(niceness)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    django.setup(set_prefix=False)
    collect_seldom()
    signal.signal(signal.SIGALRM, _raise_timeout)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _raise_timeout(_number: int, _frame: FrameType | None) -> None:
    raise TookTooLong


def _run_limited(function: Callable[..., Result], values: tuple[Any, ...], seconds: float, memory_bytes: int) -> Result:
    """Call `function`; raise TookTooLong after `seconds`, and end the process after twice as long.

    Raises MemoryError where the call needs more memory than the process may have.
    """
    _bound_memory(memory_bytes)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime + seconds) + SPARE_CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds, exit=True)
    try:
        return function(*values)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)


def _bound_memory(memory_bytes: int) -> None:
    """Bound the address space once: by then the modules of the first call are loaded."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")
    if not memory_bytes or soft != resource.RLIM_INFINITY or not pages.exists():
        return
    present = int(pages.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (present + memory_bytes, hard))
