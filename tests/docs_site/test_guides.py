"""Snippets of the guides, run in order as they stand. Only the address and the data directory are those of the test."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT, Servers

pytestmark = pytest.mark.long

BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
GUIDES = sorted([*(ROOT / "docs" / "guides").glob("*.md"), ROOT / "docs" / "mem0.md", ROOT / "docs" / "memos.md"])
KEPT_FROM_READERS = "mos_…"  # where a guide shows a key


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for the guides only: their memories would change the answers that other tests expect."""
    with installation(servers.cluster) as started:
        started.start()
        yield started


def blocks_of(guide: Path) -> list[tuple[str, str]]:
    """The language and text of each code block."""
    return [(found[1], found[2]) for found in BLOCK.finditer(guide.read_text(encoding="utf-8"))]


def script_of(blocks: list[tuple[str, str]]) -> str:
    """One shell script of all blocks in order. A shell's variables are those of the Python blocks, too."""
    parts = ["set -e"]
    for language, text in blocks:
        if language == "sh":
            parts.append(f"{text}echo")  # answers of the API end without a line feed
        if language == "python":
            parts.append(f"python3 - <<'END_OF_BLOCK'\n{text}END_OF_BLOCK")
    return "\n".join(parts)


def environ_of(server: RunningServer, folder: Path) -> dict[str, str]:
    """The environment of a reader in `folder`: a clone of the repository with the server's data directory."""
    for name in ("manage.py", ".venv"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "var").symlink_to(server.data_dir)
    (folder / ".curlrc").write_text("fail-with-body\n", encoding="utf-8")  # a refused call ends the script
    own = {
        "CURL_HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "MEM0_DIR": str(folder / "mem0"),
        "MEM0_TELEMETRY": "False",
    }
    return {**server.settings(), **own}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.stem))
def test_every_snippet_of_a_guide_runs_and_prints_what_the_guide_shows(
    guide: Path, server: RunningServer, tmp_path: Path
) -> None:
    blocks = blocks_of(guide)
    script = script_of(blocks).replace("http://127.0.0.1:8000", server.base_url)
    done = subprocess.run(
        ["sh"],
        input=script.replace(KEPT_FROM_READERS, server.first_run["api_key"]),
        cwd=tmp_path,
        env=environ_of(server, tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    printed = done.stdout.splitlines()
    shown = [line for language, text in blocks if language == "text" for line in text.splitlines()]
    assert [line for line in shown if line not in printed and not line.startswith("MEMOS_")] == [], printed


@pytest.mark.parametrize("guide", [ROOT / "docs" / "mcp.md"], ids=lambda path: str(path.stem))
def test_every_configuration_of_a_guide_is_json_with_the_address_of_the_server(guide: Path) -> None:
    blocks = [text for language, text in blocks_of(guide) if language == "json"]
    assert len(blocks) == 3
    assert all("http://127.0.0.1:8000" in json.dumps(json.loads(text)) for text in blocks)
