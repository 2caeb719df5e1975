"""Row 4: PostgreSQL is killed under eight writers. What was acknowledged is there, and no program of ours restarts."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from tests.faults.kills import (
    RECOVERY_SECONDS,
    assert_all_there_once,
    assert_jobs_end,
    kill,
    list_lost,
    wait_for_writes,
)
from tests.harness.evidence import Evidence
from tests.harness.product import RunningServer, wait_until
from tests.journeys.live import PROGRAMS, Live, NoAnswer, Writers, child, superuser

pytestmark = pytest.mark.full
WRITERS = 8
# PostgreSQL answers a commit at once, and its log is written ten seconds later.
CARELESS = (
    "ALTER DATABASE memos SET synchronous_commit = off",
    "ALTER SYSTEM SET wal_writer_delay = '10s'",
    "ALTER SYSTEM SET wal_writer_flush_after = '1GB'",
)
AS_BEFORE = (
    "ALTER DATABASE memos RESET synchronous_commit",
    "ALTER SYSTEM RESET wal_writer_delay",
    "ALTER SYSTEM RESET wal_writer_flush_after",
)
NEW_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'memos_app'"


@pytest.fixture
def server(victim: RunningServer) -> RunningServer:
    return victim


def processes(server: RunningServer) -> dict[str, int]:
    """The programs of ours, each with its process."""
    return {name: child(server, name) for name in PROGRAMS if name not in {"postgres", "redis"}}


def recovery(server: RunningServer, answers: Counter[str]) -> float:
    """Kill PostgreSQL; the seconds until a write that began afterwards is acknowledged. Counts the answers before."""
    live, killed_at = Live.of(server), kill(server, "postgres")
    body = {"content": f"Written after the kill {uuid4()}.", "namespace": "/killed/probe"}
    while True:
        try:
            status, _ = live.call("POST", "memories/", body)
        except NoAnswer:
            status = 0
        seconds = time.monotonic() - killed_at
        if status == 201:
            return seconds
        answers[str(status)] += 1
        assert seconds < 3 * RECOVERY_SECONDS, server.report()
        time.sleep(0.05)


def test_acknowledged_writes_survive_the_death_of_the_database(
    server: RunningServer, evidence: Evidence, full_size: bool
) -> None:
    kills, writes = (6, 2_600) if full_size else (1, 80)
    wait_until(lambda: server.is_ready() and all(processes(server).values()), seconds=20, why=server.report)
    before, answers, recoveries = processes(server), Counter[str](), []
    writers = Writers(Live.of(server), namespace="/killed/postgres")
    with writers.writing(WRITERS):
        for _ in range(kills):
            wait_for_writes(server, writers, more=writes, seconds=600 if full_size else 30)
            recoveries.append(recovery(server, answers))
        wait_for_writes(server, writers, more=20, seconds=20)
    answers.update(writers.refusals)
    assert set(answers) <= {"503", "409"}, "while the database is down, each request is answered 503"
    assert answers["503"] >= kills
    assert processes(server) == before
    assert_all_there_once(server, writers)
    assert max(recoveries) <= RECOVERY_SECONDS
    assert_jobs_end(server, seconds=900 if full_size else 90)
    figures = {
        "writers": WRITERS,
        "kills of PostgreSQL": kills,
        "acknowledged writes": len(writers.acknowledged),
        "lost": 0,
        "stored twice": 0,
        "longest recovery in seconds": round(max(recoveries), 2),
        "answers 503 meanwhile": answers["503"],
        "other answers but 201": answers.total() - answers["503"],
        "programs that restarted besides PostgreSQL": 0,
    }
    evidence(row=4, name="acknowledged-writes", figures=figures)


@contextmanager
def careless_database(server: RunningServer) -> Iterator[None]:
    """PostgreSQL acknowledges what it has not written yet."""
    try:
        _change(server, CARELESS)
        yield
    finally:
        wait_until(server.is_ready, seconds=30, why=server.report)
        _change(server, AS_BEFORE)


def _change(server: RunningServer, statements: tuple[str, ...]) -> None:
    with superuser(server) as connection:
        for statement in (*statements, "SELECT pg_reload_conf()", NEW_SESSIONS):
            connection.execute(statement.encode())
    wait_until(server.is_ready, seconds=30, why=server.report)


def test_a_database_that_acknowledges_before_it_writes_shows(server: RunningServer) -> None:
    writers = Writers(Live.of(server), namespace="/killed/careless")
    with careless_database(server):
        with writers.writing(WRITERS):
            wait_for_writes(server, writers, more=60, seconds=30)
            kill(server, "postgres")
        wait_until(server.is_ready, seconds=30, why=server.report)
        missing = list_lost(server, writers)
    assert missing
    with pytest.raises(AssertionError):
        assert_all_there_once(server, writers)
