"""Measures searches of a quiet tenant, alone and next to a tenant whose clients call without pause.

Rounds alone and with load alternate, so that other load on the machine affects both alike.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.load import KINDS
from benchmarks.report import timing
from benchmarks.synthetic import conversation, questions
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of

SEED = 20_261_129
QUIET = 1_000  # memories of the quiet tenant, at most
PER_SECOND = 4.0  # its searches
CONNECTIONS = 6  # each leads to one of the web processes; they take turns
WARM_UP = 12
GOAL = 3.0  # times the p95 alone, on two idle cores
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Beside:
    """The load of the busy tenant. cubes: its memories; seconds: of each round."""

    cubes: int
    clients: int
    rounds: int
    seconds: float


@dataclass
class Samples:
    """The samples of a run: milliseconds of the quiet tenant's searches, and counts of the busy tenant's responses by
    kind of call and status."""

    alone: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)


def neighbour(target: Target, beside: Beside) -> dict[str, Any]:
    """Return the figures of one run for each kind of load. The tenants are kept, and grow. Raises BenchmarkError."""
    size = min(QUIET, beside.cubes)
    busy, quiet = _tenant(f"bench-busy-{beside.cubes}", beside.cubes), _tenant(f"bench-quiet-{size}", size)
    asked = questions(conversation(size, SEED), 500, SEED + 1)
    clients = [Client(replace(target, api_key=quiet.api_key)) for _ in range(CONNECTIONS)]
    _search(clients, asked, WARM_UP / PER_SECOND)
    kinds = {kind: _measure_kind(target, beside, busy, clients, asked, kind) for kind in KINDS}
    for client in clients:
        client.close()
    return {**asdict(beside), "quiet tenant's memories": size, "goal": GOAL, "kinds": kinds}


def neighbour_table(figures: dict[str, Any]) -> str:
    headers = ["busy tenant", "alone p50 ms", "alone p95 ms", "beside p50 ms", "beside p95 ms", "times, p95", "calls/s"]
    columns = [(name, share) for name in ("alone", "beside") for share in ("p50", "p95")]
    rows = [
        [kind, *(samples[name][share] for name, share in columns), samples["times p95"], samples["busy calls/s"]]
        for kind, samples in figures["kinds"].items()
    ]
    return markdown(headers, rows)


def _tenant(slug: str, size: int) -> Caller:
    owner = owner_of(slug)
    if cubes_in(owner.actor) < size:
        fill_tenant(owner.actor, drafts_of(conversation(size, SEED), "/open"))
    await_jobs(owner.actor)
    return owner


def _measure_kind(
    target: Target, beside: Beside, busy: Caller, clients: list[Client], asked: list[str], kind: str
) -> dict[str, Any]:
    samples = Samples()
    for _ in range(beside.rounds):
        samples.alone += _search(clients, asked, beside.seconds)
        with _load(replace(target, api_key=busy.api_key), beside, kind, samples.answers):
            samples.beside += _search(clients, asked, beside.seconds)
    alone, near = timing(samples.alone), timing(samples.beside)
    answered = sum(count for status, count in samples.answers.items() if status.startswith("2"))
    return {
        "alone": asdict(alone),
        "beside": asdict(near),
        "times p50": _divide(near.p50, alone.p50),
        "times p95": _divide(near.p95, alone.p95),
        "busy calls/s": round(answered / (beside.rounds * beside.seconds), 1),
        "busy answers": dict(sorted(samples.answers.items())),
    }


def _divide(value: float, other: float) -> float:
    return round(value / other, 2)


def _search(clients: list[Client], asked: list[str], seconds: float) -> list[float]:
    """Return the milliseconds of searches at a fixed rate. Raises BenchmarkError for an unsuccessful response."""
    begun, found = time.perf_counter(), []
    for number in range(int(seconds * PER_SECOND)):
        time.sleep(max(0.0, begun + number / PER_SECOND - time.perf_counter()))
        client = clients[number % len(clients)]
        client.call("POST", "memories/search/", {"query": asked[number % len(asked)]})
        found.append(client.last_ms)
    return found


@contextmanager
def _load(target: Target, beside: Beside, kind: str, answers: Counter[str]) -> Iterator[None]:
    """Run the busy tenant's clients in a separate process during this block. Raises BenchmarkError."""
    argv = [sys.executable, "-m", "benchmarks.load", target.url, kind, str(beside.clients)]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{target.api_key}\n")
        process.stdin.flush()
        if process.stdout.readline() != "started\n":
            raise BenchmarkError("the load does not start")
        yield
        printed, _ = process.communicate()
    answers.update(json.loads(printed))
