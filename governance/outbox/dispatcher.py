"""Hands due events to the broker. Runs as a thread of the worker: it needs PostgreSQL, and bears a dead Redis."""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

import psycopg
from django.db import DatabaseError, connection

from governance.errors import DomainError
from governance.outbox.services import CHANNEL, CLAIM_LIMIT, Claimed, events_claim, events_release
from governance.vocabulary import Topic

ALONE = frozenset({Topic.JOB_REQUESTED, Topic.AUDIT_EXPORT_REQUESTED})  # each may be long
POLL_SECONDS = 2.0
GATHER_SECONDS = 0.1  # events of many small writes become one job: a job costs more than most of them
PAUSE_AFTER_FAILURE = 1.0
logger = logging.getLogger(__name__)


class BrokerDown(Exception):
    """The broker did not take a job."""


Send = Callable[[Topic, UUID, Sequence[UUID]], None]
"""Hand (topic, tenant, events) to the broker, or raise BrokerDown."""


def dispatch_once(send: Send) -> int:
    """Claim what is due and send it, one job for each tenant and topic; returns how many events were sent.

    An event that failed before travels alone, so that one that always fails holds up no other.
    """
    sent = 0
    batches = list(_batches(events_claim()).items())
    for position, ((topic, tenant_id, _), events) in enumerate(batches):
        try:
            send(topic, tenant_id, [event.id for event in events])
        except BrokerDown:
            for (_, waiting_tenant, _), waiting in batches[position:]:
                events_release(tenant_id=waiting_tenant, event_ids=[event.id for event in waiting])
            raise
        sent += len(events)
    return sent


def _batches(claimed: Sequence[Claimed]) -> dict[tuple[Topic, UUID, UUID | None], list[Claimed]]:
    batches: dict[tuple[Topic, UUID, UUID | None], list[Claimed]] = defaultdict(list)
    for event in claimed:
        alone = event.id if event.attempts > 1 or event.topic in ALONE else None
        batches[(event.topic, event.tenant_id, alone)].append(event)
    return batches


def dispatch_forever(send: Send, stop: threading.Event) -> None:
    """Dispatch until `stop`: woken by NOTIFY, and every POLL_SECONDS for what has time or came back after its lease."""
    while not stop.is_set():
        try:
            while not stop.is_set():
                _listen()
                if dispatch_once(send) < CLAIM_LIMIT:
                    _wait_for_notice()
                stop.wait(GATHER_SECONDS)
        except (DatabaseError, psycopg.Error, DomainError, BrokerDown) as error:
            logger.warning("dispatcher pauses: %s", type(error).__name__)
            _listen_no_more()
            connection.close()
            stop.wait(PAUSE_AFTER_FAILURE)
    connection.close()


def _listen() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {CHANNEL}")


def _listen_no_more() -> None:
    """The connection goes back to the others, where nobody would read what it is told."""
    with suppress(DatabaseError, psycopg.Error, DomainError), connection.cursor() as cursor:
        cursor.execute(f"UNLISTEN {CHANNEL}")


def _wait_for_notice() -> None:
    """Also for one that came since the last was waited for: the connection keeps it."""
    for _ in connection.connection.notifies(timeout=POLL_SECONDS, stop_after=1):
        return
