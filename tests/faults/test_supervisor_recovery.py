"""Tests of the supervisor: ended processes restart, stopped ones are gone, and no start loses data."""

import http.client
import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memos_web.config import read_config
from memos_web.embedded.product_programs import health_path
from tests.harness.processes import descendants, is_alive
from tests.harness.product import RunningServer, installation, wait_until

pytestmark = pytest.mark.full
PROGRAMS = {
    "postgres": "bin/postgres -D",
    "redis": "/valkey-server",
    "web": "memos_web.embedded.web_process",
    "worker": "memos_web worker",
    "beat": "memos_web beat",
}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """An installation for these tests alone: they kill it."""
    with installation(MEMOS_WEB_PROCESSES="2") as server:
        server.start()
        yield server


@pytest.fixture(autouse=True)
def started_server(server: RunningServer) -> None:
    """Each test finds it whole, whatever the one before left."""
    if server.has_ended():
        server.start()
    wait_until(
        lambda: server.is_ready() and all(child(server, name) for name in PROGRAMS), seconds=20, why=server.report
    )


def child(server: RunningServer, name: str) -> int | None:
    """The process of one program of this installation."""
    found = [pid for pid, line in descendants(server.pid).items() if PROGRAMS[name] in line]
    return min(found) if found else None


def tenant_name(server: RunningServer) -> str | None:
    """Return the tenant's name, read by its first key through REST; None while there is no answer."""
    key = server.first_run["api_key"]
    request = urllib.request.Request(f"{server.base_url}/api/v1/me/", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            name: str = json.load(answer)["tenant"]["name"]
            return name
    except OSError:
        return None


def make_replacement_check(server: RunningServer, name: str, old: int) -> Callable[[], bool]:
    return lambda: child(server, name) not in {None, old}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_killed_program_is_back_within_ten_seconds(server: RunningServer, name: str) -> None:
    old = child(server, name)
    assert old is not None
    os.kill(old, signal.SIGKILL)
    deadline = time.monotonic() + 10
    wait_until(make_replacement_check(server, name, old), seconds=10, why=server.report)
    wait_until(
        lambda: server.is_ready() and tenant_name(server) == "Home",
        seconds=max(0.0, deadline - time.monotonic()),
        why=server.report,
    )


def web_processes(server: RunningServer) -> set[int]:
    return {pid for pid, line in descendants(server.pid).items() if PROGRAMS["web"] in line}


def test_a_web_process_that_answers_nothing_is_replaced_while_another_serves(server: RunningServer) -> None:
    wait_until(lambda: len(web_processes(server)) == 2, seconds=20, why=server.report)
    wait_until(lambda: all_listen(server), seconds=30, why=server.report)
    stopped = min(web_processes(server))
    os.kill(stopped, signal.SIGSTOP)
    wait_until(
        lambda: tenant_name(server) == "Home" and stopped not in web_processes(server), seconds=15, why=server.report
    )
    assert "web does not answer" in server.log.read_text() or "web-2 does not answer" in server.log.read_text()
    wait_until(lambda: len(web_processes(server)) == 2 and all_listen(server), seconds=30, why=server.report)


def all_listen(server: RunningServer) -> bool:
    """True once each web process has answered on its own socket."""
    return _of_each(server, "/healthz") == [200, 200]


def _of_each(server: RunningServer, address: str, key: str = "", body: object = None) -> list[int]:
    """The status that each of the two web processes answers to one request; 0 for no answer."""
    config = read_config(server.settings())
    return [_status(health_path(config, number), address, key, body) for number in (1, 2)]


def _status(path: Path, address: str, key: str, body: object) -> int:
    connection = http.client.HTTPConnection("localhost")
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} if key else {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own:
        own.settimeout(10)
        connection.sock = own
        try:
            own.connect(str(path))
            connection.request("POST" if body else "GET", address, json.dumps(body) if body else None, headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0


def _call(server: RunningServer, method: str, address: str, body: object = None) -> dict[str, Any]:
    """A call of the first tenant's owner, answered by any web process."""
    request = urllib.request.Request(
        f"{server.base_url}/api/v1/{address}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {server.first_run['api_key']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.loads(answer.read() or "{}"))


def test_each_web_process_refuses_what_was_revoked_at_its_next_request(server: RunningServer) -> None:
    """A memory, a policy and a key, each used in both processes before, is changed by one of them."""
    wait_until(lambda: all_listen(server), seconds=30, why=server.report)
    made = _call(server, "POST", "api-keys/", {"scopes": ["memories:read", "memories:write"]})
    key, memories = made["api_key"], "/api/v1/memories/"
    [memory] = _call(server, "POST", "memories/", {"content": "A heron."})["results"]
    assert _of_each(server, f"{memories}{memory['id']}/", key) == [200, 200]
    _call(server, "DELETE", f"memories/{memory['id']}/")
    assert _of_each(server, f"{memories}{memory['id']}/", key) == [404, 404]

    personal = {"content": "Write to ana@example.com.", "allow_duplicates": True}
    assert _of_each(server, memories, key, personal) == [201, 201]
    policy = _call(server, "POST", "policies/", {"kind": "pii", "name": "refuse", "document": {"action": "refuse"}})
    assert _of_each(server, memories, key, personal) == [400, 400]
    _call(server, "DELETE", f"policies/{policy['id']}/")
    assert _of_each(server, memories, key, personal) == [201, 201]

    _call(server, "DELETE", f"api-keys/{made['id']}/")
    assert _of_each(server, "/api/v1/me/", key) == [401, 401]


def test_a_child_never_learns_the_owners_address_or_the_terminals_signals(server: RunningServer) -> None:
    for name in PROGRAMS:
        pid = child(server, name)
        assert pid is not None
        with open(f"/proc/{pid}/environ", encoding="utf-8") as environ:
            assert "DATABASE_OWNER_URL" not in environ.read()
        assert os.getsid(pid) == pid


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_stops_all_within_ten_seconds_and_a_restart_finds_the_data(
    server: RunningServer, stop_signal: signal.Signals
) -> None:
    below = descendants(server.pid)
    assert server.process is not None
    os.kill(server.pid, stop_signal)
    assert server.process.wait(timeout=10) == 0
    assert [line for pid, line in below.items() if is_alive(pid)] == []
    first = server.first_run
    server.start()
    assert tenant_name(server) == "Home"
    assert server.first_run == first


def test_a_killed_supervisor_leaves_no_process_and_no_lock(server: RunningServer) -> None:
    below = descendants(server.pid)
    assert server.process is not None
    server.process.kill()
    server.process.wait()
    server.start()  # at once, while the last ones may still be going down
    assert [line for pid, line in below.items() if is_alive(pid)] == []
    assert tenant_name(server) == "Home"


def test_first_run_file_is_readable_by_its_owner_only_and_complete(server: RunningServer) -> None:
    mode = (server.data_dir / "first-run.json").stat().st_mode & 0o777
    assert mode == 0o600
    assert set(server.first_run) == {"url", "sign_in_link", "api_key", "tenant", "email"}
    assert server.first_run["url"] == server.base_url
    assert server.first_run["tenant"] == "home"


def test_the_key_is_printed_to_no_file(server: RunningServer) -> None:
    assert server.first_run["api_key"] not in server.report()
    assert server.first_run["api_key"] not in server.log.read_text()


def test_doctor_finds_a_running_server_healthy(server: RunningServer) -> None:
    wait_until(lambda: server.manage("doctor").returncode == 0, seconds=30, why=lambda: server.manage("doctor").stdout)
    answer = json.loads(server.manage("doctor", "--json").stdout)
    assert answer["ok"]
    assert next(check["detail"] for check in answer["checks"] if check["check"] == "redis").startswith("Valkey 9.")
    assert {check["check"] for check in answer["checks"]} >= {"disk", "key store", "dispatcher", "sealer", "beat"}
