"""A streaming replica: web processes read it, see that it stays behind, and go on without it."""

import json
import os
from collections.abc import Iterator

import psycopg
import pytest

from memos_web.embedded import postgres
from memos_web.embedded.account import give, server_account
from memos_web.embedded.folders import make_socket_dir
from memos_web.embedded.postgres import SUPERUSER, Postgres
from memos_web.embedded.programs import spawn, stop_all
from tests.harness.product import free_port, wait_until
from tests.production.site import Client, Site, client_programs, run

pytestmark = pytest.mark.full
TOKEN = "a-token-for-metrics"


@pytest.fixture
def standby(servers_only: Site) -> Iterator[tuple[Site, Postgres]]:
    site = servers_only
    primary, _ = site.servers
    folder = site.folder / "standby"
    socket_dir = site.folder / "standby-run"
    copy = Postgres(folder, socket_dir, site.folder / "standby.log", server_account(), tcp_port=free_port())
    migrated = site.manage("migrate", "--noinput", "--verbosity", "0", environ=site.owner_environ())
    assert migrated.returncode == 0, migrated.stderr
    place = ["-h", str(primary.socket_dir), "-p", str(primary.port), "-U", SUPERUSER]
    words = ["-D", str(folder), *place, "-R", "-c", "fast"]
    made = run([str(client_programs() / "pg_basebackup"), *words], os.environ)
    assert made.returncode == 0, made.stderr
    give(folder, server_account())
    make_socket_dir(socket_dir, server_account())
    program = postgres.program(copy)
    running = [(program, spawn(program))]
    wait_until(lambda: postgres.answers(copy), seconds=30, why=site.report)
    read = site.database_url("memos_app", site.secrets["DATABASE_APP_PASSWORD"])
    site.more |= {
        "DATABASE_READ_URL": read.replace(str(site.database_port), str(copy.tcp_port)),
        "MEMOS_METRICS_TOKEN": TOKEN,
    }
    try:
        site.start_product()
        yield site, copy
    finally:
        for name in ("beat", "worker", "web"):
            if name in site.running:
                stop_all([site.running.pop(name)], seconds=10)
        stop_all(running, seconds=5)


def test_audits_are_read_on_the_replica_while_it_is_current_and_on_the_primary_otherwise(
    standby: tuple[Site, Postgres],
) -> None:
    site, copy = standby
    made = site.manage("tenant_create", "acme", "--owner", "owner@memos.example", "--name", "Acme", "--json")
    client = Client(site, json.loads(made.stdout)["api_key"])
    added = client.call("POST", "/api/v1/memories/", {"content": "The boat leaves at nine."})
    assert added.status == 201
    assert _list(client), "what was just written is there"
    assert _reads(site)["replica"] >= 1
    checks = client.call("GET", "/readyz", tls=False).json["checks"]
    assert (checks["replica"], checks["replica_lag_seconds"]) == ("up", 0.0)
    with psycopg.connect(copy.conninfo(), autocommit=True) as superuser:
        superuser.execute("SELECT pg_wal_replay_pause()")
        wait_until(lambda: _is_paused(superuser), seconds=30)
        client.call("POST", "/api/v1/memories/", {"content": "It comes back at ten."})
        before = _reads(site).get("primary", 0)
        assert _list(client), "the primary answers"
        assert _reads(site).get("primary", 0) > before
        assert client.call("GET", "/readyz", tls=False).json["checks"]["replica_lag_seconds"] > 0
        superuser.execute("SELECT pg_wal_replay_resume()")
    wait_until(lambda: "seconds behind" in site.manage("doctor").stdout, seconds=30, why=site.report)


def _is_paused(superuser: psycopg.Connection) -> bool:
    return superuser.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() == ("paused",)


def _list(client: Client) -> list[object]:
    reply = client.call("GET", "/api/v1/audit/?page_size=5")
    assert reply.status == 200, reply.body
    found: list[object] = reply.json["results"]
    return found


def _reads(site: Site) -> dict[str, float]:
    reply = Client(site, TOKEN).call("GET", "/metrics")
    lines = [line for line in reply.body.decode().splitlines() if line.startswith("memos_replica_reads_total")]
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}
