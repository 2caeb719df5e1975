"""Snippets of the guides, run in order as they stand. Only the address and the data directory are those of the test."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT, Servers
from tests.harness.snippets import blocks_of, run_snippets

pytestmark = pytest.mark.full

GUIDES = sorted(
    [*(ROOT / "docs" / "guides").glob("*.md"), *(ROOT / "docs" / name for name in ("mcp.md", "mem0.md", "memos.md"))]
)


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for the guides only: their memories would change the answers that other tests expect."""
    with installation(servers.cluster) as started:
        started.start()
        yield started


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.stem))
def test_every_snippet_of_a_guide_runs_and_prints_what_the_guide_shows(
    guide: Path, server: RunningServer, tmp_path: Path
) -> None:
    done = run_snippets(guide, server, tmp_path)
    assert done.returncode == 0, (done.stdout, done.stderr)
    printed = done.stdout.splitlines()
    shown = [line for language, text in blocks_of(guide) if language == "text" for line in text.splitlines()]
    assert [line for line in shown if line not in printed and not line.startswith("MEMOS_")] == [], printed


@pytest.mark.parametrize("guide", [ROOT / "docs" / "mcp.md"], ids=lambda path: str(path.stem))
def test_every_configuration_of_a_guide_is_json_with_the_address_of_the_server(guide: Path) -> None:
    blocks = [text for language, text in blocks_of(guide) if language == "json"]
    assert len(blocks) == 3
    assert all("http://127.0.0.1:8000" in json.dumps(json.loads(text)) for text in blocks)
