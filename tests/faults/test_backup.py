"""Row 9: a backup under load restores to equal rows, what was erased since stays erased, and wrong ones are refused."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from governance.audit.checkpoint_copies import PREFIX
from memos_web.backup.manifest import DUMP, NAME
from memos_web.fellows import STORE_ID
from tests.architecture.catalogue import findings
from tests.harness.evidence import Evidence
from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import Servers
from tests.journeys.live import Live, Writers, number, superuser
from tests.vault.stores import new_bucket, s3_server
from vault.providers.blobs_folder import FolderBlobStore
from vault.providers.ports import BlobStore
from vault.providers.registry import choose_blob_store

pytestmark = pytest.mark.full
CANARY = "vermilion"
REFERENCE = "customer-4711"


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    with installation(servers.cluster) as server:
        server.start()
        yield server


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.full)])
def store(request: pytest.FixtureRequest, server: RunningServer) -> Iterator[BlobStore]:
    """The blob store of the installation."""
    if request.param == "folder":
        yield FolderBlobStore(server.data_dir / "blobs")
        return
    with s3_server() as endpoint:
        choice = new_bucket(endpoint)
        server.stop()
        server.environ |= {
            "MEMOS_BLOB_STORE": f"s3://{choice.bucket}/{choice.prefix}",
            "MEMOS_BLOB_STORE_URL": endpoint,
            "MEMOS_BLOB_STORE_REGION": choice.region,
            "MEMOS_BLOB_STORE_KEY": f"{choice.key_id}:{choice.secret}",
        }
        server.start()
        yield choose_blob_store(choice, server.data_dir)
        server.stop()
        for name in [name for name in server.environ if name.startswith("MEMOS_BLOB_STORE")]:
            del server.environ[name]


def await_job(live: Live, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = {}

    def is_done() -> bool:
        job.update(live.done("GET", f"jobs/{job_id}/"))
        return job["status"] in {"succeeded", "failed"}

    wait_until(is_done, seconds=60)
    return job


def refusal_line(server: RunningServer, *words: str) -> str:
    """The one line with which a command refuses."""
    done = server.manage(*words)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def add_memory(live: Live, content: str, **fields: Any) -> str:
    """Store a memory; its id."""
    made = live.done("POST", "memories/", {"content": content, "allow_duplicates": True, **fields})
    return str(made["results"][0]["id"])


def names_in(store: BlobStore) -> list[str]:
    """Return the names of sealed memories: a bucket also holds the store's own id and copies of checkpoints."""
    names = [entry.name for entry in store.entries()]
    return [name for name in names if name != STORE_ID and not name.startswith(f"{PREFIX}/")]


