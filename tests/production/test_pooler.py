"""The product behind PgBouncer in transaction mode, with its own processes."""

import json
import os
import shutil
from collections.abc import Iterator

import pytest

from memos_web.embedded.account import give, server_account
from memos_web.embedded.programs import Program, spawn, stop_all
from tests.harness.product import free_port, wait_until
from tests.production.site import Client, Site, run

PGBOUNCER = shutil.which("pgbouncer")
pytestmark = [pytest.mark.full, pytest.mark.apart(PGBOUNCER is not None, "PgBouncer")]


@pytest.fixture
def pooled(servers_only: Site) -> Iterator[Site]:
    """The site, whose processes reach PostgreSQL through PgBouncer, and directly for sessions."""
    site, port, folder = servers_only, free_port(), servers_only.folder / "pgbouncer"
    folder.mkdir()
    password = site.secrets["DATABASE_APP_PASSWORD"]
    (folder / "users.txt").write_text(f'"memos_app" "{password}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\nmemos = host=127.0.0.1 port={site.database_port} dbname=memos\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = plain\n"
        f"auth_file = {folder}/users.txt\npool_mode = transaction\ndefault_pool_size = 5\n"
    )
    give(folder, server_account())
    argv = (str(PGBOUNCER), str(folder / "pgbouncer.ini"))
    libraries = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    program = Program("pgbouncer", argv, site.folder / "pgbouncer.log", libraries, account=server_account())
    running = (program, spawn(program))
    migrated = site.manage("migrate", "--noinput", "--verbosity", "0", environ=site.owner_environ())
    assert migrated.returncode == 0, migrated.stderr
    direct = site.database_url("memos_app", password)
    site.more |= {"DATABASE_URL": direct.replace(str(site.database_port), str(port)), "DATABASE_DIRECT_URL": direct}
    try:
        site.start_product()
        yield site
    finally:
        for name in ("beat", "worker", "web"):
            if name in site.running:
                stop_all([site.running.pop(name)], seconds=10)
        stop_all([running], seconds=5)


def test_a_question_is_answered_and_jobs_run_behind_pgbouncer(pooled: Site) -> None:
    made = pooled.manage("tenant_create", "acme", "--owner", "owner@memos.example", "--name", "Acme", "--json")
    assert made.returncode == 0, made.stderr
    client = Client(pooled, json.loads(made.stdout)["api_key"])
    added = client.call("POST", "/api/v1/memories/", {"content": "The spare key lies in the blue cabinet."})
    memory = added.json["results"][0]["id"]
    wait_until(
        lambda: not client.call("GET", f"/api/v1/memories/{memory}/").json["pending_embedding"],
        seconds=30,
        why=pooled.report,
    )
    conversation = client.call("POST", "/api/v1/conversations/", {}).json["id"]
    for _ in range(10):
        turn = client.call("POST", f"/api/v1/conversations/{conversation}/turns/", {"content": "Where is the key?"})
        assert "blue cabinet" in turn.json["content"]
    wait_until(lambda: pooled.manage("doctor").returncode == 0, seconds=60, why=lambda: pooled.manage("doctor").stdout)
    strange = run(pooled.web_command(), pooled.environ(MEMOS_DATA_DIR=str(pooled.folder / "tmp")))
    assert strange.returncode != 0, "nodes are seen behind a pooler, too"
