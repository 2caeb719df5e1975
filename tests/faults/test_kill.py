"""Any process may be killed while others write: what was acknowledged is there, once, and every job is done."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import Servers
from tests.journeys.live import UNDONE, UNEMBEDDED, Live, Writers, child, number, superuser

pytestmark = pytest.mark.long
RECOVERY_SECONDS = 10.0
LEASE_SECONDS = 60
# An event that a killed worker held is due again when its lease ends. The clock is not waited for: it is set.
END_OF_LEASES = "UPDATE governance_outboxevent SET available_at = now() WHERE done_at IS NULL AND parked_at IS NULL"
LATEST_DUE = """
SELECT coalesce(max(extract(epoch FROM available_at - now())), 0)::int FROM governance_outboxevent WHERE done_at IS NULL
"""


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for these tests alone: they kill it."""
    with installation(servers.cluster) as server:
        server.start()
        yield server


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


def assert_all_there_once(server: RunningServer, writers: Writers) -> None:
    assert writers.broken == []
    stored = Live.of(server).contents(f"namespace={writers.namespace}")
    assert sorted(stored) == sorted(writers.acknowledged)


def assert_jobs_end(server: RunningServer) -> None:
    """No event waits longer than a lease; when that is over, every memory has its vector."""
    assert number(server, LATEST_DUE) <= LEASE_SECONDS

    def ended() -> bool:
        with superuser(server) as connection:
            connection.execute(END_OF_LEASES)
        return number(server, UNDONE) == number(server, UNEMBEDDED) == 0

    wait_until(ended, seconds=30, why=server.report)
    assert number(server, "SELECT count(*) FROM governance_outboxevent WHERE parked_at IS NOT NULL") == 0


@pytest.mark.parametrize("victim", ["worker", "web", "postgres"])
def test_no_acknowledged_write_is_lost_or_doubled_when_one_is_killed(server: RunningServer, victim: str) -> None:
    wait_until(lambda: server.is_ready() and bool(child(server, victim)), seconds=20, why=server.report)
    writers = Writers(Live.of(server), namespace=f"/killed/{victim}")
    with writers.writing():
        wait_for_writes(server, writers, more=40, seconds=20)
        killed_at = kill(server, victim)
        wait_for_writes(server, writers, more=8, seconds=RECOVERY_SECONDS)  # more than could have been on their way
        assert time.monotonic() - killed_at <= RECOVERY_SECONDS
        wait_for_writes(server, writers, more=20, seconds=20)
    assert set(writers.refusals) <= {"0", "503", "409"}
    assert_all_there_once(server, writers)
    assert_jobs_end(server)


def test_writes_go_on_without_redis_and_jobs_run_when_it_is_back(server: RunningServer) -> None:
    """Killed, it is started again; hung, it hangs until it goes on."""
    wait_until(lambda: server.is_ready() and bool(child(server, "redis")), seconds=20, why=server.report)
    writers = Writers(Live.of(server), namespace="/killed/redis")
    with writers.writing():
        wait_for_writes(server, writers, more=20, seconds=20)
        kill(server, "redis")
        wait_for_writes(server, writers, more=40, seconds=20)
        wait_until(lambda: bool(child(server, "redis")), seconds=RECOVERY_SECONDS, why=server.report)
        hung = child(server, "redis")
        os.kill(hung, signal.SIGSTOP)
        try:
            wait_for_writes(server, writers, more=40, seconds=20)
            assert server.is_ready()  # writes are served, and readiness says so
        finally:
            os.kill(hung, signal.SIGCONT)
    assert writers.refusals == []
    assert_all_there_once(server, writers)
    assert_jobs_end(server)
