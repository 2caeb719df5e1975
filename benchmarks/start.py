"""Measures the start of an installation, from an empty folder and again, in seconds and in processor seconds."""

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from benchmarks.client import BenchmarkError
from benchmarks.tables import markdown

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 300.0  # seconds of one start
STOP_SECONDS = 20.0
TICKS = os.sysconf("SC_CLK_TCK")  # a second of processor time in /proc
PARENT, TIMES = 1, slice(11, 15)  # fields of /proc/PID/stat after the name: own and ended children's, user and system
OF_AN_INSTALLATION = ("MEMOS_", "DATABASE_", "REDIS_", "DJANGO_", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Start:
    """One start. seconds: until `/readyz` answers 200; processor_seconds: of all its processes until then, ended ones
    included.

    migration_seconds, migration_processor_seconds: the migration's part of both; silent_seconds: the longest time
    without a line.
    """

    seconds: float
    processor_seconds: float
    migration_seconds: float
    migration_processor_seconds: float
    silent_seconds: float


@dataclass(frozen=True)
class Line:
    """A line of output of a start. seconds, processor_seconds: since its beginning."""

    text: str
    seconds: float
    processor_seconds: float


def start(rounds: int) -> dict[str, Any]:
    """Return the medians of the first and second starts of `rounds` installations, each in a new folder."""
    first, second = zip(*[_measure_installation() for _ in range(rounds)], strict=True)
    return {"rounds": rounds, "first": _medians(first), "second": _medians(second)}


def start_table(figures: dict[str, Any]) -> str:
    rows = [[name, *figures[name].values()] for name in ("first", "second")]
    headers = ["start", "s", "processor s", "of it migrating, s", "processor s", "longest silence, s"]
    return markdown(headers, rows)


def _medians(starts: tuple[Start, ...]) -> dict[str, float]:
    found = [asdict(start) for start in starts]
    return {name: round(statistics.median(each[name] for each in found), 2) for name in found[0]}


def _measure_installation() -> tuple[Start, Start]:
    with tempfile.TemporaryDirectory(prefix="memos-start-") as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        probe.close()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_AN_INSTALLATION)}
        environ = {**kept, "MEMOS_DATA_DIR": f"{folder}/data", "MEMOS_PORT": str(port)}
        return _measure(environ, port), _measure(environ, port)


def _measure(environ: dict[str, str], port: int) -> Start:
    began = time.monotonic()
    with _run_up(environ) as process:
        lines = _Lines(process, began)
        while not _is_ready(port):
            if process.poll() is not None or time.monotonic() - began > LONGEST:
                raise BenchmarkError(f"it does not start: {lines.found[-1].text if lines.found else 'without a word'}")
            time.sleep(0.02)
        return _start_of([*lines.found, lines.line("ready")])


@contextmanager
def _run_up(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "manage.py", "up"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=STOP_SECONDS)


class _Lines:
    """The lines of output of a start, each with its time."""

    def __init__(self, process: subprocess.Popen[str], began: float) -> None:
        self.found: list[Line] = []
        self._process, self._began = process, began
        assert process.stderr is not None
        threading.Thread(target=self._read, args=(process.stderr,), daemon=True).start()

    def line(self, text: str) -> Line:
        return Line(text, time.monotonic() - self._began, processor_seconds(self._process.pid))

    def _read(self, stream: IO[str]) -> None:
        for text in stream:
            self.found.append(self.line(text.strip()))


def _start_of(lines: list[Line]) -> Start:
    steps = list(pairwise(lines))
    migrating = [(before, after) for before, after in steps if "migrating" in before.text]
    last = lines[-1]
    return Start(
        seconds=last.seconds,
        processor_seconds=last.processor_seconds,
        migration_seconds=sum(after.seconds - before.seconds for before, after in migrating),
        migration_processor_seconds=sum(
            after.processor_seconds - before.processor_seconds for before, after in migrating
        ),
        silent_seconds=max([lines[0].seconds, *(after.seconds - before.seconds for before, after in steps)]),
    )


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its descendants, including ended ones that their parents reaped."""
    found = {int(entry.name): fields for entry in Path("/proc").glob("[0-9]*") if (fields := _stat(entry))}
    counted = [pid]
    for parent in counted:
        counted += [child for child, fields in found.items() if int(fields[PARENT]) == parent]
    return sum(int(ticks) for each in counted if each in found for ticks in found[each][TIMES]) / TICKS


def _stat(entry: Path) -> list[str]:
    try:
        return (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []  # it ended while the list was read


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
