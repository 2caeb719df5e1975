"""What a run leaves."""

import json
from pathlib import Path

import pytest

from benchmarks.client import BenchmarkError
from benchmarks.report import Timing, refuse_unwritable, timing, write
from benchmarks.tables import markdown


def test_percentiles_are_of_the_samples_themselves() -> None:
    assert timing([float(number) for number in range(1, 102)]) == Timing(count=101, p50=51.0, p95=96.0)


def test_one_sample_is_its_own_median() -> None:
    assert timing([4.0]) == Timing(count=1, p50=4.0, p95=4.0)


def test_a_result_names_what_is_needed_to_repeat_it(tmp_path: Path) -> None:
    kept = json.loads(write("example", {"add": timing([1.0, 2.0]), "cubes": 3}, tmp_path).read_text(encoding="utf-8"))
    assert kept["figures"] == {"add": {"count": 2, "p50": 1.5, "p95": 1.95}, "cubes": 3}
    assert kept["benchmark"] == "example"
    assert {"command", "at"} <= kept.keys()
    assert {"cores", "load", "python"} <= kept["machine"].keys()
    assert "psycopg" in kept["versions"]


def test_a_folder_where_nothing_can_be_kept_is_told_before_and_after_the_run(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file", encoding="utf-8")
    for folder in (taken, tmp_path / "missing" / "results"):
        with pytest.raises(BenchmarkError, match="no results can be kept"):
            refuse_unwritable(folder)
        with pytest.raises(BenchmarkError, match="cannot be written"):
            write("example", {}, folder)


def test_a_folder_for_results_is_made_and_left_empty(tmp_path: Path) -> None:
    refuse_unwritable(tmp_path / "results")
    assert list((tmp_path / "results").iterdir()) == []


def test_a_table_has_a_line_for_each_row() -> None:
    assert markdown(["", "p50"], [["ours", 1.5]]) == "|  | p50 |\n| --- | --- |\n| ours | 1.5 |"
