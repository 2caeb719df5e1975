"""Tests of the files in git: they belong to this project, without links and other repositories."""

import json
import subprocess

from tests.harness.servers import ROOT

COSTS = ROOT / "tests" / "harness" / "costs.json"


def entries() -> list[tuple[str, str]]:
    """Mode and path of everything that is tracked."""
    listed = subprocess.run(["git", "ls-files", "-sz"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [(entry[:6], entry.partition("\t")[2]) for entry in listed.split("\0") if entry]


def test_everything_tracked_is_a_plain_file_and_neither_a_link_nor_a_submodule() -> None:
    assert {mode for mode, _ in entries()} <= {"100644", "100755"}


def test_every_benchmark_result_is_cited_by_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    results = [path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")]
    assert [result for result in results if result not in pages] == []


def test_every_file_with_costs_exists() -> None:
    named = {file for kind in json.loads(COSTS.read_text(encoding="utf-8")).values() for file in kind}
    assert [file for file in named if not (ROOT / file).is_file()] == []
