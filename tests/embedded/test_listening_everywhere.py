"""`MEMOS_HOST=0.0.0.0`: what a person reads on the way to a server that other machines can open."""

import http.client
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import ROOT, Servers

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    with installation(servers.cluster, MEMOS_HOST="0.0.0.0") as server:
        server.start()
        wait_until(lambda: "MemOS Web is at" in server.log.read_text(), seconds=20, why=server.report)
        yield server


def answer_to(server: RunningServer, host: str, path: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path, headers={"Host": f"{host}:{server.port}"})
    answer = connection.getresponse()
    found = answer.status, answer.headers["Content-Type"], answer.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "text/html"), ("/healthz/", "text/html"), ("/api/v1/me/", "application/problem+json")],
)
def test_unknown_host_name_is_answered_with_the_setting_to_change(server: RunningServer, path: str, kind: str) -> None:
    status, content_type, body = answer_to(server, "192.0.2.7", path)
    assert (status, content_type.partition(";")[0]) == (400, kind)
    assert "This host name is not allowed" in body
    assert "MEMOS_ALLOWED_HOSTS" in body


@pytest.mark.parametrize("host", ["192.0.2.7", "[2001:db8::7]"])
def test_probes_are_answered_by_address_and_by_no_other_name(server: RunningServer, host: str) -> None:
    assert answer_to(server, host, "/healthz")[:2] == (200, "application/json")
    assert answer_to(server, host, "/readyz")[:2] == (200, "application/json")
    assert answer_to(server, "other.example", "/healthz")[0] == 400
    assert answer_to(server, host, "/metrics")[0] == 400


def test_its_log_has_one_line_for_it_and_no_traceback(server: RunningServer) -> None:
    answer_to(server, "once.example", "/")
    log = (server.data_dir / "logs" / "web.log").read_text(encoding="utf-8")
    assert [line for line in log.splitlines() if "once.example" in line and "MEMOS_ALLOWED_HOSTS" in line]
    assert "Traceback" not in log


def test_what_is_printed_can_be_opened_and_says_what_others_need(server: RunningServer) -> None:
    printed = server.log.read_text(encoding="utf-8")
    assert f"MemOS Web is at {server.base_url}\n" in printed
    assert f"owner@localhost): {server.base_url}/sign-in/" in printed
    assert "MEMOS_ALLOWED_HOSTS" in printed
    assert f"API key (in {server.data_dir}/first-run.json)" in printed
    assert server.first_run["api_key"] not in printed
    assert server.first_run["url"] == server.base_url


def test_a_command_in_another_shell_takes_the_running_servers_address(server: RunningServer) -> None:
    environ = {name: value for name, value in server.settings().items() if name not in {"MEMOS_PORT", "MEMOS_HOST"}}
    words = ("sign_in_link", "--tenant", "home", "--email", "owner@localhost")
    done = subprocess.run(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{server.base_url}/sign-in/" in done.stderr
