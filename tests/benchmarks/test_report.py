"""Tests of a run's report."""

import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client import BenchmarkError
from benchmarks.report import RESULTS, Timing, refuse_unwritable, timing, write
from benchmarks.tables import markdown
from tests.harness.cases import each_case

KEPT = sorted(RESULTS.glob("*.json"))


def report_of_run(folder: Path, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a run, read from its file."""
    found: dict[str, Any] = json.loads(write("example", figures, folder, postgresql="18.4").read_text(encoding="utf-8"))
    return found


def names_no_place(result: dict[str, Any]) -> bool:
    """Neither a folder of the machine that it was made on, nor the build of its kernel."""
    return "/" not in result["command"] and bool(re.fullmatch(r"\w+ \d+\.\d+", result["machine"]["system"]))


def test_percentiles_are_of_the_samples_themselves() -> None:
    assert timing([float(number) for number in range(1, 102)]) == Timing(count=101, p50=51.0, p95=96.0)


def test_one_sample_is_its_own_median() -> None:
    assert timing([4.0]) == Timing(count=1, p50=4.0, p95=4.0)


def test_a_result_names_what_is_needed_to_repeat_it(tmp_path: Path) -> None:
    kept = report_of_run(tmp_path, {"add": timing([1.0, 2.0]), "cubes": 3})
    assert kept["figures"] == {"add": {"count": 2, "p50": 1.5, "p95": 1.95}, "cubes": 3}
    assert kept["benchmark"] == "example"
    assert {"command", "at"} <= kept.keys()
    machine = kept["machine"]
    assert machine.keys() == {"system", "processor", "cores", "memory GiB", "python", "postgresql", "load"}
    assert machine["processor"]
    assert machine["memory GiB"] > 0
    assert machine["postgresql"] == "18.4"
    assert "psycopg" in kept["versions"]


def test_a_result_names_neither_folders_nor_the_build_of_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["retrieval", "--data", "../elsewhere/five.json", "--results=/of/one=machine/kept", "--mode", "dense"]
    monkeypatch.setattr(sys, "argv", ["/of/one/manage.py", "benchmark", *words])
    monkeypatch.setattr(platform, "release", lambda: "6.1.44-host-v7-x86_64")
    kept = report_of_run(tmp_path, {})
    assert kept["command"] == "manage.py benchmark retrieval --data five.json --results=kept --mode dense"
    assert kept["machine"]["system"] == "Linux 6.1"


@each_case("path", KEPT, ids=lambda path: path.name)
def test_committed_results_name_no_folder_and_no_kernel_build(path: Path) -> None:
    assert names_no_place(json.loads(path.read_text(encoding="utf-8")))


def test_unwritable_results_folder_is_reported_before_and_after_the_run(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file", encoding="utf-8")
    for folder in (taken, tmp_path / "missing" / "results"):
        with pytest.raises(BenchmarkError, match="no results can be kept"):
            refuse_unwritable(folder)
        with pytest.raises(BenchmarkError, match="cannot be written"):
            write("example", {}, folder, postgresql="18.4")


def test_a_folder_for_results_is_made_and_left_empty(tmp_path: Path) -> None:
    refuse_unwritable(tmp_path / "results")
    assert list((tmp_path / "results").iterdir()) == []


def test_a_table_has_a_line_for_each_row() -> None:
    assert markdown(["", "p50"], [["ours", 1.5]]) == "|  | p50 |\n| --- | --- |\n| ours | 1.5 |"
