"""The commands of docs/operations.md about backups, in their order, on an installation and on servers of its own."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

import psycopg
import pytest

from memos_web.backup.manifest import NAME
from memos_web.config import BlobStoreChoice
from memos_web.embedded import postgres
from memos_web.embedded.account import give, server_account
from memos_web.embedded.programs import spawn, stop_all
from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import ROOT, Servers
from tests.journeys.live import Live
from tests.production.site import Client, Site, client_programs
from tests.vault.stores import KEY_ID, REGION, SECRET, new_bucket, s3_server
from vault.providers.registry import choose_blob_store

pytestmark = pytest.mark.full
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def block(mark: str, **instead: str) -> str:
    """Return the one shell block of the page that has `mark`, with some of its text replaced."""
    texts: list[str] = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    (found,) = [text for text in texts if mark in text]
    for shown, used in {".venv/": f"{sys.prefix}/", **instead}.items():
        found = found.replace(shown, used)
    return found


def follow(text: str, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail"],
        input=text,
        cwd=ROOT,
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def test_an_installation_comes_back_by_the_commands_of_the_page(servers: Servers, tmp_path: Path) -> None:
    with installation(servers.cluster) as server:
        server.start()
        live = Live.of(server)
        memory = live.done("POST", "memories/", {"content": "The heron nests by the mill."})["results"][0]["id"]
        places = {"/backups/": f"{tmp_path}/", "/elsewhere/": f"{tmp_path}/", " var/": f" {server.data_dir}/"}
        follow(block("manage.py backup /", **places), server.settings())
        (copy,) = (tmp_path / "keys").iterdir()
        places["keystore-….sqlite3"] = copy.name
        assert "verified" in follow(block("restore --verify /backups", **places), server.settings())
        _refuse_changed_row(server, tmp_path / "2026-11-23", tmp_path / "changed")
        assert server.stop() == 0
        assert "restored" in follow(block("mv var/pg var/pg-before", **places), server.settings())
        server.start()
        assert live.done("GET", f"memories/{memory}/")["content"] == "The heron nests by the mill."


def test_a_backup_in_a_bucket_comes_back_by_the_commands_of_the_page(servers: Servers, tmp_path: Path) -> None:
    with installation(servers.cluster) as server, s3_server() as endpoint:
        server.start()
        live = Live.of(server)
        memory = live.done("POST", "memories/", {"content": "The heron nests by the mill."})["results"][0]["id"]
        backups, keys = new_bucket(endpoint), new_bucket(endpoint)
        places = {
            "https://s3.example.com": endpoint,
            "eu-central-1": REGION,
            "ID:SECRET": f"{KEY_ID}:'{SECRET}'",
            "memos-backups": backups.bucket,
            "memos-keys": keys.bucket,
            " var/": f" {server.data_dir}/",
        }
        exports, _, _ = block("manage.py backup s3", **places).partition("\n")
        assert "verified" in follow(block("manage.py backup s3", **places), server.settings())
        daily = f"{exports}\n{block('deploy/backups.py', **places)}"
        follow(daily, server.settings())
        follow(daily.replace("--keep 14", "--keep 1"), server.settings())
        assert len(names_below(backups, "daily/", NAME)) == 1
        assert len(names_below(keys, "daily/", ".sqlite3")) == 2
        refused = subprocess.run(
            [sys.executable, "deploy/backups.py", f"s3://{keys.bucket}/a", f"s3://{keys.bucket}/b", "--once"],
            cwd=ROOT, env=dict(server.settings()), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "another bucket" in refused.stderr
        assert server.stop() == 0
        (copy,) = names_below(keys, "keystore", ".sqlite3")
        (server.data_dir / "keys" / "keystore.sqlite3").unlink()
        restored = block("mv var/pg var/pg-of-before", **places, **{"keystore-….sqlite3": copy})
        assert "restored" in follow(f"{exports}\n{restored}", server.settings())
        server.start()
        assert live.done("GET", f"memories/{memory}/")["content"] == "The heron nests by the mill."


def names_below(choice: BlobStoreChoice, prefix: str, ending: str) -> list[str]:
    store = choose_blob_store(dataclasses.replace(choice, prefix=""), Path())
    return [entry.name for entry in store.entries(prefix) if entry.name.endswith(ending)]


def _refuse_changed_row(server: RunningServer, folder: Path, changed: Path) -> None:
    """A backup whose hashes are those of other rows does not pass, and its PostgreSQL does not stay."""
    subprocess.run(["cp", "-a", str(folder), str(changed)], check=True)
    manifest = json.loads((changed / "backup.json").read_text(encoding="utf-8"))
    manifest["tables"]["vault_cube"]["digest"] = "0" * 32
    (changed / "backup.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = server.manage("restore", "--verify", str(changed))
    assert done.returncode == 1
    assert "not those of the backup, in vault_cube" in done.stderr
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("memos-verify-*"))


def test_servers_of_ones_own_come_back_and_go_back_in_time_by_the_commands_of_the_page(
    servers_only: Site, tmp_path: Path
) -> None:
    site = servers_only
    assert site.manage("migrate", "--noinput", "--verbosity", "0", environ=site.owner_environ()).returncode == 0
    database, _ = site.servers
    tools = {"PATH": f"{client_programs()}{os.pathsep}{os.environ['PATH']}", "PGPORT": str(database.port)}
    archive, recovered = site.folder / "archive", site.folder / "recovered"
    archive.mkdir()
    give(archive, server_account())
    places = {
        "db.example.com/": f"{database.socket_dir}/".replace("/", "%2F")[:-3] + f":{database.port}/",
        "db.example.com": str(database.socket_dir),
        "/backups/": f"{tmp_path}/",
        "/archive": str(archive),
        "/var/lib/postgresql/recovered": str(recovered),
        "memos_owner:…": "memos_owner",
        "memos_app:…": "memos_app",
        "postgres:…": "postgres",
        "DATABASE_OWNER_PASSWORD=…": f"DATABASE_OWNER_PASSWORD={site.secrets['DATABASE_OWNER_PASSWORD']}",
        "DATABASE_APP_PASSWORD=…": f"DATABASE_APP_PASSWORD={site.secrets['DATABASE_APP_PASSWORD']}",
    }
    superuser = {**site.environ(), **tools, "PGHOST": str(database.socket_dir), "PGUSER": "postgres"}
    follow(block("archive_mode", **places), superuser)
    _restart(site, database)
    follow(block("pg_basebackup", **places), superuser)

    site.start_product()
    made = site.manage("tenant_create", "acme", "--owner", "owner@memos.example", "--name", "Acme", "--json")
    client = Client(site, json.loads(made.stdout)["api_key"])
    stays = _add(client, "The heron nests by the mill.")
    backup = site.manage(
        "backup",
        str(tmp_path / "2026-11-23"),
        environ=site.environ(
            DATABASE_BACKUP_URL=site.database_url("memos_backup", site.secrets["DATABASE_BACKUP_PASSWORD"])
        ),
    )
    assert backup.returncode == 0, backup.stderr
    with psycopg.connect(database.conninfo(database="memos"), autocommit=True) as session:
        moment = session.execute("SELECT clock_timestamp()").fetchone()
    late = _add(client, "The otter swims at night.")
    with psycopg.connect(database.conninfo(), autocommit=True) as session:
        session.execute("SELECT pg_switch_wal()")
        done = "SELECT last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1) FROM pg_stat_archiver"
        wait_until(lambda: session.execute(done).fetchone() in [(True,), (None,)], seconds=30)
    _stop_product(site)

    # As of a point in time: the memory that came later is not there.
    assert moment is not None
    at = moment[0].astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    stop_all([site.running.pop("postgres")], seconds=10)
    follow(block("recovery_target_time", **places, **{"2026-11-23 12:00:00+00": at}), superuser)
    give(recovered, server_account())
    former = site.folder / "pg-of-before"
    database.folder.rename(former)
    recovered.rename(database.folder)
    _start(site, database)
    with psycopg.connect(database.conninfo(), autocommit=True) as session:
        wait_until(lambda: session.execute("SELECT pg_is_in_recovery()").fetchone() == (False,), seconds=60)
    follow(block("erasures_apply", **places), site.environ())
    site.start_product()
    assert client.call("GET", f"/api/v1/memories/{stays}/").status == 200
    assert client.call("GET", f"/api/v1/memories/{late}/").status == 404
    _stop_product(site)

    # The daily backup, into a new database beside the former one.
    follow(block("init-database.sh", **places), {**superuser, **site.secrets})
    site.start_product()
    assert client.call("GET", f"/api/v1/memories/{stays}/").json["content"] == "The heron nests by the mill."


def _add(client: Client, content: str) -> str:
    reply = client.call("POST", "/api/v1/memories/", {"content": content})
    assert reply.status == 201, reply.body
    return str(reply.json["results"][0]["id"])


def _stop_product(site: Site) -> None:
    for name in ("beat", "worker", "web"):
        stop_all([site.running.pop(name)], seconds=10)


def _start(site: Site, database: postgres.Postgres) -> None:
    program = postgres.program(database)
    site.running["postgres"] = (program, spawn(program))
    wait_until(lambda: postgres.answers(database), seconds=60, why=site.report)


def _restart(site: Site, database: postgres.Postgres) -> None:
    stop_all([site.running.pop("postgres")], seconds=10)
    _start(site, database)
