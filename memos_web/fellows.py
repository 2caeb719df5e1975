"""Nodes compare what they share: a process refuses to serve beside fellows with other keys or another blob store.

Each session of a serving process has a name in `pg_stat_activity`, with digests of its key store and its blob store.
The names end with the sessions, so that nothing has to be forgotten when a machine is lost.
"""

import threading
from typing import Any, cast
from uuid import uuid4

import psycopg
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from governance.database import no_tenant, session_connection
from governance.errors import KeyUnavailable, Unavailable
from governance.keys.places import digest_of
from governance.keys.services import rotating_key_store
from vault.providers.ports import BlobStore, BlobStoreUnavailable
from vault.providers.registry import blob_store

PREFIX = "memos node"
STORE_ID = "store-id"  # the blob that names the blob store
UNKNOWN = "?"  # stands for a blob store that did not answer at the start
GATE = "SELECT pg_advisory_xact_lock(hashtext('memos nodes'))"
FELLOWS = """
SELECT DISTINCT application_name, coalesce(host(client_addr), 'this machine') FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name LIKE 'memos node %'
"""
_own_session: list[psycopg.Connection[Any]] = []
_own_lock = threading.Lock()
OTHER_KEYS = "The process at {} uses another key store: give all of them the same MEMOS_KEY_STORE_URL"
OTHER_BLOBS = "The process at {} uses another blob store: give all of them the same MEMOS_BLOB_STORE"


def join_fellows() -> None:
    """Compare this process with its fellows, and give its sessions its name. Raises Unavailable.

    One process at a time does so: of two that differ, the second sees the first.
    """
    holder = session_connection()
    parameters = {**holder.get_connection_params(), "connect_timeout": 5}
    try:
        with psycopg.connect(**parameters) as gate:
            gate.execute(GATE)
            blobs = _blobs_digest(blob_store(), is_named=True)
            _refuse_strangers(gate.execute(FELLOWS).fetchall(), blobs)
            holder.close()
            if holder.settings_dict["OPTIONS"].get("pool"):
                cast(DatabaseWrapper, holder).close_pool()
            name = f"{PREFIX} {rotating_key_store().place.fingerprint()} {blobs}"
            holder.settings_dict["OPTIONS"]["application_name"] = name
            with no_tenant():
                connection.ensure_connection()  # from now on others see it
            _keep_own_session()
    except psycopg.Error as error:
        raise Unavailable("The database does not say which nodes there are.") from error


def _keep_own_session() -> None:
    """Keep a session open under this process's name, where its other sessions are those of a pooler."""
    holder = session_connection()
    if holder is connections["default"]:
        return
    with _own_lock:
        try:
            if _own_session:
                _own_session[0].execute("SELECT 1")
                return
        except psycopg.Error:  # the server was restarted
            _own_session.pop().close()
        _own_session.append(
            psycopg.connect(**{**holder.get_connection_params(), "connect_timeout": 5}, autocommit=True)
        )


def refuse_strangers() -> None:
    """Raise Unavailable if another process has other keys or another blob store. It says which."""
    if _own_name():
        _keep_own_session()
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(FELLOWS)
        fellows = cursor.fetchall()
    if fellows:
        _refuse_strangers(fellows, _own_name().rpartition(" ")[2] or _blobs_digest(blob_store()))


def _own_name() -> str:
    """Return the name that this process has joined its fellows by; empty if it has not."""
    return str(session_connection().settings_dict["OPTIONS"].get("application_name") or "")


def _refuse_strangers(fellows: list[tuple[Any, ...]], blobs: str) -> None:
    keys = rotating_key_store().fingerprints() if fellows else frozenset()
    for name, where in fellows:
        others, other_blobs = str(name).removeprefix(PREFIX).split()
        if others not in keys:
            raise KeyUnavailable(OTHER_KEYS.format(where))
        if UNKNOWN not in {blobs, other_blobs} and blobs != other_blobs:
            raise Unavailable(OTHER_BLOBS.format(where))


def _blobs_digest(store: BlobStore, *, is_named: bool = False) -> str:
    """Return a digest of the id in a blob store, by which nodes know that it is the same. is_named: write a new id to
    a store without one."""
    try:
        found = store.read(STORE_ID)
        if found is None and is_named:
            store.write(STORE_ID, uuid4().hex.encode())
            found = store.read(STORE_ID)
    except BlobStoreUnavailable:
        return UNKNOWN
    return digest_of((found or b"").hex())
