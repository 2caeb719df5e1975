"""Transactions of one tenant, the only way to reach the rows of a tenant.

The tenant is set inside the transaction and ends with it, so that a pooled connection keeps nothing of it.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from governance.actor import Actor
from governance.backdate import find_backdated_moment
from governance.errors import Reread
from governance.prepared import ensure_connection, prepared_cursor, send_together

# The lateral query tries the names in order and stops at the first free lock, as LIMIT reads no further row.
FREE_LOCK = """
SELECT name FROM unnest(%s::text[]) AS name WHERE pg_try_advisory_lock(hashtextextended(name, 1)) LIMIT 1
"""
AWAITED_LOCK = "SELECT pg_advisory_lock(hashtextextended(%s, 1))"
UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(%s, 1))"
Known = TypeVar("Known")
_commits: ContextVar[list[None] | None] = ContextVar("commits", default=None)
_pinned: ContextVar[bool] = ContextVar("pinned", default=False)
_known: ContextVar[dict[Hashable, Any] | None] = ContextVar("known", default=None)
_acting_for: ContextVar[UUID | None] = ContextVar("acting_for", default=None)
_person: ContextVar[UUID | None] = ContextVar("person", default=None)
_began_at: ContextVar[datetime | None] = ContextVar("began_at", default=None)  # of the transaction of a tenant
_epoch: ContextVar["Epoch | None"] = ContextVar("epoch", default=None)


@dataclass(frozen=True)
class Epoch:
    """The policy epoch: how often a tenant's policies have changed, as the last transaction of this context read it.

    `changing`: that transaction changes the policies itself and may still be rolled back.
    """

    tenant_id: UUID
    number: int
    changing: bool = False


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Open a transaction in which row-level security shows the rows of `actor`'s tenant; a nested call joins the outer
    one.

    Raises Unavailable when the database cannot be reached.
    """
    with tenant_transaction(actor.tenant_id):
        yield


@contextmanager
def tenant_transaction(tenant_id: UUID) -> Iterator[None]:
    """Open the transaction of `acting` for callers that know a tenant but have no actor yet."""
    outer = _acting_for.get()
    if outer is not None:
        if outer != tenant_id:
            raise RuntimeError("a transaction of one tenant cannot turn to another")
        yield
        return
    with _note_commit(), _transaction():
        number, began_at = _enter(tenant_id)
        remember_epoch(tenant_id, number)
        token, known, now = _acting_for.set(tenant_id), _known.set({}), _began_at.set(began_at)
        try:
            yield
        finally:
            _began_at.reset(now)
            _known.reset(known)
            _acting_for.reset(token)


@contextmanager
def _note_commit() -> Iterator[None]:
    yield
    commits = _commits.get()
    if commits is not None:
        commits.append(None)


def run_again(call: Callable[[], Known], *, is_safe: bool = False) -> Known:
    """Return the result of `call`; when it raises Reread, read the missing data and run it again.

    The transaction that lacked data is rolled back. If the call committed an earlier transaction, it runs again only
    with `is_safe`, as a read does. Raises Reread inside a transaction, and if the call cannot run again.
    """
    commits: list[None] = []
    token = _commits.set(commits)
    try:
        return call()
    except Reread as lacking:
        if connection.in_atomic_block or (commits and not is_safe):
            raise
        supplied = lacking.supply()
    finally:
        _commits.reset(token)
    with supplied:
        return run_again(call, is_safe=is_safe)


def cached_in_transaction(name: Hashable, find: Callable[[], Known]) -> Known:
    """Return the result of `find`, cached for the open transaction; without one, `find` is called each time."""
    known = _known.get()
    if known is None:
        return find()
    if name not in known:
        known[name] = find()
    found: Known = known[name]
    return found


def clear_transaction_cache() -> None:
    """Drop the cached results, because the transaction has changed what they depend on."""
    known = _known.get()
    if known is not None:
        known.clear()


@contextmanager
def no_tenant() -> Iterator[None]:
    """Open a transaction without a tenant: it reaches only the router's functions and global tables."""
    with _transaction():
        yield


@contextmanager
def transaction_without_tenant() -> Iterator[None]:
    """Batch statements as `send_together` does, for statements that set the tenant themselves.

    Raises RuntimeError within a transaction.
    """
    if connection.in_atomic_block:
        raise RuntimeError("a transaction of one tenant cannot turn to another")
    with send_together():
        yield


@contextmanager
def as_person(user_id: UUID) -> Iterator[None]:
    """Within a transaction, also show the rows of this person (password, second factor, sessions)."""
    before = _person.get()
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.user', %s, true)", [str(user_id)])
    token = _person.set(user_id)
    try:
        yield
    finally:
        _person.reset(token)
    with connection.cursor() as cursor:  # after a failure the transaction is over, and the setting with it
        cursor.execute("SELECT set_config('app.user', %s, true)", [str(before or "")])


