"""The adapters for agent frameworks: each with its framework, in an environment of its own, on a running product."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT, Servers, clean_environ
from tests.harness.snippets import blocks_of

ADAPTERS = ROOT / "clients" / "adapters"
SOURCE = ROOT / "clients" / "python" / "src"
STORE_TESTS = ROOT / "build" / "store-tests"
VERCEL = ADAPTERS / "vercel"
PAGE = ROOT / "docs" / "frameworks.md"
MODULES = {
    "frameworks": ("autogen", "langchain", "langgraph", "llama_index", "openai_agents", "pydantic_ai"),
    "crewai": ("crewai",),
}
SNIPPETS = [
    (text, "crewai" if "crewai" in text else "frameworks") for language, text in blocks_of(PAGE) if language == "python"
]


def is_installed(name: str) -> bool:
    """Return whether `make adapters` installed the environment from the lock of this checkout."""
    lock = ADAPTERS / f".venv-{name}" / ".lock"
    return lock.exists() and lock.read_bytes() == (ADAPTERS / f"{name}.txt").read_bytes()


HAS_NODE = (VERCEL / "node_modules").is_dir() and shutil.which("node") is not None
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not (all(map(is_installed, MODULES)) and (STORE_TESTS / ".lock").exists() and HAS_NODE),
        reason="*** THE AGENT FRAMEWORKS ARE NOT INSTALLED: THEIR ADAPTERS ARE NOT TRIED (make test-adapters) ***",
    ),
]


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for the adapters only: their memories would change the answers that other tests expect."""
    with installation(servers.cluster) as started:
        started.start()
        yield started


def run(name: str, *arguments: str, server: RunningServer | None = None, folder: Path = ADAPTERS) -> str:
    """Run the Python of an environment in `folder`; its output. Fails with it unless the program succeeds."""
    return done([str(ADAPTERS / f".venv-{name}" / "bin" / "python"), *arguments], server=server, folder=folder)


def done(command: list[str], *, server: RunningServer | None, folder: Path) -> str:
    own = {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ADAPTERS}", "MYPYPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    # No framework reports to its makers from a test.
    own |= {"OPENAI_AGENTS_DISABLE_TRACING": "1", "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
    if server is not None:
        own |= {"MEMOS_URL": server.base_url, "MEMOS_API_KEY": server.first_run["api_key"]}
    ran = subprocess.run(
        command, cwd=folder, env={**clean_environ(), **own}, capture_output=True, text=True, check=False, timeout=600
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-8000:]
    return ran.stdout


@pytest.mark.parametrize("name", MODULES)
def test_adapters_have_the_types_of_their_frameworks(name: str, tmp_path: Path) -> None:
    files = [SOURCE / "memos_client" / f"{module}.py" for module in MODULES[name]]
    run(name, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path), *map(str, files))


@pytest.mark.parametrize("name", MODULES)
def test_adapters_work_in_their_frameworks(name: str, server: RunningServer) -> None:
    files = [f"test_{module}.py" for module in MODULES[name]]
    run(name, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, server=server)


def test_store_passes_the_store_tests_that_langgraph_publishes(server: RunningServer) -> None:
    """The tests of langgraph-checkpoint-sqlite, from its source; published_store_tests.py says which are left out."""
    files = [f"tests/{name}.py" for name in ("test_store", "test_async_store", "test_ttl")]
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "published_store_tests", *files)
    output = run("frameworks", *command, server=server, folder=STORE_TESTS)
    passed = re.search(r"(\d+) passed", output)
    assert passed is not None, output
    assert int(passed[1]) >= 90, output


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_python_of_the_page_on_frameworks_runs(number: int, server: RunningServer, tmp_path: Path) -> None:
    text, name = SNIPPETS[number]
    assert run(name, "-c", text, server=server, folder=tmp_path).strip(), text


def test_page_has_an_example_of_every_adapter() -> None:
    named = {module for text, _ in SNIPPETS for module in re.findall(r"from memos_client\.(\w+) import", text)}
    assert named == {module for modules in MODULES.values() for module in modules}


def test_agent_of_the_vercel_ai_sdk_stores_and_finds_a_memory(server: RunningServer) -> None:
    statement = "The kingfisher breeds below the mill."
    output = done(["node", "agent.mjs", statement, "Where does the kingfisher breed?"], server=server, folder=VERCEL)
    assert statement in json.loads(output.splitlines()[-1])["content"][0]["text"]


def test_javascript_of_the_page_on_frameworks_runs(server: RunningServer) -> None:
    (text,) = [text for language, text in blocks_of(PAGE) if language == "js"]
    command = ["node", "--input-type=module", "--eval", text]
    assert done(command, server=server, folder=VERCEL).strip() == "true"
