"""Redis with sentinels: the primary is killed, another one takes its place, and counting, jobs and readiness go on."""

import json
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.test import override_settings

from governance.redis_address import count_sentinels, redis_client
from governance.volatile import volatile
from memos_web.config import read_config
from memos_web.health import Checks, _broker
from memos_web.management.checks import Failed, redis_server
from memos_web.settings.databases import redis_address
from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.scratch import scratch_place
from tests.harness.sentinels import Watched, sentinels_running
from tests.harness.servers import Servers

FAILOVER_SECONDS = 10.0


@pytest.fixture
def watched() -> Iterator[Watched]:
    with (
        tempfile.TemporaryDirectory(prefix="memos-sentinels-", dir=scratch_place()) as folder,
        sentinels_running(Path(folder)) as watched,
    ):
        yield watched


def test_another_primary_is_used_when_the_first_is_lost_and_lost_sentinels_show(watched: Watched) -> None:
    address = redis_address(read_config({"REDIS_URL": watched.url}), 0)
    with override_settings(REDIS_ADDRESS=address):
        assert volatile(lambda client: client.set("name", "value")) is True
        assert redis_server().endswith(", by 3 of 3 sentinels")
        watched.kill(watched.primary)
        wait_until(lambda: _get(address) == b"value", seconds=FAILOVER_SECONDS, why=watched.report)
        checks: Checks = {}
        assert _broker(checks), checks
        assert checks == {"sentinels": "up", "broker": "up"}
        for port in watched.sentinels[:2]:
            watched.kill(port)
        assert count_sentinels(address, timeout=0.2) == (1, 3)
        assert not _broker(checks), "a primary that is lost now would not be replaced"
        assert checks == {"sentinels": "few", "broker": "up"}
        with pytest.raises(Failed, match="1 of 3 sentinels answer"):
            redis_server()


def _get(address: str) -> object:
    with redis_client(address, timeout=0.2) as client:
        try:
            return client.get("name")
        except redis.RedisError:
            return None


@pytest.mark.full
def test_jobs_and_calls_go_on_when_the_primary_is_killed(watched: Watched, servers: Servers) -> None:
    with installation(servers.cluster, REDIS_URL=watched.url) as server:
        server.start()
        wait_until(lambda: server.manage("doctor").returncode == 0, seconds=60, why=server.report)
        assert _call(server, "POST", "memories/", {"content": "The boat leaves at nine."})["results"]
        watched.kill(watched.primary)
        killed, ids = time.monotonic(), list[str]()
        while time.monotonic() - killed < FAILOVER_SECONDS:  # each call is answered, none with 503
            added = _call(server, "POST", "memories/", {"content": f"Note {len(ids)} of the crew."})
            ids.append(added["results"][0]["id"])
        wait_until(lambda: not _is_waiting(server, ids), seconds=60, why=server.report)
        checks = json.loads(server.manage("doctor", "--json").stdout)["checks"]
        (found,) = [check for check in checks if check["check"] == "redis"]
        assert (found["ok"], found["detail"].endswith("by 3 of 3 sentinels")) == (True, True)


def _is_waiting(server: RunningServer, ids: list[str]) -> bool:
    return any(_call(server, "GET", f"memories/{each}/")["pending_embedding"] for each in ids)


def _call(server: RunningServer, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {server.first_run['api_key']}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"{server.base_url}/api/v1/{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
        return found
