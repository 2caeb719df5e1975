"""Each benchmark, small, against a server that runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.product import RunningServer

pytestmark = pytest.mark.long


def figures_of(server: RunningServer, tmp_path: Path, *words: str) -> dict[str, Any]:
    """Run one benchmark; the figures of the file that it leaves, and its printed table is Markdown."""
    folder = tmp_path / "results"
    done = server.manage("benchmark", *words, "--results", str(folder))
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob(f"{words[0]}-*.json")
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert str(file) in done.stdout
    figures: dict[str, Any] = kept["figures"]
    return figures


def test_search_latency_gives_full_answers_of_all_systems(running_server: RunningServer, tmp_path: Path) -> None:
    asked = ("search-latency", "--cubes", "100", "--queries", "12", "--hidden", "0.4")
    figures = figures_of(running_server, tmp_path, *asked)
    systems = figures["systems"]
    assert {"ours", "floor", "exact cosine", "reader: ours", "reader: floor", "reader: exact cosine"} <= systems.keys()
    assert {found["full"] for found in systems.values()} == {"12/12"}
    assert figures["ours to floor"] > 0
    assert figures["hidden to seen"] > 0


def test_search_latency_divides_the_cubes_among_tenants(running_server: RunningServer, tmp_path: Path) -> None:
    asked = ("search-latency", "--cubes", "50", "--tenants", "2", "--queries", "6")
    systems = figures_of(running_server, tmp_path, *asked)["systems"]
    assert {found["full"] for found in systems.values()} == {"6/6"}


def test_nearest_holds_the_index_against_comparing_all(running_server: RunningServer, tmp_path: Path) -> None:
    figures = figures_of(running_server, tmp_path, "nearest", "--cubes", "60", "--queries", "5")
    assert figures["index"].keys() == {"stored", "unknown"}
    for found in figures["index"].values():
        assert found["compared one by one"]["share"] == 1.0
        assert found["1000 rows visited"]["share"] == 1.0  # more than there are
    assert {found["share"] for found in figures["search"].values()} == {1.0}


def test_statements_are_asked_in_each_way(running_server: RunningServer, tmp_path: Path) -> None:
    taken = figures_of(running_server, tmp_path, "statements")["p50 µs"]
    assert len(taken) == 6
    assert min(taken.values()) > 0


def test_ingest_measures_one_many_and_copy(running_server: RunningServer, tmp_path: Path) -> None:
    figures = figures_of(running_server, tmp_path, "ingest", "--cubes", "50", "--singles", "5", "--profile")
    assert figures["add one"]["count"] == 5
    assert figures["bulk, 1 client"]["cubes"] == figures["bulk, 2 clients"]["cubes"] == 50
    assert figures["copy"]["cubes"] == 5 + 5 + 50 + 50 + 50
    assert any("cubes_add" in name for name in figures["profile"]["the product's functions, with what they call"])


def test_authorization_measures_readers_with_few_and_many_grants(running_server: RunningServer, tmp_path: Path) -> None:
    figures = figures_of(running_server, tmp_path, "authorization", "--cubes", "60", "--queries", "5")
    sees = {name: found["sees"] for name, found in figures["systems"].items()}
    assert sees == {"no grants": 30, "30 granted": 60, "half granted at once": 60, "27 denied": 3}
    assert figures["decisions"]["rules"] > figures["decisions"]["engine"] > 0
    assert figures["searches, granted one by one to at once"] > 0


def test_ablation_leaves_out_what_counts_and_tries_what_does_not(
    running_server: RunningServer, tmp_path: Path, locomo_file: Path
) -> None:
    figures = figures_of(running_server, tmp_path, "ablation", "--data", str(locomo_file))
    expected = {f"without {name}" if weight else f"with {name}" for name, weight in figures["weights"].items()}
    assert figures["recall"].keys() == {"as chosen", *expected}
    assert figures["questions"] == {"tuning": 2, "checking": 2}
    # Four turns in all: every one is among the first five, whatever the weights.
    assert {found["checking"]["R@5"] for found in figures["recall"].values()} == {1.0}


def test_sweep_goes_through_depths_and_weights(
    running_server: RunningServer, tmp_path: Path, locomo_file: Path
) -> None:
    figures = figures_of(running_server, tmp_path, "sweep", "--data", str(locomo_file))
    assert list(figures["depth"]["checking"]) == [f"R@{depth}" for depth in range(5, 45, 5)]
    assert {"dense × 0.5", "dense × 1.5"} <= figures["weight"].keys()


def test_retrieval_measures_the_baselines_beside_ours(
    running_server: RunningServer, tmp_path: Path, locomo_file: Path
) -> None:
    figures = figures_of(running_server, tmp_path, "retrieval", "--data", str(locomo_file))
    peers = {"mem0"} if figures["mem0"].startswith("mem0ai") else set()
    assert figures["checking"].keys() == {"ours", "bm25", "exact cosine", *peers}
    assert figures["checking"]["ours"]["R@5"] == 1.0
    assert figures["search weights"] == {}
    assert figures["embedder"]


def test_the_first_journey_is_measured(running_server: RunningServer, tmp_path: Path, locomo_file: Path) -> None:
    figures = figures_of(running_server, tmp_path, "first-journey", "--data", str(locomo_file))
    assert figures["recall@10"] == 1.0


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("nearest", "--cubes", "0"), "'0': a number from 1 is needed"),
        (("search-latency", "--queries", "-1"), "'-1': a number from 1 is needed"),
        (("search-latency", "--hidden", "2"), "'2': a share from 0 to below 1 is needed"),
        (("search-latency", "--hidden", "much"), "'much': a share from 0 to below 1 is needed"),
        (("search-latency", "--cubes", "5", "--tenants", "20"), "5 cubes cannot be divided among 20 tenants"),
    ],
)
def test_what_cannot_be_measured_is_told(running_server: RunningServer, asked: tuple[str, ...], told: str) -> None:
    done = running_server.manage("benchmark", *asked)
    assert done.returncode != 0
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["retrieval", "ablation", "sweep", "first-journey"])
def test_other_json_and_folders_that_cannot_be_written_are_one_line(
    running_server: RunningServer, tmp_path: Path, locomo_file: Path, name: str
) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"not": "LoCoMo"}', encoding="utf-8")
    for data, results in ((other, tmp_path / "results"), (locomo_file, other)):
        done = running_server.manage("benchmark", name, "--data", str(data), "--results", str(results))
        assert done.returncode == 1
        assert str(other) in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_server_that_was_never_started_is_one_line(running_server: RunningServer, tmp_path: Path) -> None:
    done = running_server.manage("benchmark", "ingest", "--first-run", str(tmp_path / "first-run.json"))
    assert done.returncode == 1
    assert "start the product" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
