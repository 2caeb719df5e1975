"""A PostgreSQL and a Redis as production has them: over TCP, each role with a password, nothing migrated yet."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from memos_web.backup.dump import ROLE as BACKUP_ROLE
from memos_web.embedded.account import server_account
from memos_web.embedded.bootstrap import DATABASE
from memos_web.embedded.postgres import SUPERUSER, Postgres
from memos_web.embedded.redis import Redis
from memos_web.settings.databases import APP_ROLE, OWNER_ROLE
from tests.harness.product import free_port
from tests.harness.scratch import scratch_place
from tests.harness.servers import Run, Servers

PASSWORD = "not-a-secret"


@dataclass(frozen=True)
class SeparateServers:
    """Three addresses of servers, as an operator has them."""

    database_url: str
    database_owner_url: str
    redis_url: str
    superuser_url: str = ""
    backup_url: str = ""

    def settings(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.database_url,
            "DATABASE_OWNER_URL": self.database_owner_url,
            "REDIS_URL": self.redis_url,
        }


@pytest.fixture
def separate_servers() -> Iterator[SeparateServers]:
    """Started for one test, with the roles of deploy/roles.sql and an empty database."""
    folder = Path(tempfile.mkdtemp(prefix="memos-tcp-", dir=scratch_place()))
    account = server_account()
    servers = Servers(
        postgres=Postgres(
            folder / "pg", folder / "run", folder / "postgres.log", account, tcp_port=free_port(), durable=False
        ),
        redis=Redis(
            folder / "redis", folder / "run", folder / "redis.log", account, tcp_port=free_port(), password=PASSWORD
        ),
    )
    run = Run(folder, servers)
    try:
        run.start()
        _set_passwords(servers.postgres)
        yield SeparateServers(
            database_url=_address(APP_ROLE, servers.postgres),
            database_owner_url=_address(OWNER_ROLE, servers.postgres),
            superuser_url=_address(SUPERUSER, servers.postgres),
            backup_url=_address(BACKUP_ROLE, servers.postgres),
            redis_url=f"redis://:{PASSWORD}@127.0.0.1:{servers.redis.tcp_port}",
        )
    finally:
        run.stop()


def _set_passwords(server: Postgres) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as superuser:
        for role in (APP_ROLE, OWNER_ROLE, BACKUP_ROLE, SUPERUSER):
            superuser.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(PASSWORD)))


def _address(role: str, server: Postgres) -> str:
    return f"postgresql://{role}:{PASSWORD}@127.0.0.1:{server.tcp_port}/{DATABASE}"