@contextmanager
def person_transaction(tenant_id: UUID, user_id: UUID) -> Iterator[None]:
    """Open `tenant_transaction` and `as_person` with one statement, since every page needs both; not to be nested."""
    if _acting_for.get() is not None:
        raise RuntimeError("a person is not looked up within another transaction")
    with _transaction():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('app.tenant', %s, true), set_config('app.user', %s, true)",
                [str(tenant_id), str(user_id)],
            )
        tenant, person = _acting_for.set(tenant_id), _person.set(user_id)
        try:
            yield
        finally:
            _acting_for.reset(tenant)
            _person.reset(person)


def current_person() -> UUID:
    """Return the person that `as_person` has set."""
    found = _person.get()
    if found is None:
        raise RuntimeError("what belongs to a person is opened as that person alone")
    return found


def database_now() -> datetime:
    """Return the time of the transaction by the database's clock; every decision about time uses this clock."""
    return find_backdated_moment() or _began_at.get() or _ask_time()


def _ask_time() -> datetime:
    with prepared_cursor() as cursor:
        cursor.execute("SELECT transaction_timestamp()")
        [now] = cursor.fetchone()
    found: datetime = now
    return found


def epoch_now() -> Epoch:
    """Return the epoch of the open transaction. Raises RuntimeError outside of `acting`."""
    epoch = _epoch.get()
    if epoch is None or _acting_for.get() != epoch.tenant_id:
        raise RuntimeError("policies are read inside `acting`")
    return epoch


def epoch_last(tenant_id: UUID) -> Epoch | None:
    """Return the epoch that the last transaction of this request read, or None if it was of another tenant."""
    epoch = _epoch.get()
    return epoch if epoch is not None and epoch.tenant_id == tenant_id else None


def remember_epoch(tenant_id: UUID, number: int) -> None:
    """Remember the epoch that a statement returned which set the tenant itself (`governance_enter`)."""
    _epoch.set(Epoch(tenant_id, number))


def epoch_advance() -> None:
    """Advance the tenant's policy epoch in this transaction; concurrent changes wait until it ends."""
    tenant_id = epoch_now().tenant_id
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE governance_tenant SET policy_epoch = policy_epoch + 1 WHERE id = %s RETURNING policy_epoch",
            [tenant_id],
        )
        _epoch.set(Epoch(tenant_id, cursor.fetchone()[0], changing=True))


@contextmanager
def pin_connection() -> Iterator[None]:
    """Keep the connection out of the pool during this block, because it holds an advisory lock."""
    token = _pinned.set(True)
    try:
        yield
    finally:
        _pinned.reset(token)


def release_connection() -> None:
    """Give the connection back to the pool before a long wait; the next statement takes another one."""
    if not _pinned.get() and not connection.in_atomic_block:
        connection.close()


def session_connection() -> BaseDatabaseWrapper:
    """Return the connection for what belongs to a session: locks, notifications, settings.

    It is another one where the ordinary connection goes through a pooler of transactions.
    """
    return connections["direct" if "direct" in connections else "default"]


@contextmanager
def hold_free_lock(names: Sequence[str]) -> Iterator[str | None]:
    """Hold the first of the advisory locks `names` that is free, and yield its name; yield None if all are held.

    The lock belongs to the connection, not to a transaction, so a killed process leaves none behind.
    """
    with pin_connection():
        with session_connection().cursor() as cursor:
            cursor.execute(FREE_LOCK, [list(names)])
            row = cursor.fetchone()
        if row is None:
            _give_back()
            yield None
        else:
            with _unlock_afterwards(row[0]):
                yield row[0]


@contextmanager
def await_lock(name: str, *, seconds: float) -> Iterator[None]:
    """Wait for the advisory lock `name` and hold it during this block; not inside a transaction.

    Raises OperationalError after `seconds`.
    """
    with pin_connection():
        holder = session_connection()
        with transaction.atomic(using=holder.alias, durable=True), holder.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{seconds * 1000:.0f}ms"])
            cursor.execute(AWAITED_LOCK, [name])
        with _unlock_afterwards(name):
            yield


@contextmanager
def _unlock_afterwards(name: str) -> Iterator[None]:
    holder = session_connection()
    session = holder.connection
    try:
        yield
    finally:
        if holder.connection is session and not session.closed:  # a lost session has lost its lock
            with holder.cursor() as cursor:
                cursor.execute(UNLOCK, [name])
            _give_back()


def _give_back() -> None:
    """Give a connection of its own back to its pool, as the end of a request does with the ordinary one."""
    if session_connection() is not connections["default"]:
        session_connection().close()


@contextmanager
def _transaction() -> Iterator[None]:
    if connection.connection is not None and connection.connection.closed:
        release_connection()  # statements sent in one go were interrupted, and their answers nobody's to read
    ensure_connection()
    with transaction.atomic(savepoint=False):
        yield


def _enter(tenant_id: UUID) -> tuple[int, datetime]:
    """Set the tenant; return its policy epoch and the time of the transaction. All in one statement."""
    with prepared_cursor() as cursor:
        cursor.execute("SELECT governance_enter(%s), transaction_timestamp()", [tenant_id])
        number, now = cursor.fetchone()
        return int(number), now
