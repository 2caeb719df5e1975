"""A start that cannot succeed says why in one line, ends with an exit code, and leaves nothing running."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.harness.databases import Clone
from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT

pytestmark = pytest.mark.full


@pytest.fixture
def fresh() -> Iterator[RunningServer]:
    """An installation that was never started."""
    with installation() as server:
        yield server


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where somebody listens and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        number: int = listener.getsockname()[1]
        yield number


def find_refusal(server: RunningServer, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `up`, which must end by itself with one line."""
    done = subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env={**server.settings(), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode in {1, 2}
    assert done.stdout == ""
    assert done.stderr.startswith("memos: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done


def test_it_refuses_a_busy_port(fresh: RunningServer, silent_port: int) -> None:
    done = find_refusal(fresh, MEMOS_PORT=str(silent_port))
    assert f"port {silent_port} is busy" in done.stderr
    assert done.returncode == 1


def test_it_refuses_a_file_in_place_of_the_data_directory(fresh: RunningServer, tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.write_text("not a folder")
    done = find_refusal(fresh, MEMOS_DATA_DIR=str(place))
    assert str(place) in done.stderr


def test_it_refuses_a_data_directory_that_cannot_be_made(fresh: RunningServer) -> None:
    done = find_refusal(fresh, MEMOS_DATA_DIR="/proc/memos")  # where not even root can write
    assert "/proc/memos" in done.stderr
    assert "MEMOS_DATA_DIR" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMOS_PORT", "many"),
        ("MEMOS_NO_SUCH_THING", "1"),
        ("MEMOS_EMBEDDER", "crystal-ball"),
        ("DATABASE_URL", "mysql://127.0.0.1/memos"),
        ("REDIS_URL", "memcached://127.0.0.1"),
        ("REDIS_URL", "redis://127.0.0.1:6379/2"),
        ("DATABASE_OWNER_URL", "postgresql://memos_owner@127.0.0.1/memos"),  # and no DATABASE_URL
    ],
)
def test_it_refuses_a_setting_that_means_nothing(fresh: RunningServer, name: str, value: str) -> None:
    done = find_refusal(fresh, **{name: value})
    assert name in done.stderr
    assert not fresh.data_dir.exists()


@pytest.mark.parametrize("role", ["memos_owner", "postgres"])
def test_it_refuses_to_serve_as_a_role_above_the_tenants_and_writes_nothing(
    fresh: RunningServer, clone: Clone, superuser: Callable[[], psycopg.Connection], role: str
) -> None:
    place = f"{quote(str(clone.server.socket_dir), safe='')}:{clone.server.port}"
    done = find_refusal(fresh, DATABASE_URL=f"postgresql://{role}@{place}/{clone.name}")
    assert f"DATABASE_URL: the database role {role} is not bound by row-level security" in done.stderr
    assert not fresh.data_dir.exists()
    assert superuser().execute("SELECT count(*) FROM governance_tenant").fetchone() == (0,)


def test_it_refuses_a_database_that_does_not_answer(fresh: RunningServer, silent_port: int) -> None:
    """It would wait for ever, were there no limit to that."""
    done = find_refusal(fresh, DATABASE_URL=f"postgresql://memos_app:pass-word@127.0.0.1:{silent_port}/memos")
    assert "DATABASE_URL cannot be reached" in done.stderr
    assert "pass-word" not in done.stderr


def test_it_refuses_a_redis_that_does_not_answer(fresh: RunningServer, silent_port: int) -> None:
    done = find_refusal(fresh, REDIS_URL=f"redis://:pass-word@127.0.0.1:{silent_port}")
    assert "REDIS_URL cannot be reached" in done.stderr
    assert "pass-word" not in done.stderr


def test_a_refused_start_leaves_no_server_files_of_its_own(fresh: RunningServer, silent_port: int) -> None:
    find_refusal(fresh, MEMOS_PORT=str(silent_port))
    assert not (fresh.data_dir / "pg").exists()


def test_it_refuses_a_second_start_on_the_same_data(running_server: RunningServer, silent_port: int) -> None:
    done = find_refusal(running_server, MEMOS_PORT=str(silent_port))
    assert f"already running on {running_server.data_dir} (process {running_server.pid})" in done.stderr
    assert running_server.is_ready()
