"""OpenAI's calls: replies whole and streamed, the token, a bounded queue, cancelled calls, and metrics."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memos_engine.app import Engine
from memos_engine.composition import Cancelled
from memos_engine.model import Model, Reply, Request
from memos_engine.settings import SettingsError, read_settings
from starlette.testclient import TestClient

from tests.conftest import WORDS

ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "Who is Ines?"}], "max_tokens": 12}


def test_streamed_reply_is_the_whole_reply_in_pieces(client: TestClient) -> None:
    whole = client.post("/v1/chat/completions", json=ASKED).json()
    streamed = client.post(
        "/v1/chat/completions", json={**ASKED, "stream": True, "stream_options": {"include_usage": True}}
    )
    lines = [line.removeprefix("data: ") for line in streamed.text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1]]
    assert "".join(pieces) == whole["choices"][0]["message"]["content"]
    assert len(pieces) > 2
    assert chunks[-1]["usage"]["total_tokens"] == whole["usage"]["total_tokens"]
    assert chunks[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


def test_content_in_parts_is_read_as_its_text(client: TestClient) -> None:
    parts = [{"type": "text", "text": "Who is Ines?"}]
    whole, again = (
        client.post("/v1/chat/completions", json={**ASKED, "messages": [{"role": "user", "content": content}]}).json()
        for content in ("Who is Ines?", parts)
    )
    assert again["choices"][0]["message"] == whole["choices"][0]["message"]


def test_models_state_fingerprint_and_capabilities(client: TestClient) -> None:
    (model,) = client.get("/v1/models").json()["data"]
    assert model["id"] == "tiny"
    assert len(model["fingerprint"]) == 64
    assert set(model["capabilities"]) >= {"complete", "kv_inject", "adapter_train"}


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eA=="}])
def test_call_without_the_token_is_refused(client: TestClient, header: dict[str, str]) -> None:
    client.headers.pop("Authorization")
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("GET", "/metrics")):
        assert client.request(method, path, headers=header).status_code == 401
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"messages": []}, 400),
        ({"messages": [{"role": "root", "content": "x"}]}, 400),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, 400),
        ({"messages": [{"role": "user", "content": WORDS * 20}]}, 400),
        ({"max_tokens": 0}, 400),
        ({"max_tokens": True}, 400),
        ({"temperature": 9}, 400),
        ({"temperature": "hot"}, 400),
        ({"response_format": {"type": "json_schema"}}, 400),
        ({"response_format": "text"}, 400),
        ({"caches": "one"}, 400),
        ({"model": "other"}, 404),
        ({"adapter": "missing"}, 404),
    ],
)
def test_bad_request_is_answered(client: TestClient, change: dict[str, Any], status: int) -> None:
    answer = client.post("/v1/chat/completions", json={**ASKED, **change})
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_body_that_is_no_json_object_is_answered(client: TestClient) -> None:
    for body in (b"", b"[]", b"{", b"[" * 100_000):
        assert client.post("/v1/chat/completions", content=body).status_code == 400


def test_full_queue_answers_busy_with_a_time_to_retry(client: TestClient, engine: Engine) -> None:
    engine.waiting = engine.queue + 1
    for stream in (False, True):
        answer = client.post("/v1/chat/completions", json={**ASKED, "stream": stream})
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0


def test_generation_ends_when_the_client_leaves(engine: Engine) -> None:
    ended = threading.Event()
    begun = threading.Event()

    def pieces(left: threading.Event) -> Iterator[str]:
        try:
            while not left.is_set():
                begun.set()
                yield "word"
        finally:
            ended.set()

    async def leave() -> None:
        stream = engine.stream(pieces)
        assert await anext(stream) == "word"
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert ended.wait(10)
    assert engine.waiting == 0


def test_prefill_ends_when_nobody_waits(model: Model) -> None:
    with pytest.raises(Cancelled):
        list(model.generate(Request(ASKED["messages"]), Reply(), lambda: True))


def test_metrics_count_tokens_by_their_source(client: TestClient) -> None:
    for _ in range(2):
        client.post("/v1/chat/completions", json={**ASKED, "messages": [{"role": "user", "content": WORDS}]})
    told = client.get("/metrics").text
    assert 'engine_prompt_tokens_total{source="cache"}' in told
    assert 'engine_requests_total{call="/v1/chat/completions",outcome="200"} 2.0' in told


def test_engine_listens_on_loopback_and_elsewhere_only_with_a_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMOS_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("MEMOS_ENGINE_TOKEN", raising=False)
    chosen = read_settings([])
    assert chosen.host == "127.0.0.1"
    assert len(chosen.token) >= 40
    assert (tmp_path / "engine-token").stat().st_mode & 0o077 == 0
    assert read_settings([]).token == chosen.token
    with pytest.raises(SettingsError):
        read_settings(["--host", "0.0.0.0"])
    monkeypatch.setenv("MEMOS_ENGINE_TOKEN", "given")
    assert read_settings(["--host", "0.0.0.0"]).token == "given"
    monkeypatch.setenv("MEMOS_ENGINE_QUEUE", "many")
    with pytest.raises(SettingsError):
        read_settings([])
