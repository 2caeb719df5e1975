"""Starts the embedded servers once for a run: by the controller under xdist, by the only process otherwise."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memos_web.embedded import postgres, redis
from memos_web.embedded.account import give, server_account
from memos_web.embedded.bootstrap import DATABASE, bootstrap
from memos_web.embedded.postgres import Postgres
from memos_web.embedded.programs import Program, spawn, stop_all
from memos_web.embedded.redis import Redis
from tests.harness.clusters import cached_cluster
from tests.harness.scratch import scratch_place

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
RELEASE = int(os.environ.get("TEST_POSTGRES", postgres.RELEASE))  # of PostgreSQL: 16 or 18
needs_maintain = pytest.mark.skipif(RELEASE < 17, reason="PostgreSQL 16 has no right MAINTAIN (docs/decisions/0080)")


@dataclass(frozen=True)
class Servers:
    """The two servers of this run. The database `memos` is the migrated template: nothing may connect to it."""

    postgres: Postgres
    redis: Redis

    @property
    def cluster(self) -> Path:
        """The files of a PostgreSQL that was migrated and stopped: what an installation has after its first start."""
        return self.postgres.folder.with_name("cluster")

    @classmethod
    def below(cls, folder: Path, release: int = RELEASE) -> "Servers":
        account = server_account()
        return cls(
            postgres=Postgres(
                folder / "pg", folder / "run", folder / "postgres.log", account, durable=False, release=release
            ),
            redis=Redis(folder / "redis", folder / "run", folder / "redis.log", account),
        )


@dataclass
class Run:
    """The started processes of `servers`, with all their files in `folder`."""

    folder: Path
    servers: Servers
    children: list[tuple[Program, subprocess.Popen[bytes]]] = field(default_factory=list)

    def start(self) -> None:
        """Both servers, with the roles and an empty database."""
        self.start_programs()
        bootstrap(
            server=self.servers.postgres.conninfo(),
            database=self.servers.postgres.conninfo(database=DATABASE),
        )

    def start_programs(self) -> None:
        servers = self.servers
        postgres.prepare(servers.postgres)
        redis.prepare(servers.redis)
        for program in (postgres.program(servers.postgres), redis.program(servers.redis)):
            self.children.append((program, spawn(program)))
        deadline = time.monotonic() + START_SECONDS
        while not (postgres.answers(servers.postgres) and redis.answers(servers.redis)):
            assert time.monotonic() < deadline, f"the servers of the tests did not start: see {self.folder}"
            time.sleep(0.02)

    def stop_programs(self) -> None:
        stop_all(self.children, seconds=10)
        self.children.clear()

    def stop(self) -> None:
        self.stop_programs()
        shutil.rmtree(self.folder)


def migrate(data_dir: Path) -> None:
    """Bring the database below `data_dir` up to date, as its owner, by the command that operators use."""
    environ = {**clean_environ(), "MEMOS_DATA_DIR": str(data_dir), "MEMOS_DATABASE_ROLE": "owner"}
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--noinput", "--verbosity", "0"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"migrate failed:\n{done.stdout}{done.stderr}"


def clean_environ() -> dict[str, str]:
    """The environment for a product process: nothing of the tests' own settings. Compiled modules are cached."""
    steering = ("MEMOS_", "DATABASE_", "REDIS_", "DJANGO_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(steering)}


@contextmanager
def migrated_cluster(release: int) -> Iterator[Path]:
    """The files of a PostgreSQL that was migrated and stopped: those of a running server are no whole."""
    folder = Path(tempfile.mkdtemp(prefix="memos-cluster-", dir=scratch_place()))
    run = Run(folder, Servers.below(folder, release))
    try:
        run.start()
        migrate(folder)
        run.stop_programs()
        yield run.servers.postgres.folder
    finally:
        run.stop()


class ServersPlugin:
    """Owns the run's servers in the one process that starts them."""

    def __init__(self) -> None:
        self.run: Run | None = None

    def folder(self) -> Path:
        if self.run is None:
            folder = Path(tempfile.mkdtemp(prefix="memos-tests-", dir=scratch_place()))
            self.run = Run(folder, Servers.below(folder))
            servers = self.run.servers
            shutil.copytree(cached_cluster(migrated_cluster, postgres.RELEASE), servers.cluster)
            shutil.copytree(cached_cluster(migrated_cluster, RELEASE), servers.postgres.folder)
            give(servers.postgres.folder, servers.postgres.account)
            self.run.start_programs()
        return self.run.folder

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """xdist, in the controller: tell the worker where the servers are."""
        node.workerinput["memos_servers"] = str(self.folder())  # type: ignore[attr-defined]

    def pytest_unconfigure(self) -> None:
        self.end()

    def end(self) -> None:
        """Stop the servers, if they run."""
        if self.run is not None:
            self.run.stop()
            self.run = None


def pytest_configure(config: pytest.Config) -> None:
    # For `tmp_path`, where each test has its key store, which waits for the disk after each change.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(scratch_place()))
    config.pluginmanager.register(ServersPlugin(), "memos-servers")


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Servers:
    """PostgreSQL with the migrated template database, and Redis."""
    given = getattr(pytestconfig, "workerinput", {}).get("memos_servers")
    plugin = pytestconfig.pluginmanager.get_plugin("memos-servers")
    assert isinstance(plugin, ServersPlugin)
    return Servers.below(Path(given) if given else plugin.folder())
