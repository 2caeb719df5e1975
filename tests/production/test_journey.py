"""The product on servers of its own: from an empty PostgreSQL to a cited answer, and what it refuses."""

import json
import sys
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.harness.product import wait_until
from tests.production.site import VOLUMES, Client, Site, run, without_capabilities

pytestmark = pytest.mark.full

REFUSED = "memos: the database role {role} is not bound by row-level security; serve as memos_app"
MEMORIES = {
    "The spare key of the archive lies in the blue cabinet.": "Where is the spare key of the archive?",
    "周五的会议改到了下午三点。": "周五的会议改到几点？",
}


@pytest.fixture(scope="module")
def client(site: Site) -> Client:
    """With the first key of a first tenant."""
    made = site.manage("tenant_create", "acme", "--owner", "owner@memos.example", "--name", "Acme", "--json")
    assert made.returncode == 0, made.stderr
    reply = json.loads(made.stdout)
    assert reply["sign_in_link"].startswith("https://memos.example/sign-in/")
    return Client(site, reply["api_key"])


def test_a_question_is_answered_from_memory_before_and_after_a_restart(site: Site, client: Client) -> None:
    added = [client.call("POST", "/api/v1/memories/", {"content": content}) for content in MEMORIES]
    assert [reply.status for reply in added] == [201, 201]
    ids = [reply.json["results"][0]["id"] for reply in added]
    wait_until(partial(_are_embedded, client, ids), seconds=30, why=site.report)
    _ask(client, ids)
    site.stop_web()
    site.start_web()
    _ask(client, ids)


def _are_embedded(client: Client, ids: list[str]) -> bool:
    return not any(client.call("GET", f"/api/v1/memories/{memory_id}/").json["pending_embedding"] for memory_id in ids)


def _ask(client: Client, ids: list[str]) -> None:
    """Both questions, by search and in a chat."""
    conversation = client.call("POST", "/api/v1/conversations/", {}).json["id"]
    for memory_id, (content, question) in zip(ids, MEMORIES.items(), strict=True):
        found = client.call("POST", "/api/v1/memories/search/", {"query": question, "filters": {"source": "api"}})
        assert found.json["results"][0]["id"] == memory_id
        turn = client.call("POST", f"/api/v1/conversations/{conversation}/turns/", {"content": question})
        assert turn.status == 201
        assert content.rstrip("。") in turn.json["content"]
        assert memory_id in [citation["memory_id"] for citation in turn.json["citations"]]


def test_readiness_is_reported_without_tls_and_everything_else_is_sent_to_it(site: Site, client: Client) -> None:
    ready = client.call("GET", "/readyz", tls=False)
    assert (ready.status, ready.json["checks"]["broker"]) == (200, "up")
    plain = client.call("GET", "/api/v1/me/", tls=False)
    assert plain.status == 301
    assert plain.headers["Location"] == "https://memos.example/api/v1/me/"
    assert "Strict-Transport-Security" in client.call("GET", "/api/v1/me/").headers


def test_pages_and_their_files_are_served(site: Site) -> None:
    page = Client(site).call("GET", "/sign-in/")
    assert page.status == 200
    assert Client(site).call("GET", "/static/vendor/tabler.min.css").status == 200
    assert Client(site).call("GET", "/api/docs/").status == 200


def test_doctor_finds_nothing_wrong(site: Site) -> None:
    wait_until(lambda: site.manage("doctor").returncode == 0, seconds=60, why=lambda: site.manage("doctor").stdout)


def test_checkpoints_and_exports_are_written_by_a_user_who_can_write_the_volumes_only(
    site: Site, client: Client
) -> None:
    data = site.folder / "data"
    made = client.call("POST", "/api/v1/audit/export/", {"format": "jsonl"})
    assert made.status == 202, made.body
    address = f"/api/v1/audit/export/{made.json['id']}/"
    wait_until(lambda: client.call("GET", address).json["status"] == "succeeded", seconds=60, why=site.report)
    file = client.call("GET", f"{address}file/")
    assert (file.status, file.body[:2]) == (200, b"PK")
    assert list((data / "checkpoints").glob("*/*.jsonl"))
    assert {path.name for path in data.iterdir()} == set(VOLUMES)
    elsewhere = [sys.executable, "-c", f"open({str(data / 'here')!r}, 'w')"]
    written = run(without_capabilities(elsewhere), site.environ())
    assert written.returncode != 0, "the product can write elsewhere"
    assert client.call("GET", "/readyz").json["checks"]["checkpoints"] == "up"


