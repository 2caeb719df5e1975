"""The example of the README, run as it stands, but on the port, data and environment of the test."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.product import RunningServer
from tests.harness.servers import ROOT

pytestmark = pytest.mark.full


@pytest.fixture
def example(running_server: RunningServer, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The first block with curl, pasted into a shell in a folder whose `var` is the server's data directory."""
    block = next(block for block in blocks_of("README.md") if "curl" in block)
    (tmp_path / "var").symlink_to(running_server.data_dir)
    pasted = block.replace("http://127.0.0.1:8000", running_server.base_url)
    return subprocess.run(["sh"], input=pasted, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)


def test_a_script_gets_the_key_that_a_command_made(running_server: RunningServer) -> None:
    block = next(block for block in blocks_of("README.md") if "--json" in block)
    done = subprocess.run(
        ["sh"],
        input=f'{block}\necho "$KEY"',
        cwd=ROOT,
        env=running_server.settings(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"mos_\S+\n", done.stdout)


def test_the_backup_that_operations_proposes_is_made(running_server: RunningServer, tmp_path: Path) -> None:
    block = next(block for block in blocks_of("docs/operations.md") if "manage.py backup /" in block)
    here = block.replace("/backups/", f"{tmp_path}/").replace("/elsewhere/", f"{tmp_path}/")
    done = subprocess.run(
        ["sh"],
        input=here,
        cwd=ROOT,
        env=running_server.settings(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*/backup.json"))) == 1
    assert len(list((tmp_path / "keys").iterdir())) == 1


def blocks_of(document: str) -> list[str]:
    """Return the shell blocks of a document, for the environment of the tests: it may be for another Python."""
    text = (ROOT / document).read_text(encoding="utf-8").replace(".venv/", f"{sys.prefix}/")
    return re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)


def test_it_adds_a_memory_and_finds_it(example: subprocess.CompletedProcess[str]) -> None:
    assert (example.returncode, example.stderr) == (0, "")
    decoder = json.JSONDecoder()
    added, end = decoder.raw_decode(example.stdout)
    found, _ = decoder.raw_decode(example.stdout[end:].lstrip())
    assert "Anna moved to Lisbon" in added["results"][0]["content"]
    # Other tests of this server may have pasted the example, too: the same text then stands there more than once.
    same = [hit["id"] for hit in found["results"] if hit["content"] == found["results"][0]["content"]]
    assert added["results"][0]["id"] in same


def test_the_question_that_it_proposes_is_answered_with_that_memory(
    example: subprocess.CompletedProcess[str], running_server: RunningServer
) -> None:
    memory_id = json.JSONDecoder().raw_decode(example.stdout)[0]["results"][0]["id"]
    question = re.search(r'ask "([^"]+)"', (ROOT / "README.md").read_text(encoding="utf-8"))
    assert question is not None
    assert "Lisbon" in _ask(running_server, question[1], memory_id)


def _ask(server: RunningServer, question: str, memory_id: str) -> str:
    conversation = _post(server, "/api/v1/conversations/", {})["id"]
    turn = _post(server, f"/api/v1/conversations/{conversation}/turns/", {"content": question})
    citations = turn["citations"]
    assert isinstance(citations, list)
    assert memory_id in [citation["memory_id"] for citation in citations]
    return str(turn["content"])


def _post(server: RunningServer, path: str, body: dict[str, str]) -> dict[str, object]:
    argv = ["curl", "-sS", f"{server.base_url}{path}", "-H", f"Authorization: Bearer {server.first_run['api_key']}"]
    argv += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    reply: dict[str, object] = json.loads(done.stdout)
    return reply
