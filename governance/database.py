"""One transaction, one tenant: the only way to a tenant's rows.

The tenant is set inside the transaction and is gone with it, so that a pooled connection carries nothing over.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import OperationalError, connection, transaction

from governance.actor import Actor
from governance.errors import Unavailable

Known = TypeVar("Known")
_pinned: ContextVar[bool] = ContextVar("pinned", default=False)
_known: ContextVar[dict[Hashable, Any] | None] = ContextVar("known", default=None)
_acting_for: ContextVar[UUID | None] = ContextVar("acting_for", default=None)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Open the transaction in which row-level security shows `actor`'s tenant; nested use joins the outer one.

    Raises Unavailable when the database cannot be reached.
    """
    with tenant_transaction(actor.tenant_id):
        yield


@contextmanager
def tenant_transaction(tenant_id: UUID) -> Iterator[None]:
    """`acting` for the few places that know a tenant before they have an actor."""
    outer = _acting_for.get()
    if outer is not None:
        if outer != tenant_id:
            raise RuntimeError("a transaction of one tenant cannot turn to another")
        yield
        return
    with _transaction():
        _set_tenant(tenant_id)
        token, known = _acting_for.set(tenant_id), _known.set({})
        try:
            yield
        finally:
            _known.reset(known)
            _acting_for.reset(token)


def known_in_transaction(name: Hashable, find: Callable[[], Known]) -> Known:
    """What `find` found, once for the tenant's open transaction; outside of one it is found anew each time."""
    known = _known.get()
    if known is None:
        return find()
    if name not in known:
        known[name] = find()
    found: Known = known[name]
    return found


def forget_known() -> None:
    """Find everything anew: the transaction has changed what it rests on."""
    known = _known.get()
    if known is not None:
        known.clear()


@contextmanager
def no_tenant() -> Iterator[None]:
    """A transaction before any tenant is known: nothing but the router's functions and global tables answers."""
    with _transaction():
        yield


def database_now() -> datetime:
    """The transaction's time by the database's clock, the only clock that decides."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT transaction_timestamp()")
        row = cursor.fetchone()
    now: datetime = row[0]
    return now


@contextmanager
def pinned_connection() -> Iterator[None]:
    """While a lock of the connection itself is held, nobody may give the connection back."""
    token = _pinned.set(True)
    try:
        yield
    finally:
        _pinned.reset(token)


def release_connection() -> None:
    """Give the connection back to the pool before a long wait; the next statement takes one again."""
    if not _pinned.get() and not connection.in_atomic_block:
        connection.close()


@contextmanager
def _transaction() -> Iterator[None]:
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise Unavailable("The database cannot be reached.") from error
    with transaction.atomic(savepoint=False):
        yield


def _set_tenant(tenant_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.tenant', %s, true)", [str(tenant_id)])
