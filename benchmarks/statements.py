"""What a small statement costs on its way to PostgreSQL and back: by the cursors of Django, psycopg and ours."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import psycopg
from django.db import connection
from psycopg.pq import Format

from benchmarks.tables import markdown
from benchmarks.tenants import owner_of
from governance.database import acting
from governance.prepared import in_one_go, prepared_cursor

SLUG = "bench-statements"
SMALL = "SELECT %s::int"
TIMES = 2_000
WARM_UP = 100


def statements() -> dict[str, Any]:
    """Microseconds, in turns, within one transaction."""
    with acting(owner_of(SLUG).actor):
        ways = _ways(connection.connection)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(WARM_UP + TIMES):
            for name, ask in ways.items():
                started = time.perf_counter()
                ask()
                taken[name].append((time.perf_counter() - started) * 1e6)
    return {"times": TIMES, "p50 µs": {name: _median(some[WARM_UP:]) for name, some in taken.items()}}


def statements_table(figures: dict[str, Any]) -> str:
    return markdown(["way", "p50 µs"], list(figures["p50 µs"].items()))


def _ways(raw: psycopg.Connection[Any]) -> dict[str, Callable[[], Any]]:
    raw.pgconn.prepare(b"bench_small", b"SELECT $1::int")

    def by_django() -> Any:
        with connection.cursor() as cursor:
            cursor.execute(SMALL, [1])
            return cursor.fetchone()

    def by_psycopg() -> Any:
        with psycopg.RawCursor(raw) as cursor:
            return cursor.execute("SELECT $1::int", [1], prepare=True, binary=True).fetchone()

    def by_us() -> Any:
        with prepared_cursor() as cursor:
            cursor.execute(SMALL, [1])
            return cursor.fetchone()

    def two_by_psycopg() -> Any:
        with psycopg.RawCursor(raw) as first, psycopg.RawCursor(raw) as second:
            with raw.pipeline():
                for cursor in (first, second):
                    cursor.execute("SELECT $1::int", [1], prepare=True, binary=True)
            return first.fetchone(), second.fetchone()

    def two_by_us() -> Any:
        with ExitStack() as opened:
            cursors = [opened.enter_context(prepared_cursor()) for _ in range(2)]
            with in_one_go():
                for cursor in cursors:
                    cursor.execute(SMALL, [1])
            return [cursor.fetchone() for cursor in cursors]

    return {
        "Django's cursor, planned each time": by_django,
        "psycopg's cursor, prepared": by_psycopg,
        "ours": by_us,
        "libpq alone": lambda: raw.pgconn.exec_prepared(b"bench_small", [b"1"], [Format.TEXT], Format.BINARY),
        "two in one go, psycopg": two_by_psycopg,
        "two in one go, ours": two_by_us,
    }


def _median(samples: list[float]) -> float:
    return round(sorted(samples)[len(samples) // 2], 1)
