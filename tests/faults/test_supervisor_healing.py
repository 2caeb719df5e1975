"""Whatever dies is started again; whatever is stopped is gone; and no start loses what was there."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests.harness.processes import descendants, is_alive
from tests.harness.product import RunningServer, installation, wait_until

pytestmark = pytest.mark.long
PROGRAMS = {
    "postgres": "bin/postgres -D",
    "redis": "bin/redis-server",
    "web": "uvicorn memos_web.asgi",
    "worker": "memos_web worker",
    "beat": "memos_web beat",
}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """An installation for these tests alone: they kill it."""
    with installation() as server:
        server.start()
        yield server


@pytest.fixture(autouse=True)
def started(server: RunningServer) -> None:
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
    """What the first tenant's key reads through REST; None while that is not answered."""
    key = server.first_run["api_key"]
    request = urllib.request.Request(f"{server.base_url}/api/v1/me/", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            name: str = json.load(answer)["tenant"]["name"]
            return name
    except OSError:
        return None


def replaced(server: RunningServer, name: str, old: int) -> Callable[[], bool]:
    return lambda: child(server, name) not in {None, old}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_killed_program_is_back_within_ten_seconds(server: RunningServer, name: str) -> None:
    old = child(server, name)
    assert old is not None
    os.kill(old, signal.SIGKILL)
    deadline = time.monotonic() + 10
    wait_until(replaced(server, name, old), seconds=10, why=server.report)
    wait_until(
        lambda: server.is_ready() and tenant_name(server) == "Home",
        seconds=max(0.0, deadline - time.monotonic()),
        why=server.report,
    )


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


def test_the_first_run_file_is_for_its_owner_alone_and_complete(server: RunningServer) -> None:
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
    assert len(answer["checks"]) == 13
