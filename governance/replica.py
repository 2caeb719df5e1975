"""Reading on a replica of PostgreSQL (DATABASE_READ_URL): whole transactions, by the same role and its rules.

A replica is used if it has all that was committed when somebody asks. Otherwise the primary is read, and a counter says
so.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections
from prometheus_client import Counter

from governance.actor import Actor
from governance.database import acting, no_tenant

ALIAS = "replica"
PATIENCE = 1.0  # seconds for which a read waits until the replica has what is committed
PAUSE = 0.02
REST = 10.0  # seconds for which a replica that failed, or stayed behind, is not asked again
LATE_SECONDS = 60.0
WHOSE = "(SELECT system_identifier FROM pg_control_system())::text, current_database()::text, current_user::text"
# Commits that do not wait for the disk are in the log before it is written.
PRIMARY = f"""
SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
  ELSE pg_current_wal_flush_lsn() END::text, {WHOSE}
"""
REPLICA = f"""
SELECT NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= %s::pg_lsn,
  extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8, {WHOSE}
"""
READS = Counter("memos_replica_reads", "Readings for which there is a replica, by the server that read.", ["server"])
Write = Callable[[], None]

_later: ContextVar[list[Write] | None] = ContextVar("later", default=None)
_rest_until = [0.0]
logger = logging.getLogger(__name__)


class ReplicaState(StrEnum):
    UP = "up"
    LATE = "late"
    DOWN = "down"
    OTHER = "other database"


@dataclass(frozen=True)
class ReplicaHealth:
    """lag_seconds: for how long the replica has been behind; 0 if it has everything, or is down."""

    state: ReplicaState
    lag_seconds: float = 0.0


@contextmanager
def reading(actor: Actor) -> Iterator[None]:
    """Open a transaction of `acting` that only reads, on the replica if there is one.

    Audit entries of the block are written on the primary when it ends. If that fails, so does the block.
    """
    if ALIAS not in connections or connection.in_atomic_block:
        with acting(actor):
            yield
        return
    with replica_reads() as later, acting(actor):
        yield
    if later:
        with acting(actor):
            for write in later:
                write()


@contextmanager
def replica_reads() -> Iterator[list[Write]]:
    """Let this thread's transactions run on the replica during the block; yield what is put off until it has ended."""
    later: list[Write] = []
    if ALIAS not in connections or connection.in_atomic_block:
        yield later
        return
    if not _is_usable():
        READS.labels("primary").inc()
        yield later
        return
    READS.labels("replica").inc()
    primary, replica, token = connections[DEFAULT_DB_ALIAS], connections[ALIAS], _later.set(later)
    connections[DEFAULT_DB_ALIAS] = replica
    try:
        yield later
    except DatabaseError as error:
        _rest(type(error).__name__)  # the next try reads the primary
        raise
    finally:
        connections[DEFAULT_DB_ALIAS] = primary
        _later.reset(token)
        replica.close()


def put_off(write: Write) -> bool:
    """Keep a write for the primary if this transaction reads the replica; return whether it does."""
    later = _later.get()
    if later is None or connections[DEFAULT_DB_ALIAS] is not connections[ALIAS]:
        return False
    later.append(write)
    return True


def replica_health() -> ReplicaHealth | None:
    """Return the state of the replica; None where there is none."""
    if ALIAS not in connections:
        return None
    try:
        return _wait(_primary_position())
    except DatabaseError:
        return ReplicaHealth(ReplicaState.DOWN)
    finally:
        connections[ALIAS].close()


def _is_usable() -> bool:
    """Return whether the replica has what is committed now; wait for it for PATIENCE."""
    if _rest_until[0] > time.monotonic():
        return False
    position = _primary_position()
    try:
        found = _wait(position)
    except DatabaseError as error:
        _rest(type(error).__name__)
        connections[ALIAS].close()
        return False
    if found == ReplicaHealth(ReplicaState.UP):
        return True
    _rest(f"{found.state}, {found.lag_seconds:.0f} seconds behind")
    return False


def _wait(position: tuple[str, ...]) -> ReplicaHealth:
    """Wait for PATIENCE until the replica has a position of the primary; return its state. Raises DatabaseError."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = _ask(position)
        if found.state is ReplicaState.OTHER or not found.lag_seconds or time.monotonic() > deadline:
            return found
        time.sleep(PAUSE)


def _ask(position: tuple[str, ...]) -> ReplicaHealth:
    """Compare the replica with a position of the primary. Raises DatabaseError."""
    flushed, *whose = position
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(REPLICA, [flushed])
        has_all, behind, *others = cursor.fetchone()
    if others != whose:
        return ReplicaHealth(ReplicaState.OTHER)
    lag = 0.0 if has_all else max(0.001, behind or 0.0)
    return ReplicaHealth(ReplicaState.LATE if lag > LATE_SECONDS else ReplicaState.UP, lag)


def _primary_position() -> tuple[str, ...]:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(PRIMARY)
        found: Any = cursor.fetchone()
    return tuple(found)


def _rest(reason: str) -> None:
    _rest_until[0] = time.monotonic() + REST
    logger.warning("the replica is not read for %.0f seconds: %s", REST, reason)
