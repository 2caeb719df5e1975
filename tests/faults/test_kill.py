"""Web or worker may be killed while others write: what was acknowledged is there, once, and every job is done."""

import time

import pytest

from tests.faults.kills import RECOVERY_SECONDS, assert_all_there_once, assert_jobs_end, kill, wait_for_writes
from tests.harness.product import RunningServer, wait_until
from tests.journeys.live import Live, Writers, child

pytestmark = pytest.mark.long


@pytest.fixture
def server(victim: RunningServer) -> RunningServer:
    return victim


@pytest.mark.parametrize("process", ["worker", "web"])
def test_no_acknowledged_write_is_lost_or_doubled_when_one_is_killed(server: RunningServer, process: str) -> None:
    wait_until(lambda: server.is_ready() and bool(child(server, process)), seconds=20, why=server.report)
    writers = Writers(Live.of(server), namespace=f"/killed/{process}")
    with writers.writing():
        wait_for_writes(server, writers, more=40, seconds=20)
        killed_at = kill(server, process)
        wait_for_writes(server, writers, more=8, seconds=RECOVERY_SECONDS)  # more than could have been on their way
        assert time.monotonic() - killed_at <= RECOVERY_SECONDS
        wait_for_writes(server, writers, more=20, seconds=20)
    assert set(writers.refusals) <= {"0", "503", "409"}
    assert_all_there_once(server, writers)
    assert_jobs_end(server)
