"""Kills programs of a running installation, and compares what was acknowledged with what is there."""

import os
import signal
import time

from tests.harness.product import RunningServer, wait_until
from tests.journeys.live import UNDONE, UNEMBEDDED, Live, Writers, child, number, superuser

RECOVERY_SECONDS = 10.0
LEASE_SECONDS = 60
# An event that a killed worker held is due again when its lease ends. The clock is not waited for: it is set.
END_OF_LEASES = "UPDATE governance_outboxevent SET available_at = now() WHERE done_at IS NULL AND parked_at IS NULL"
LATEST_DUE = """
SELECT coalesce(max(extract(epoch FROM available_at - now())), 0)::int FROM governance_outboxevent WHERE done_at IS NULL
"""


def kill(server: RunningServer, name: str) -> float:
    """kill -9; when it was done."""
    pid = child(server, name)
    assert pid
    os.kill(pid, signal.SIGKILL)
    return time.monotonic()


def wait_for_writes(server: RunningServer, writers: Writers, more: int, seconds: float) -> None:
    goal = len(writers.acknowledged) + more
    wait_until(
        lambda: len(writers.acknowledged) >= goal,
        seconds=seconds,
        why=server.report,
        give_up=lambda: bool(writers.broken),
    )


def list_lost(server: RunningServer, writers: Writers) -> list[str]:
    """Return the acknowledged contents that are not there."""
    return sorted(set(writers.acknowledged) - set(Live.of(server).contents(f"namespace={writers.namespace}")))


def assert_all_there_once(server: RunningServer, writers: Writers) -> None:
    assert writers.broken == []
    stored = Live.of(server).contents(f"namespace={writers.namespace}")
    assert sorted(stored) == sorted(writers.acknowledged)


def assert_jobs_end(server: RunningServer, *, seconds: float = 90.0) -> None:
    """No event waits longer than a lease; when that is over, every memory has its vector."""
    assert number(server, LATEST_DUE) <= LEASE_SECONDS
    with superuser(server) as connection:
        connection.execute(END_OF_LEASES)
    wait_until(
        lambda: number(server, UNDONE) == number(server, UNEMBEDDED) == 0,
        seconds=seconds,
        why=server.report,
    )
    assert_no_dead_letter(server)


def assert_no_dead_letter(server: RunningServer) -> None:
    assert number(server, "SELECT count(*) FROM governance_outboxevent WHERE parked_at IS NOT NULL") == 0
