"""Turns with a real language model: SmolLM2 on the local engine, where it is installed."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.test import override_settings

from memos_web.config import LlmChoice
from tests.harness.product import free_port, wait_until
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.chat.rules import UNSUPPORTED

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "engine" / ".venv"  # its model is prepared there once, for all test runs

pytestmark = [pytest.mark.full, pytest.mark.apart((ENVIRONMENT / ".filled").exists(), "make engine-environment")]
NAME, TOKEN = "SmolLM2-135M-Instruct", "a token of this test"
START_SECONDS = 300


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base address of a served SmolLM2."""
    port = free_port()
    log = tmp_path_factory.mktemp("smollm") / "log"
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "memos_engine", "--port", str(port)]
    environ = {**os.environ, "MEMOS_DATA_DIR": str(ENVIRONMENT), "MEMOS_ENGINE_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT / "engine", stdout=output, stderr=output, env=environ)
    try:
        wait_until(
            lambda: _answers(f"http://127.0.0.1:{port}/health"),
            seconds=START_SECONDS,
            why=log.read_text,
            give_up=lambda: process.poll() is not None,
        )
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(autouse=True)
def model(address: str) -> Iterator[None]:
    with override_settings(MEMOS_LLM=LlmChoice(url=address, key=TOKEN, model=NAME, reads=False, engine="local")):
        yield


def test_real_model_answers_in_a_stream_and_its_sentences_are_attributed(alice: Contract) -> None:
    memory = alice.add("My sister Elena lives in Porto with her two kids.")
    run_jobs()
    place = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    events = alice.stream(place, {"content": "Where does my sister Elena live?"})
    tokens = [event.data["text"] for event in events if event.name == "token"]
    turn = events[-1].data
    assert events[-1].name == "done"
    assert len(tokens) > 1
    assert turn["content"].startswith("".join(tokens)[:10])
    assert turn["model"].startswith(NAME)
    assert turn["usage"]["prompt_tokens"] > turn["usage"]["completion_tokens"] > 0
    assert {citation["memory_id"] for citation in turn["citations"]} <= {memory["id"]}
    assert turn["citations"] or UNSUPPORTED in turn["content"], turn["content"]


def test_statement_to_a_real_model_is_stored_by_patterns(alice: Contract) -> None:
    place = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    assert alice.post(place, {"content": "I love green tea."}).json["model"].startswith(NAME)
    found = alice.get("memories/?semantic_type=preference").json["results"]
    assert [memory["content"] for memory in found] == ["I love green tea."]


def test_block_enters_as_a_cache_and_no_longer_once_it_is_erased(alice: Contract) -> None:
    rules = [
        "Visitors leave their bags in the cloakroom beside the entrance before they enter the halls of the museum.",
        "The museum closes at six, and the last guided tour begins at half past four in the great hall.",
        "Photographs are allowed without a flash, except in the room of the watercolours on the second floor.",
        "Children under twelve enter for free, if an adult is with them, on every day but the first Sunday.",
    ]
    ids = [alice.add(rule)["id"] for rule in rules]
    run_jobs()
    persona = alice.get("me/").json["personas"][0]["id"]
    body = {"memory_ids": ids, "title": "House rules", "persona_id": persona}
    job = alice.post("forms/", body).json["job"]["id"]
    run_jobs()
    done = alice.get(f"jobs/{job}/").json
    assert done["status"] == "succeeded", done
    form = alice.get(f"forms/{done['result']['form_id']}/").json
    assert form["tokens"] > 200
    asked = {"content": "When does the museum close?"}
    place = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    with_cache = alice.post(place, asked).json
    assert with_cache["usage"]["cached_tokens"] >= form["tokens"] - 1
    assert alice.get(f"forms/{form['id']}/").json["uses"] == 1
    assert alice.delete(f"forms/{form['id']}/").status == 204
    run_jobs()
    again = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    assert alice.post(again, asked).json["usage"]["cached_tokens"] < form["tokens"]
