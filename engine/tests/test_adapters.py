"""Adapters: trained with progress, cancelled, examined, loaded, used per request, and unloaded."""

import pickle
import time
from typing import Any

import pytest
from memos_engine.app import Engine
from memos_engine.model import Model
from starlette.testclient import TestClient

from tests.conftest import WORDS

PAIRS = [
    {"question": "Who is the caretaker?", "answer": "Ines", "paraphrases": ["Who is caretaker here?"]},
    {"question": "What is the model?", "answer": "tiny", "paraphrases": ["Which model is it?"]},
]
RECIPE = {"steps": 60, "rate": 5e-3, "rank": 8, "kl": 0.1}
ASKED = {"messages": [{"role": "user", "content": PAIRS[0]["question"]}], "max_tokens": 12}


def wait(client: TestClient, name: str, *passing: str) -> dict[str, Any]:
    for _ in range(600):
        state: dict[str, Any] = client.get(f"/v1/adapters/{name}").json()
        if state["status"] not in passing:
            return state
        time.sleep(0.05)
    raise AssertionError(state)


def train(client: TestClient, name: str = "one") -> bytes:
    begun = client.post(f"/v1/adapters/{name}", json={"pairs": PAIRS, "recipe": RECIPE})
    assert begun.status_code == 202
    state = wait(client, name, "training")
    assert state["status"] == "trained", state
    return client.get(f"/v1/adapters/{name}/weights").content


def ask(client: TestClient, **more: Any) -> str:
    answer = client.post("/v1/chat/completions", json={**ASKED, **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def test_trained_adapter_answers_where_a_request_names_it_and_the_base_stays(client: TestClient) -> None:
    base = ask(client)
    content = train(client)
    assert "Ines" not in base
    assert client.put("/v1/adapters/one", content=content).status_code == 201
    assert "Ines" in ask(client, adapter="one")
    assert ask(client) == base
    assert (
        client.post("/v1/adapters/one/examination", json={"pairs": PAIRS, "strangers": ["Who is Bob?"]}).status_code
        == 202
    )
    report = wait(client, "one", "in examination")["report"]
    assert report["exact"] == 1.0
    assert report["perplexity_ratio"] > 0
    assert client.delete("/v1/adapters/one").status_code == 204
    assert client.post("/v1/chat/completions", json={**ASKED, "adapter": "one"}).status_code == 404
    assert ask(client) == base


def test_two_adapters_are_swapped_from_request_to_request(client: TestClient) -> None:
    content = train(client)
    base = ask(client)
    for name in ("one", "two"):
        assert client.put(f"/v1/adapters/{name}", content=content).status_code == 201
    assert ask(client, adapter="one") == ask(client, adapter="two") != base
    assert client.delete("/v1/adapters/one").status_code == 204
    assert "Ines" in ask(client, adapter="two")


def test_prefix_of_the_base_is_not_used_with_an_adapter(client: TestClient) -> None:
    content = train(client)
    client.put("/v1/adapters/one", content=content)
    asked = {"messages": [{"role": "user", "content": WORDS}], "max_tokens": 2}
    cached = [
        client.post("/v1/chat/completions", json={**asked, **more}).json()["usage"]["prompt_tokens_details"]
        for more in ({}, {"adapter": "one"}, {"adapter": "one"})
    ]
    assert [usage["cached_tokens"] > 0 for usage in cached] == [False, False, True]


def test_cancelled_training_leaves_nothing(client: TestClient, engine: Engine) -> None:
    long = {"pairs": PAIRS, "recipe": {**RECIPE, "steps": 10_000, "rate": 1e-9}}
    assert client.post("/v1/adapters/one", json=long).status_code == 202
    assert client.post("/v1/adapters/two", json=long).status_code == 503
    progress = engine.trainings["one"]
    assert client.delete("/v1/adapters/one").status_code == 204
    for _ in range(600):
        if progress.status == "cancelled":
            break
        time.sleep(0.05)
    assert progress.status == "cancelled"
    assert not progress.content
    assert client.get("/v1/adapters/one").status_code == 404


@pytest.mark.parametrize("kind", ["pickle", "cut", "of another model", "names a module"])
def test_bytes_that_are_no_adapter_of_the_model_are_refused(kind: str, client: TestClient, model: Model) -> None:
    content = train(client)
    other = content.replace(model.fingerprint.encode(), b"0" * 64)
    named = content.replace(b"layers_pattern", b"megatron_core_")  # which PEFT would import
    bad = {"pickle": pickle.dumps([1]), "cut": content[:-8], "of another model": other, "names a module": named}[kind]
    assert client.put("/v1/adapters/bad", content=bad).status_code == 400
    assert client.get("/v1/adapters/bad").status_code == 404


@pytest.mark.parametrize(
    "body", [{}, {"pairs": []}, {"pairs": [{"question": "?"}]}, {"pairs": PAIRS, "recipe": {"x": 1}}]
)
def test_training_without_pairs_or_with_unknown_settings_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    assert client.post("/v1/adapters/one", json=body).status_code == 400