def test_a_daily_backup_is_complete_and_old_ones_are_deleted(site: Site, client: Client, tmp_path: Path) -> None:
    folder, copies = tmp_path / "backups", tmp_path / "keys"
    folder.mkdir()
    address = site.database_url("memos_backup", site.secrets["DATABASE_BACKUP_PASSWORD"])
    environ = site.environ(DATABASE_BACKUP_URL=address, MEMOS_BACKUP_DAYS="2")
    command = [sys.executable, "deploy/backups.py", str(folder), str(copies)]
    assert run([*command, "--check"], environ).returncode == 1
    done = run([*command, "--once"], environ)
    assert done.returncode == 0, done.stderr
    (first,) = folder.iterdir()
    assert (first / "backup.json").is_file()
    assert list(copies.iterdir())
    assert run([*command, "--check"], environ).returncode == 0
    old = folder / "2026-01-02T03-04-05Z"
    first.rename(old)
    assert run([*command, "--check"], environ).returncode == 1
    foreign = folder / "notes"
    foreign.mkdir()
    assert run([*command, "--once"], environ).returncode == 0
    assert not old.exists()
    assert foreign.exists(), "only backups are deleted"


def test_no_process_of_the_product_knows_the_owner(site: Site) -> None:
    for name in ("web", "worker", "beat"):
        environ = Path(f"/proc/{site.running[name][1].pid}/environ").read_text(encoding="utf-8")
        assert site.secrets["DATABASE_APP_PASSWORD"] in environ
        assert site.secrets["DATABASE_OWNER_PASSWORD"] not in environ
        assert "memos_owner" not in environ


def test_the_app_role_needs_its_password_and_can_make_no_table(site: Site) -> None:
    address = site.database_url("memos_app", site.secrets["DATABASE_APP_PASSWORD"])
    with psycopg.connect(address) as app, pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute("CREATE TABLE mine (id integer)")
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(site.database_url("memos_app", "guessed"))


def test_a_wrong_password_ends_web_and_worker_with_one_clear_line(site: Site) -> None:
    environ = site.environ(DATABASE_URL=site.database_url("memos_app", "guessed"))
    for argv in (site.web_command(), site.worker_command()):
        done = run(argv, environ)
        assert done.returncode != 0
        lines = _of_ours(done.stderr)
        assert len(lines) == 1, done.stderr
        assert "password authentication failed" in lines[0]
        assert "guessed" not in done.stderr


def test_migrating_with_a_wrong_password_ends_with_one_clear_line(site: Site) -> None:
    environ = {**site.owner_environ(), "DATABASE_OWNER_URL": site.database_url("memos_owner", "guessed")}
    done = site.manage("migrate", "--noinput", environ=environ)
    assert done.returncode == 1
    assert len(_of_ours(done.stderr)) == 1, done.stderr
    assert "password authentication failed" in done.stderr
    assert "guessed" not in done.stderr


def test_serving_as_the_owner_is_refused_with_one_line(site: Site) -> None:
    address = site.database_url("memos_owner", site.secrets["DATABASE_OWNER_PASSWORD"])
    for argv in (site.web_command(), site.worker_command()):
        assert _refusal(argv, site.environ(DATABASE_URL=address)) == REFUSED.format(role="memos_owner")


def test_serving_as_a_superuser_is_refused_with_one_line(site: Site) -> None:
    database, _ = site.servers
    address = f"postgresql://postgres@{quote(str(database.socket_dir), safe='')}:{database.port}/memos"
    assert _refusal(site.web_command(), site.environ(DATABASE_URL=address)) == REFUSED.format(role="postgres")


def _refusal(argv: list[str], environ: dict[str, str]) -> str:
    done = run(argv, environ)
    assert done.returncode != 0
    lines = _of_ours(done.stderr)
    assert len(lines) == 1, done.stderr
    return lines[0]


def _of_ours(output: str) -> list[str]:
    """Return the product's lines; a traceback fails."""
    assert "Traceback" not in output, output
    return [line for line in output.splitlines() if line.startswith("memos: ")]
