"""Measures how the product grows: the time of calls, and bytes of the database, by the number of memories and tenants.

A figure at one size says little of another; the exponent does. It is the slope of log(time) over log(size): 0 is flat,
1 grows with the size.
"""

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import log
from statistics import mean
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from benchmarks.client import Client, Target
from benchmarks.lifecycle import await_sweep
from benchmarks.report import timing
from benchmarks.synthetic import conversation, questions
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.database import acting
from governance.pages import First
from vault.content.drafts import CubeDraft
from vault.cubes.selectors import cubes_list
from vault.cubes.services import cubes_add
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search

SEED = 20_261_129
PLACE = "/open"
ASKED = 60  # calls of each kind, after as many to warm up
PAGE = 20  # memories of a list
SMALL = 100  # memories of each tenant where tenants grow
RECENT = {"youngest_days": 0}  # the sweep judges every memory
TENANT_BYTES = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND relname LIKE ANY (ARRAY['vault_%%', 'governance_%%']) AND relnamespace = 'public'::regnamespace
"""
Times = dict[str, float]


@dataclass(frozen=True)
class Growing:
    """The sizes of a run. cubes: of one tenant; tenants: numbers of tenants with SMALL memories each."""

    cubes: Sequence[int]
    tenants: Sequence[int] = ()


def scale(target: Target, growing: Growing) -> dict[str, Any]:
    """Return milliseconds (median) of each call at each size, and the exponents. The tenants are kept.

    Raises BenchmarkError.
    """
    by_cubes = {size: _measure_tenant(target, size) for size in sorted(growing.cubes)}
    by_tenants = {count: _measure_tenants(count) for count in sorted(growing.tenants)}
    return {
        "seed": SEED,
        "memories of a tenant": _with_exponents(by_cubes),
        "tenants": _with_exponents(by_tenants),
        "peak memory of this process MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def scale_table(figures: dict[str, Any]) -> str:
    tables = []
    for name in ("memories of a tenant", "tenants"):
        sizes = figures[name]["sizes"]
        if sizes:
            rows = [
                [call, *(found[call] for found in sizes.values()), figures[name]["exponents"].get(call, "")]
                for call in next(iter(sizes.values()))
            ]
            tables.append(markdown([name, *sizes, "exponent"], rows))
    return "\n\n".join(tables)


def measure_exponent(times: Mapping[int, float]) -> float:
    """Return the slope of log(time) over log(size) by least squares. times: by size, at least two."""
    points = [(log(size), log(value)) for size, value in times.items()]
    middle = mean(x for x, _ in points), mean(y for _, y in points)
    spread = sum((x - middle[0]) ** 2 for x, _ in points)
    return sum((x - middle[0]) * (y - middle[1]) for x, y in points) / spread


def _with_exponents(sizes: Mapping[int, Times]) -> dict[str, Any]:
    calls = next(iter(sizes.values()), {})
    exponents = {
        call: round(measure_exponent({size: found[call] for size, found in sizes.items()}), 2)
        for call in calls
        if len(sizes) > 1 and all(found[call] > 0 for found in sizes.values())
    }
    return {"sizes": {str(size): found for size, found in sizes.items()}, "exponents": exponents}


def _measure_tenant(target: Target, size: int) -> Times:
    """Measure the calls of one tenant with so many memories."""
    owner = owner_of(f"bench-scale-{size}")
    turns = conversation(size, SEED)
    before, stored = _read_bytes(), cubes_in(owner.actor)
    started = time.perf_counter()
    if stored < size:
        fill_tenant(owner.actor, drafts_of(turns, PLACE)[stored:])
    loading = time.perf_counter() - started
    await_jobs(owner.actor)
    times = _measure_calls(owner, questions(turns, ASKED, SEED))
    client = Client(Target(target.url, owner.api_key))
    times["list over REST ms"] = _measure(lambda: client.call("GET", f"memories/?page_size={PAGE}"))
    times["sweep s"] = round(await_sweep(owner, RECENT), 2)
    if stored == 0:
        times["load, s for each 1,000"] = round(loading / size * 1000, 2)
        times["bytes of each memory"] = round((_read_bytes() - before) / size)
    return times


def _measure_tenants(count: int) -> Times:
    """Measure the calls of one tenant with SMALL memories among so many."""
    turns = conversation(SMALL, SEED)
    for number in range(count):
        owner = owner_of(f"bench-scale-of-{number}")
        if cubes_in(owner.actor) < SMALL:
            fill_tenant(owner.actor, drafts_of(turns, PLACE))
    await_jobs(owner.actor)
    return _measure_calls(owner, questions(turns, min(ASKED, SMALL // 2), SEED))


def _measure_calls(owner: Caller, asked: Sequence[str]) -> Times:
    """Return the median milliseconds of an add, which is rolled back, of a search, and of a list."""
    queries, actor = cycle(asked), owner.actor

    def add() -> None:
        with acting(actor):
            cubes_add(actor=actor, drafts=[CubeDraft(content=f"A note: {next(queries)}", namespace=PLACE)])
            transaction.set_rollback(True)

    return {
        "add ms": _measure(add),
        "search ms": _measure(lambda: memories_search(actor=actor, search=SearchQuery(query=next(queries)))),
        "list ms": _measure(lambda: cubes_list(actor=actor, matching=Q(), pages=First(PAGE))),
    }


def _measure(call: Callable[[], object]) -> float:
    samples = []
    for _ in range(2 * ASKED):
        started = time.perf_counter()
        call()
        samples.append((time.perf_counter() - started) * 1000)
    return timing(samples[ASKED:]).p50


def _read_bytes() -> int:
    with connection.cursor() as cursor:
        cursor.execute(TENANT_BYTES)
        return int(cursor.fetchone()[0])
