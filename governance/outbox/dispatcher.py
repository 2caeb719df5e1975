"""Sends due events to the broker, in a thread of the worker. It needs PostgreSQL, and retries while Redis is down."""

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

import psycopg
from django.db import DatabaseError, connection

from governance.database import session_connection
from governance.errors import DomainError
from governance.heartbeats import Part, heartbeat
from governance.outbox.claims import park_unrouted, task_release, tasks_claim
from governance.outbox.routes import Task
from governance.outbox.services import CHANNEL
from governance.outbox.workers import worker_forget, worker_note
from governance.vocabulary import Weight

POLL_SECONDS = 2.0
GATHER_SECONDS = 0.1  # events of many small writes become one task: a task costs more than most of them
PAUSE_AFTER_FAILURE = 1.0
logger = logging.getLogger(__name__)


class BrokerDown(Exception):
    """The broker did not take a task."""


Send = Callable[[Task], None]
"""Hand a task to the broker, or raise BrokerDown."""


def dispatch_once(send: Send) -> int:
    """Claim due events, send them, and return the number of tasks that were sent.

    An event that failed before gets a task of its own, so that it cannot fail others. An event without a handler
    becomes a dead letter. Raises BrokerDown.
    """
    if parked := park_unrouted():
        logger.error("%d events have no handler: they are dead letters now", parked)
    tasks = [task for weight in Weight for task in tasks_claim(weight)]
    for position, task in enumerate(tasks):
        try:
            send(task)
        except BrokerDown:
            for waiting in tasks[position:]:
                task_release(waiting)
            raise
    return len(tasks)


def dispatch_forever(send: Send, stop: threading.Event, weights: Collection[Weight] = ()) -> None:
    """Dispatch until `stop`: after each NOTIFY, and every POLL_SECONDS for events whose time has come or whose lease
    has ended.

    weights: the queues that this worker takes. No error ends the loop, because all tenants' jobs would wait.
    """
    while not stop.is_set():
        try:
            _dispatch_until_failure(send, stop, weights)
        except (DatabaseError, psycopg.Error, DomainError, BrokerDown) as error:
            logger.warning("dispatcher pauses: %s", type(error).__name__)
        except Exception:  # the thread serves all tenants: whatever one event brings up is logged
            logger.exception("dispatcher pauses")
        _stop_listening()
        with suppress(DatabaseError, psycopg.Error):
            connection.close()
            session_connection().close()
        stop.wait(PAUSE_AFTER_FAILURE)


def _dispatch_until_failure(send: Send, stop: threading.Event, weights: Collection[Weight]) -> None:
    noted = None
    while not stop.is_set():
        heartbeat(Part.DISPATCHER)
        _listen()
        if session_connection().connection is not noted:  # a session that was lost has lost its locks
            worker_note(session_connection(), weights)
            noted = session_connection().connection
        if not dispatch_once(send):
            _wait_for_notice()
        stop.wait(GATHER_SECONDS)


def _listen() -> None:
    with session_connection().cursor() as cursor:
        cursor.execute(f"LISTEN {CHANNEL}")


def _stop_listening() -> None:
    """Stop listening before the connection goes back to the pool, where nobody reads its notifications."""
    with suppress(DatabaseError, psycopg.Error, DomainError), session_connection().cursor() as cursor:
        cursor.execute(f"UNLISTEN {CHANNEL}")
        worker_forget(session_connection())


def _wait_for_notice() -> None:
    """Wait for a notification, or take one that arrived since the last wait: the connection buffers it."""
    for _ in session_connection().connection.notifies(timeout=POLL_SECONDS, stop_after=1):
        return
