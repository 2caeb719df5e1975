"""A fresh clone of a template for each test, reached as the app role, with real commits.

There are two templates: the migrated database, and, for tests that ask for `world`, the same with the two tenants of
tests/factories.py, which each worker founds now and then. So tests share the tenants' ids, and nothing else: what this
process keeps of a tenant is forgotten before each.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import redis as redis_client
from django.db import connection, connections
from django.test import override_settings
from psycopg import sql
from pytest_django import DjangoDbBlocker

from memos_web.embedded.bootstrap import DATABASE
from memos_web.embedded.postgres import SUPERUSER, Postgres
from memos_web.settings.databases import APP_ROLE, OWNER_ROLE
from tests import factories
from tests.factories import World
from tests.harness.servers import Servers

WORLD_SECONDS = 20.0


@dataclass(frozen=True)
class Clone:
    """The database of one test."""

    name: str
    server: Postgres

    def connect(self, user: str) -> psycopg.Connection:
        """A raw connection with autocommit; open a block with `.transaction()` where one is wanted."""
        return psycopg.connect(self.server.conninfo(database=self.name, user=user), autocommit=True)


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """pytest-django makes no database of its own: every test asks for `database`."""


@pytest.fixture(scope="session")
def maintenance(servers: Servers) -> Iterator[psycopg.Connection]:
    """The superuser, outside every clone."""
    with psycopg.connect(servers.postgres.conninfo(), autocommit=True) as superuser:
        yield superuser


@dataclass(frozen=True)
class Founded:
    """A template with the two tenants in it, the folder with their keys, and who they are."""

    template: Clone
    keys: Path
    world: World
    at: float


@pytest.fixture(scope="session")
def template_database(
    servers: Servers,
    maintenance: psycopg.Connection,
    worker_id: str,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
) -> Callable[[], Founded]:
    """Gives this worker's template of a world, which is never so old that a test could tell (an entry of the audit log
    that waits for its seal for a minute is a fault)."""
    last: list[Founded] = []

    def recent() -> Founded:
        if not last or time.monotonic() - last[-1].at > WORLD_SECONDS:
            template = _copy_database(maintenance, servers, DATABASE, f"world_{worker_id}")
            folder, at = tmp_path_factory.mktemp("world"), time.monotonic()
            with _keys_below(folder) as path, django_db_blocker.unblock(), _connect(template):
                last[:] = [Founded(template, path.parent, factories.world(), at)]
        return last[-1]

    return recent


@pytest.fixture
def founded(template_database: Callable[[], Founded]) -> Founded:
    """The template of this test's world."""
    return template_database()


@pytest.fixture
def clone(
    servers: Servers,
    maintenance: psycopg.Connection,
    worker_id: str,
    founded: Founded,
    request: pytest.FixtureRequest,
) -> Clone:
    """A copy of a template that nothing else uses; Django does not know of it (see `database`).

    The next test drops it: by then its sessions have ended, which a drop would wait for.
    """
    template = founded.template.name if "world" in request.fixturenames else DATABASE
    return _copy_database(maintenance, servers, template, f"test_{worker_id}")


def _copy_database(maintenance: psycopg.Connection, servers: Servers, template: str, copy: str) -> Clone:
    """The database `copy`, made anew."""
    name = sql.Identifier(copy)
    maintenance.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
    maintenance.execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {} STRATEGY file_copy").format(
            name, sql.Identifier(template), sql.Identifier(OWNER_ROLE)
        )
    )
    # Rights on a database are not copied with it.
    maintenance.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    maintenance.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO memos_owner, memos_app, memos_auditor").format(name))
    return Clone(name=copy, server=servers.postgres)


