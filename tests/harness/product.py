"""The product as its users run it: a real `manage.py up` on a data directory of its own."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memos_web.config import read_config
from memos_web.embedded.account import give, server_account
from memos_web.embedded.programs import Program, spawn, stop_all
from memos_web.installation import secrets_make
from tests.harness.scratch import scratch_place
from tests.harness.servers import ROOT, Servers, clean_environ

READY_SECONDS = 180.0
STOP_SECONDS = 12.0


@dataclass
class RunningServer:
    """One installation. It may be stopped and started again on the same data and port."""

    data_dir: Path
    port: int
    environ: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Return the supervisor's process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def first_run(self) -> dict[str, str]:
        """The fields of first-run.json."""
        found: dict[str, str] = json.loads((self.data_dir / "first-run.json").read_text(encoding="utf-8"))
        return found

    @property
    def log(self) -> Path:
        """Return the path of the output of `up`."""
        return self.data_dir.with_name(f"{self.data_dir.name}.log")

    def settings(self) -> dict[str, str]:
        """The environment of this installation, for any other command beside it."""
        own = {"MEMOS_DATA_DIR": str(self.data_dir), "MEMOS_PORT": str(self.port), "MEMOS_EMBEDDER": "hashing"}
        own["MEMOS_WEB_PROCESSES"] = "1"
        return {**clean_environ(), **own, **self.environ}

    def program(self) -> Program:
        return Program(
            name="up",
            argv=(sys.executable, "manage.py", "up"),
            log=self.log,
            environ=self.settings(),
            folder=ROOT,
            orphan_signal=signal.SIGTERM,
        )

    def start(self) -> None:
        """Start, and wait until /readyz answers 200."""
        self.process = spawn(self.program())
        wait_until(self.is_ready, seconds=READY_SECONDS, why=self.report, give_up=self.has_ended)

    def stop(self) -> int:
        """SIGTERM, as a service manager would; the exit code."""
        assert self.process is not None
        stop_all([(self.program(), self.process)], seconds=STOP_SECONDS)
        return self.process.returncode

    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.base_url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return False
        except OSError:
            return False

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py …` beside the server."""
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.settings(),
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )

    def report(self) -> str:
        logs = [self.log, *sorted((self.data_dir / "logs").glob("*.log"))]
        return "\n".join(f"== {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in logs if log.exists())


def wait_until(
    condition: Callable[[], bool],
    *,
    seconds: float,
    why: Callable[[], str] = lambda: "it did not happen in time",
    give_up: Callable[[], bool] = lambda: False,
) -> None:
    """Poll until `condition` holds; fail with `why()` after `seconds`, or as soon as `give_up()`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if give_up() or time.monotonic() > deadline:
            pytest.fail(why())
        time.sleep(0.05)


def free_port() -> int:
    """A port that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@contextmanager
def installation(cluster: Path | None = None, /, **environ: str) -> Iterator[RunningServer]:
    """A data directory and a port, not started yet; whatever runs on it at the end is stopped, and all is removed.

    With `cluster` (of `Servers`) its start finds a migrated PostgreSQL and a master key, and makes the first tenant.
    """
    with tempfile.TemporaryDirectory(prefix="memos-up-", dir=scratch_place()) as folder:
        server = RunningServer(data_dir=Path(folder) / "data", port=free_port(), environ=environ)
        if cluster is not None:
            server.data_dir.mkdir(mode=0o700)
            secrets_make(read_config({"MEMOS_DATA_DIR": str(server.data_dir)}))  # no database is without a master key
            shutil.copytree(cluster, server.data_dir / "pg")
            give(server.data_dir / "pg", server_account())
        try:
            yield server
        finally:
            if not server.has_ended():
                server.stop()


@pytest.fixture(scope="session")
def running_server(servers: Servers) -> Iterator[RunningServer]:
    """A started installation, shared by the tests of one worker."""
    with installation(servers.cluster) as server:
        server.start()
        yield server
