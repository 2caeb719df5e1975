"""Runs a task in its own thread with a heartbeat, and abandons a thread that exceeds its time limit."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, connection, connections

from governance.errors import DomainError
from governance.outbox.routes import Task, route_of
from governance.outbox.runner import lease_renew, task_fail, task_run

MOST_STUCK = 8  # threads that hang; with more, the process ends, and whoever started it starts another
TIMED_OUT = "TimeLimit: The handler did not end within {seconds:.0f} seconds."
logger = logging.getLogger(__name__)
_stuck: list[threading.Thread] = []


def task_watch(task: Task, *, stop_worker: Callable[[], None] | None = None) -> int:
    """Run a task and renew its lease until the time limit of its topic, after which the run has failed.

    A thread cannot be stopped from outside. One that hangs is abandoned; its later writes are refused, because its
    lease has ended. Return the number of events that ended.
    """
    ended: list[int] = []
    limit = route_of(task.topic).limit.total_seconds()
    thread = threading.Thread(target=_run, args=(task, ended), name=f"job {task.topic}", daemon=True)
    thread.start()
    deadline = time.monotonic() + limit
    while True:
        thread.join(min(settings.OUTBOX_LEASE_SECONDS / 3, max(deadline - time.monotonic(), 0.01)))
        if not thread.is_alive():
            return sum(ended)
        if time.monotonic() >= deadline and _end_run(task, limit):
            _abandon_thread(thread, stop_worker or _end_process)
            return 0
        _heartbeat(task)


def _run(task: Task, ended: list[int]) -> None:
    try:
        ended.append(task_run(task))
    finally:
        connections.close_all()


def _end_run(task: Task, limit: float) -> bool:
    """End a run that is over its limit, and return whether it was ended. A run that commits, or waits for an
    unavailable database, gets a little more time.
    """
    try:
        return task_fail(task, TIMED_OUT.format(seconds=limit)) > 0
    except (DatabaseError, DomainError) as error:
        logger.warning("a job over its time limit was not ended: %s", type(error).__name__)
        return False
    finally:
        connection.close()


def _heartbeat(task: Task) -> None:
    try:
        lease_renew(task)
    except (DatabaseError, DomainError) as error:
        logger.warning("a lease was not renewed: %s", type(error).__name__)
    finally:
        connection.close()


def _abandon_thread(thread: threading.Thread, stop_worker: Callable[[], None]) -> None:
    logger.error("%s hangs: its thread is left alone", thread.name)
    _stuck[:] = [thread for thread in _stuck if thread.is_alive()] + [thread]
    if len(_stuck) > MOST_STUCK:
        logger.critical("%d threads hang: the worker ends, to be started anew", len(_stuck))
        stop_worker()


def _end_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