@pytest.fixture(scope="session")
def key_database(servers: Servers, maintenance: psycopg.Connection, worker_id: str) -> str:
    """The address of a database for keys, which belongs to a role of its own."""
    name, role = f"keys_{worker_id}", f"keys_owner_{worker_id}"
    if not maintenance.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
        maintenance.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    maintenance.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
    maintenance.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(role)))
    return f"postgresql://{role}@/{name}?host={servers.postgres.socket_dir}&port={servers.postgres.port}"


@pytest.fixture
def key_store_url(key_database: str) -> str:
    """The address of an empty database for keys."""
    with psycopg.connect(key_database) as owner:
        owner.execute("DROP SCHEMA IF EXISTS memos_keys CASCADE")
    return key_database


@pytest.fixture
def key_store_path(tmp_path: Path, request: pytest.FixtureRequest, founded: Founded) -> Iterator[Path]:
    """A new data directory for this test, with its key store: empty, or with a copy of the world's keys."""
    if "world" in request.fixturenames and founded.keys.exists():  # founding alone may have needed none
        shutil.copytree(founded.keys, tmp_path / founded.keys.name)
    with _keys_below(tmp_path) as path:
        yield path


@contextmanager
def _keys_below(folder: Path) -> Iterator[Path]:
    """The key store of the data directory `folder`; nothing is remembered of another's."""
    from governance.keys.services import key_store

    path = folder / "keys" / "keystore.sqlite3"
    with override_settings(KEY_STORE_PATH=path, DATA_DIR=folder):
        key_store.cache_clear()
        yield path
    key_store.cache_clear()


@pytest.fixture
def database(
    clone: Clone,
    key_store_path: Path,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Clone]:
    """Django's `default` connection is the app role in a fresh database, with commits that count."""
    forget_former_tests()
    with django_db_blocker.unblock(), _connect(clone):
        yield clone


def forget_former_tests() -> None:
    """Clear this process's caches of tenants, keys and people, as a new process has none."""
    from governance import database, heartbeats
    from governance.accounts.attempts import forget_local_attempts
    from governance.outbox import workers
    from governance.policies import active, rates
    from governance.tenants import last_use

    forget_local_attempts()
    heartbeats._written.clear()
    workers._counted.clear()
    active._known.clear()
    rates._rates.cache_clear()
    last_use._noted.clear()
    database._epoch.set(None)


@contextmanager
def _connect(clone: Clone) -> Iterator[None]:
    """Django's `default` connection leads to `clone`, and at the end nowhere."""
    connection.settings_dict.update(NAME=clone.name, HOST=str(clone.server.socket_dir), PORT=str(clone.server.port))
    yield
    connections.close_all()
    connection.settings_dict.update(NAME="nonexistent", HOST="/nonexistent")


@pytest.fixture
def superuser(clone: Clone) -> Iterator[Callable[[], psycopg.Connection]]:
    """Opens connections to this test's database that no policy binds."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(clone.connect(SUPERUSER))


def waiting_for_locks(watcher: psycopg.Connection) -> int:
    """Count the connections to the watcher's database that wait for each other."""
    row = watcher.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def owner_connection(clone: Clone) -> Iterator[psycopg.Connection]:
    """The role that migrates."""
    with clone.connect(OWNER_ROLE) as owner:
        yield owner


@pytest.fixture
def app_connection(clone: Clone) -> Iterator[psycopg.Connection]:
    """The role that serves; no tenant is set."""
    with clone.connect(APP_ROLE) as app:
        yield app


@pytest.fixture
def redis_address(servers: Servers, worker_id: str) -> Iterator[str]:
    """An empty Redis database of this worker's own, which Django's settings name too."""
    number = int(worker_id.removeprefix("gw")) + 1 if worker_id.startswith("gw") else 0
    address = f"unix://{servers.redis.socket}?db={number}"
    client = redis_client.Redis.from_url(address)
    client.flushdb()
    client.close()
    broker = f"redis+socket://{servers.redis.socket}?virtual_host={number}"
    with override_settings(REDIS_ADDRESS=address, CELERY_BROKER_URL=broker):
        yield address
