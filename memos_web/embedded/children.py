"""One supervised child process: its start time, its failures, and its next start."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from memos_web.embedded.health_check import HealthCheck
from memos_web.embedded.programs import AdoptedProcess, Process, Program, spawn

LONGEST_DELAY = 10.0  # seconds between two starts of a child that keeps failing
SETTLED_AFTER = 30.0  # seconds; after running so long, earlier failures no longer count


def delay_after(failures: int) -> float:
    """Return the seconds to wait before the next start: 0, then 0.25, 0.5, 1, … up to LONGEST_DELAY."""
    return 0.0 if failures <= 1 else min(LONGEST_DELAY, 0.25 * 2.0 ** (failures - 2))


def _nothing() -> None:
    return None


@dataclass
class Child:
    """The mutable state of one supervised program."""

    program: Program
    before_restart: Callable[[], None] = _nothing
    runs_once: bool = False  # its end is awaited, and it is not started again
    process: Process | None = None
    failures: int = 0
    restart_at: float = 0.0  # time.monotonic()
    health: HealthCheck | None = None  # of a web process
    started_at: float = 0.0

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def started_program(self) -> tuple[Program, Process] | None:
        return (self.program, self.process) if self.process is not None else None

    @property
    def has_succeeded(self) -> bool:
        return self.process is not None and self.process.poll() == 0

    def is_silent(self) -> bool:
        """Return whether the process runs but has not answered its health check for too long."""
        return self.health is not None and self.is_running and self.health.is_silent()

    def kill(self) -> None:
        """Kill the process at once, even if it is stopped by a signal."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def start(self, pid: int | None = None) -> None:
        """Start the program, or adopt the process `pid` that the launcher forked for it."""
        self.started_at = time.monotonic()
        if self.health is not None:
            self.health.restart()
        self.process = spawn(self.program) if pid is None else AdoptedProcess(pid)

    def note_death(self) -> str:
        """Count the failure, plan the next start, and return one line that describes the end."""
        assert self.process is not None
        if time.monotonic() - self.started_at > SETTLED_AFTER:
            self.failures = 0
        self.failures += 1
        delay = delay_after(self.failures)
        self.restart_at = time.monotonic() + delay
        how = f"killed by signal {-code}" if (code := self.process.returncode or 0) < 0 else f"exit code {code}"
        self.process = None
        return f"{self.program.name} ended ({how}), starting again in {delay:g} s; see {self.program.log}"
