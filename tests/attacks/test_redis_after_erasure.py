"""Search Redis, its files and the logs of a running product for bytes of what was erased (row 8)."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import redis as redis_client

from memos_web.config import read_config
from memos_web.embedded import redis
from tests.attacks.test_purged_bytes import files_below, pieces, swap_halves
from tests.harness.evidence import Evidence
from tests.harness.product import RunningServer, wait_until
from tests.journeys.live import UNDONE, Live, number, superuser

pytestmark = pytest.mark.full
GRACE_ENDED = (
    b"UPDATE governance_tenant SET deletion_at = now() WHERE id = %s",
    b"UPDATE governance_outboxevent SET available_at = now(), created_at = now() "
    b"WHERE topic = 'tenant.erase' AND tenant_id = %s",
)
BASE64 = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")  # the broker's messages have their body in it


@pytest.fixture
def client(running_server: RunningServer) -> Iterator[redis_client.Redis]:
    embedded = redis.of(read_config(running_server.settings()))
    assert embedded is not None
    with redis_client.Redis(unix_socket_path=str(embedded.socket)) as client:
        yield client


def dump_redis(server: RunningServer, client: Any) -> bytes:
    """Keys and values of Redis, its log of all writes, and the logs of all programs; encoded messages also decoded."""
    parts = [part for key in client.scan_iter() for part in (key, *_values(client, key))]
    parts += [path.read_bytes() for path in files_below(server.data_dir / "redis", server.data_dir / "logs")]
    whole = b"\n".join(parts)
    decoded = [
        base64.b64decode(run + b"=" * (-len(run) % 4)) for run in set(BASE64.findall(whole)) if len(run) % 4 != 1
    ]
    return b"\n".join([whole, *decoded])


def _values(client: Any, key: bytes) -> list[bytes]:
    kind = client.type(key).decode()
    if kind == "hash":
        return [part for pair in client.hgetall(key).items() for part in pair]
    if kind in {"list", "zset"}:
        return list(client.lrange(key, 0, -1) if kind == "list" else client.zrange(key, 0, -1))
    return list(client.smembers(key)) if kind == "set" else [client.get(key) or b""]


def list_stored_pieces(server: RunningServer, memory_id: str) -> list[bytes]:
    """The sealed bytes, the vectors and the hash of a memory, in pieces."""
    with superuser(server) as connection:
        rows = connection.execute(
            "SELECT sealed FROM vault_cubeversion WHERE cube_id = %(id)s UNION ALL "
            "SELECT content_hash FROM vault_cube WHERE id = %(id)s",
            {"id": memory_id},
        ).fetchall()
        vectors = connection.execute(
            "SELECT halfvec_send(vector) FROM vault_embedding WHERE cube_id = %s", [memory_id]
        ).fetchall()
    whole = [bytes(row[0]) for row in rows] + [swap_halves(bytes(row[0])[4:]) for row in vectors]
    assert len(whole) == 4, "two versions, a hash, a vector"
    return [piece for blob in whole for piece in pieces(blob)]


def await_quiet(server: RunningServer) -> None:
    wait_until(lambda: number(server, UNDONE) == 0, seconds=90, why=server.report)


def test_redis_and_logs_have_nothing_about_an_erased_subject(
    running_server: RunningServer, client: redis_client.Redis, evidence: Evidence, full_size: bool
) -> None:
    live, canary, reference = Live.of(running_server), f"canary{uuid4().hex}", f"customer{uuid4().hex}"
    ids = [_add_about(live, canary, reference, number) for number in range(20 if full_size else 2)]
    live.done("POST", "memories/?async=true", {"content": f"Later {canary}.", "subject": reference})
    conversation = live.done("POST", "conversations/", {"title": f"About {canary}"})["id"]
    live.done("POST", f"conversations/{conversation}/turns/", {"content": f"Who is {canary}?"})
    live.done("POST", "memories/search/", {"query": canary})
    await_quiet(running_server)
    wanted = [canary.encode(), reference.encode()]
    wanted += [piece for id in ids for piece in list_stored_pieces(running_server, id)]
    subject = live.done("GET", f"subjects/?reference={reference}")["results"][0]["id"]
    job = live.done("POST", f"subjects/{subject}/erase/")["job"]["id"]
    await_quiet(running_server)
    erased: dict[str, Any] = live.done("GET", f"jobs/{job}/")
    assert erased["status"] == "succeeded", erased

    figures = _search(running_server, client, wanted, message=b"subject.erase")
    evidence(row=8, name="erased-subject-redis", figures={"memories about the subject": len(ids) + 1} | figures)


def test_redis_and_logs_have_nothing_of_a_deleted_tenant(
    running_server: RunningServer, client: redis_client.Redis, evidence: Evidence, full_size: bool
) -> None:
    name = f"canary{uuid4().hex[:16]}"
    made = running_server.manage("tenant_create", name, "--owner", f"{name}@example.com", "--json")
    assert made.returncode == 0, made.stderr
    live = Live(running_server.base_url, json.loads(made.stdout)["api_key"])
    tenant = live.done("GET", "me/")["tenant"]["id"]
    ids = [_add_about(live, name, name, number) for number in range(20 if full_size else 2)]
    live.done("POST", "memories/?async=true", {"content": f"Later {name}."})
    live.done("POST", "memories/search/", {"query": name})
    await_quiet(running_server)
    wanted = [name.encode(), *(piece for id in ids for piece in list_stored_pieces(running_server, id))]
    live.done("POST", "organisation/deletion/", {"slug": name})
    with superuser(running_server) as connection:
        for statement in GRACE_ENDED:
            connection.execute(statement, [tenant])
    await_quiet(running_server)
    with superuser(running_server) as connection:
        row = connection.execute("SELECT erased_at FROM governance_tenant WHERE id = %s", [tenant]).fetchone()
    assert row is not None
    assert row[0] is not None

    figures = _search(running_server, client, wanted, message=b"tenant.erase")
    evidence(row=8, name="deleted-tenant-redis", figures={"memories of the tenant": len(ids) + 1} | figures)


def _search(server: RunningServer, client: redis_client.Redis, wanted: list[bytes], message: bytes) -> dict[str, int]:
    """Find nothing of `wanted`, but the message that asked for it and a word that is put there; the figures."""
    searched = dump_redis(server, client)
    assert message in searched
    found = sum(piece in searched for piece in wanted)
    assert found == 0
    client.set("control", base64.b64encode(b"See " + wanted[0]))
    try:
        assert wanted[0] in dump_redis(server, client)
    finally:
        client.delete("control")
        client.bgrewriteaof()  # the log of writes begins anew, without the control
    return {
        "bytes of Redis, its files and logs searched": len(searched),
        "pieces looked for": len(wanted),
        "found after the erasure": found,
    }


def _add_about(live: Live, canary: str, reference: str, number: int) -> str:
    body = {"content": f"The door is {canary}, said {number}.", "subject": reference, "allow_duplicates": True}
    memory = live.done("POST", "memories/", body)["results"][0]
    change = {"title": f"Door {canary}", "metadata": {"colour": canary}}
    live.done("PATCH", f"memories/{memory['id']}/", change, if_match='"1"')
    return str(memory["id"])
