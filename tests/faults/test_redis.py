"""Row 10: Redis is killed, hangs and is emptied. Writes go on, and each job runs once, soon after Redis is back."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
import redis as redis_client

from memos_web.config import read_config
from memos_web.embedded import redis
from tests.faults.kills import (
    LEASE_SECONDS,
    assert_all_there_once,
    assert_jobs_end,
    assert_no_dead_letter,
    list_lost,
    wait_for_writes,
)
from tests.harness.evidence import Evidence
from tests.harness.product import RunningServer, wait_until
from tests.journeys.live import UNDONE, UNEMBEDDED, Live, Writers, child, number, superuser

pytestmark = pytest.mark.full
OUTAGE_SECONDS = 60.0
JOB_SECONDS = 1.0
LEAST_SUCCEEDED = 0.999
# Seconds until the dispatcher gives up: redis-py tries four times, each for the socket_timeout of
# CELERY_BROKER_TRANSPORT_OPTIONS, with up to 1, 2 and 4 seconds between.
BROKER_PATIENCE = 27.0
UNFINISHED = "SELECT count(*) FROM governance_job WHERE kind = 'memories.add' AND status <> 'succeeded'"
# An event that the broker did not take counts as done: what a dispatcher does that keeps no record of its own.
FORGET_REFUSED = """
CREATE FUNCTION test_forget() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN NEW.done_at := now(); RETURN NEW; END $$;
CREATE TRIGGER test_forget BEFORE UPDATE ON governance_outboxevent FOR EACH ROW
  WHEN (OLD.lease IS NOT NULL AND NEW.lease IS NULL AND NEW.done_at IS NULL AND NEW.parked_at IS NULL
    AND NEW.last_error = '')
  EXECUTE FUNCTION test_forget();
"""
REMEMBER = "UPDATE governance_outboxevent SET done_at = NULL WHERE done_at IS NOT NULL AND attempts = 0"
FORGET_NO_MORE = "DROP TRIGGER test_forget ON governance_outboxevent; DROP FUNCTION test_forget()"


@pytest.fixture
def server(victim: RunningServer) -> RunningServer:
    return victim


def wait(seconds: float, each: Callable[[], object] = lambda: None) -> None:
    """Call `each` twice a second for so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        each()
        time.sleep(0.5)


def kill_redis(server: RunningServer, seconds: float) -> None:
    """The supervisor starts it again each time; in the end it stays."""

    def kill() -> None:
        if pid := child(server, "redis"):
            os.kill(pid, signal.SIGKILL)

    wait(seconds, kill)


def hung(server: RunningServer, seconds: float) -> None:
    wait_until(lambda: bool(child(server, "redis")), seconds=20, why=server.report)
    pid = child(server, "redis")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait(seconds, lambda: _check_service(server))
    finally:
        os.kill(pid, signal.SIGCONT)


def _check_service(server: RunningServer) -> None:
    assert server.is_ready(), "writes are served, and readiness says so"


def flush_redis(server: RunningServer, seconds: float) -> None:
    embedded = redis.of(read_config(server.settings()))
    assert embedded is not None
    client = redis_client.Redis(unix_socket_path=str(embedded.socket))
    with client:
        wait(seconds, client.flushall)


def is_back(server: RunningServer) -> bool:
    embedded = redis.of(read_config(server.settings()))
    return embedded is not None and redis.answers(embedded)


@contextmanager
def two_kinds(server: RunningServer, name: str) -> Iterator[tuple[Writers, Writers]]:
    """Writers whose memories are there at once, and a writer whose memories a job adds, one each JOB_SECONDS."""
    live = Live.of(server)
    now = Writers(live, f"/redis/{name}/now")
    later = Writers(live, f"/redis/{name}/later", is_async=True, pause=JOB_SECONDS)
    with ExitStack() as stack:
        stack.enter_context(now.writing(2))
        stack.enter_context(later.writing(1))
        yield now, later


FAULTS = pytest.mark.parametrize("fault", [kill_redis, hung, flush_redis])


@FAULTS
def test_writes_go_on_and_each_job_runs_once(
    server: RunningServer,
    fault: Callable[[RunningServer, float], None],
    evidence: Evidence,
    full_size: bool,
) -> None:
    wait_until(server.is_ready, seconds=30, why=server.report)
    with two_kinds(server, fault.__name__) as (now, later):
        for writers in (now, later):
            wait_for_writes(server, writers, more=2, seconds=60)
        fault(server, OUTAGE_SECONDS if full_size else 3.0)
        wait_until(lambda: is_back(server), seconds=20, why=server.report)
        back_at = time.monotonic()
        for writers in (now, later):
            wait_for_writes(server, writers, more=2, seconds=60)
    requests = [len(writers.acknowledged) + len(writers.refusals) for writers in (now, later)]
    succeeded = sum(len(writers.acknowledged) for writers in (now, later)) / sum(requests)
    assert succeeded >= LEAST_SUCCEEDED
    if not full_size:
        assert_jobs_end(server)
    wait_until(lambda: number(server, UNDONE) == 0, seconds=300, why=server.report)
    waited = time.monotonic() - back_at
    assert number(server, UNFINISHED) == number(server, UNEMBEDDED) == 0
    assert_no_dead_letter(server)
    for writers in (now, later):
        assert_all_there_once(server, writers)
    figures = {
        "seconds without Redis": OUTAGE_SECONDS,
        "requests": sum(requests),
        "share answered 2xx": round(succeeded, 5),
        "jobs asked for": len(later.acknowledged),
        "jobs lost or run twice": 0,
        "seconds until the last job was done": round(waited, 1),
    }
    evidence(row=10, name=f"redis-{fault.__name__}", figures=figures)
    assert not full_size or waited <= LEASE_SECONDS


@contextmanager
def forgetting_dispatcher(server: RunningServer) -> Iterator[None]:
    """At the end, what was forgotten is due again."""
    with superuser(server) as connection:
        connection.execute(FORGET_REFUSED)
    try:
        yield
    finally:
        with superuser(server) as connection:
            connection.execute(FORGET_NO_MORE)
            connection.execute(REMEMBER)


def test_a_dispatcher_that_forgets_what_the_broker_refused_shows(server: RunningServer) -> None:
    with forgetting_dispatcher(server):
        with two_kinds(server, "forgetting") as (_, later):
            wait_for_writes(server, later, more=2, seconds=60)
            hung(server, BROKER_PATIENCE + 3.0)
        wait_until(lambda: number(server, UNDONE) == 0, seconds=90, why=server.report)
        assert list_lost(server, later)
        assert number(server, UNFINISHED) > 0
        with pytest.raises(AssertionError):
            assert_all_there_once(server, later)
