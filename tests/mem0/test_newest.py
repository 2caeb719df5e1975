"""mem0's newest published clients: what the registries of npm and Python give on this day."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.product import RunningServer
from tests.harness.servers import clean_environ

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
TIMEOUT = 300


def run(*command: str, cwd: Path, **environ: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **clean_environ(), **environ, "MEM0_TELEMETRY": "False", "MEM0_DIR": str(cwd)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.apart(shutil.which("npm") is not None, "npm")
def test_npm_package_adds_searches_changes_and_deletes(running_server: RunningServer, tmp_path: Path) -> None:
    run("npm", "install", "--prefix", str(tmp_path), "--legacy-peer-deps", "--no-audit", "mem0ai", cwd=tmp_path)
    program = str(HERE / "npm_program.mjs")
    key = running_server.first_run["api_key"]
    printed = run("node", program, str(tmp_path), f"{running_server.base_url}/mem0", key, cwd=tmp_path)
    assert json.loads(printed.splitlines()[-1]) == {
        "added": 2,
        "found": ["The heron nests by the mill.", "get_weather(city=Porto)"],
        "listed": 2,
        "one": "The heron nests by the weir.",
        "history": 2,
        "deleted": [0, 2],
    }


def test_newest_python_client_passes_the_tests_of_the_pinned_one(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(packages),
        "mem0ai",
        cwd=tmp_path,
    )
    tests = [str(HERE / name) for name in ("test_client.py", "test_paths.py")]
    later = "not every_method"  # newer clients have methods of their own, which are answered with 501
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", later, *tests]
    printed = run(*command, cwd=HERE.parent.parent, PYTHONPATH=str(packages))
    assert " passed" in printed
    assert " failed" not in printed