def test_backup_under_load_restores_and_what_was_erased_since_stays_erased(
    server: RunningServer, store: BlobStore, tmp_path: Path, evidence: Evidence
) -> None:
    live, folder, keys = Live.of(server), tmp_path / "backup", tmp_path / "keys"
    stays = add_memory(live, "The heron nests by the mill.")
    gone = add_memory(live, f"The customer has a {CANARY} canary.", subject=REFERENCE)
    archived = add_memory(live, "The otter swims at night.")
    live.done("POST", f"memories/{archived}/transition/", {"to": "archived"})
    wait_until(lambda: any(f"/{archived}/" in name for name in names_in(store)), seconds=60, why=server.report)
    writers = Writers(live, "/load")
    with writers.writing():
        wait_until(lambda: len(writers.acknowledged) >= 20, seconds=30)
        done = server.manage("backup", str(folder))
        assert done.returncode == 0, done.stderr
        acknowledged = len(writers.acknowledged)
    assert acknowledged > 20
    assert server.manage("backup", "--keys", str(keys)).returncode == 0
    assert "is there already" in refusal_line(server, "backup", str(folder))
    assert "already running" in refusal_line(server, "restore", str(folder))
    assert CANARY.encode() not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    subject = live.done("GET", f"subjects/?reference={REFERENCE}")["results"][0]["id"]
    erased = await_job(live, live.done("POST", f"subjects/{subject}/erase/")["job"]["id"])
    assert erased["status"] == "succeeded", erased
    assert server.stop() == 0

    pg = server.data_dir / "pg"
    assert "move that folder away first" in refusal_line(server, "restore", str(folder))
    shutil.move(pg, tmp_path / "pg")
    store.delete(names_in(store))
    restored = server.manage("restore", str(folder))
    assert restored.returncode == 0, restored.stderr
    server.start()
    assert live.done("GET", f"memories/{stays}/")["content"] == "The heron nests by the mill."
    assert live.done("GET", f"memories/{archived}/")["content"] == "The otter swims at night."
    assert live.call("GET", f"memories/{gone}/")[0] == 404
    with superuser(server) as connection:
        for table in ("vault_cubeversion", "vault_embedding", "vault_posting"):
            statement = f"SELECT count(*) FROM {table} WHERE cube_id = %s"
            assert connection.execute(statement.encode(), [gone]).fetchone() == (0,), table
        assert findings(connection) == [], "policies, rights and owners are as before"
        connection.execute("SET ROLE memos_app")
        assert connection.execute("SELECT count(*) FROM vault_cube").fetchone() == (0,), "no row without a tenant"
    assert live.done("GET", f"subjects/{subject}/")["status"] == "erased"
    checked = server.manage("audit_verify")
    assert checked.returncode == 0, checked.stderr
    manifest = json.loads((folder / NAME).read_text(encoding="utf-8"))
    rows = sum(table["rows"] for table in manifest["tables"].values())
    load = number(server, "SELECT count(*) FROM vault_cube") - 1
    assert len(names_in(store)) == 1
    figures = {
        "tables with equal row hashes": len(manifest["tables"]),
        "rows": rows,
        "memories of the load": load,
        "holes in policies, rights and owners": 0,
    }
    evidence(row=9, name="backup-restored-s3" if store.is_remote else "backup-restored", figures=figures)


def test_what_is_no_backup_of_this_installation_is_refused_and_leaves_nothing(
    server: RunningServer, tmp_path: Path
) -> None:
    folder, copies = tmp_path / "backup", tmp_path / "keys"
    if server.has_ended():
        server.start()
    assert server.manage("backup", str(folder)).returncode == 0
    assert server.manage("backup", "--keys", str(copies)).returncode == 0
    (copy,) = copies.iterdir()
    assert server.stop() == 0
    shutil.move(server.data_dir / "pg", tmp_path / "pg")
    assert "holds no backup" in refusal_line(server, "restore", str(tmp_path))
    manifest = json.loads((folder / NAME).read_text(encoding="utf-8"))

    def change(**fields: Any) -> None:
        (folder / NAME).write_text(json.dumps(manifest | fields), encoding="utf-8")

    change(format="memos-backup/9")
    assert "this release reads memos-backup/1" in refusal_line(server, "restore", str(folder))
    change(migrations=manifest["migrations"] | {"vault": "9999_future"})
    assert "another release" in refusal_line(server, "restore", str(folder))
    change(key_store_id="00000000-0000-7000-8000-000000000000")
    assert "the keys do not fit" in refusal_line(server, "restore", str(folder))
    change(tables=manifest["tables"] | {"governance_tenant": {"rows": 0, "digest": "0" * 32}})
    assert "not those of the backup, in governance_tenant" in refusal_line(server, "restore", str(folder))
    assert not (server.data_dir / "pg").exists()
    change()
    store = server.data_dir / "keys" / "keystore.sqlite3"
    shutil.move(store, tmp_path / "keystore")
    assert "--keys" in refusal_line(server, "restore", str(folder))
    dump = (folder / DUMP).read_bytes()
    (folder / DUMP).write_bytes(dump[:-1] + bytes([dump[-1] ^ 1]))
    assert "was changed since" in refusal_line(server, "restore", str(folder), "--keys", str(copy))
    (folder / DUMP).write_bytes(dump)
    assert not store.exists()
    assert server.manage("restore", str(folder), "--keys", str(copy)).returncode == 0
    server.start()
    assert server.stop() == 0
    shutil.rmtree(tmp_path / "pg")
