"""KV caches: exact, never changed by a use, of one model, within a budget, and only for requests that name them."""

import pickle

import pytest
import torch
from memos_engine.caches import Cache, CacheStore, TooLarge
from memos_engine.model import Model, Reply, Request
from starlette.testclient import TestClient

from tests.conftest import WORDS

BLOCK = [{"role": "system", "content": "Answer from the memories."}, {"role": "user", "content": WORDS}]
ASKED = [BLOCK[0], {"role": "user", "content": f"{WORDS}\nQuestion: who is the caretaker?"}]


def reply(model: Model, names: list[str], salt: str = "") -> tuple[str, Reply]:
    told = Reply()
    return "".join(model.generate(Request(ASKED, 24, names=names, salt=salt), told, lambda: False)), told


def test_cache_at_the_head_gives_the_distribution_and_the_tokens_of_the_full_prompt(model: Model) -> None:
    cache = model.build_cache(model.encode_beginning(BLOCK))
    ids = model.encode(ASKED)
    assert list(cache.ids[:-1]) == ids[: len(cache.ids) - 1]
    with torch.inference_mode():
        _, full = model.prefill(ids)
        _, short = model.prefill(ids, cache.crop(len(cache.ids) - 1))
    assert float((full - short).abs().max() / full.abs().max()) <= 1e-3
    without, _ = reply(model, [], salt="one")
    model.caches.put("block", cache)
    with_cache, told = reply(model, ["block"], salt="another")
    assert with_cache == without
    assert told.cached_tokens >= len(cache.ids) - 1


def test_stored_cache_is_not_changed_by_generations_and_does_not_grow(model: Model) -> None:
    model.caches.put("block", model.build_cache(model.encode_beginning(BLOCK)))
    before = model.caches.get("block")
    assert before is not None
    layers, size = [(keys.clone(), values.clone()) for keys, values in before.layers], before.size
    for salt in ("a", "b", "c"):
        reply(model, ["block"], salt)
    after = model.caches.get("block")
    assert after is not None
    for (keys, values), kept in zip(after.layers, layers, strict=True):
        assert torch.equal(keys, kept[0])
        assert torch.equal(values, kept[1])
    assert after.size == size


def test_cache_travels_as_safetensors_and_is_used_by_its_name_only(client: TestClient) -> None:
    built = client.post("/v1/caches/one", json={"messages": BLOCK})
    assert built.status_code == 201
    content = client.get("/v1/caches/one").content
    assert client.delete("/v1/caches/one").status_code == 204
    assert client.delete("/v1/caches/one").status_code == 404
    assert client.put("/v1/caches/two", content=content).json()["tokens"] == built.json()["tokens"]
    asked = {"messages": ASKED, "max_tokens": 2}
    usages = [
        client.post("/v1/chat/completions", json={**asked, **more}).json()["usage"]["prompt_tokens_details"]
        for more in (
            {"cache_salt": "x"},
            {"cache_salt": "y", "caches": ["one"]},
            {"cache_salt": "z", "caches": ["two"]},
        )
    ]
    assert [usage["cached_tokens"] > 0 for usage in usages] == [False, False, True]


@pytest.mark.parametrize("kind", ["pickle", "cut", "empty", "of another model", "of other layers"])
def test_bytes_that_are_no_cache_of_the_model_are_refused(kind: str, client: TestClient, model: Model) -> None:
    cache = model.build_cache(model.encode_beginning(BLOCK))
    content = cache.encode(model.fingerprint)
    bad = {
        "pickle": pickle.dumps({"k": 1}),
        "cut": content[:-10],
        "empty": b"",
        "of another model": cache.encode("another"),
        "of other layers": Cache(cache.ids, cache.layers[:1]).encode(model.fingerprint),
    }[kind]
    answer = client.put("/v1/caches/bad", content=bad)
    assert answer.status_code == 400
    assert client.get("/v1/caches").json()["caches"] == []


def test_prefixes_of_another_salt_are_not_used(model: Model) -> None:
    assert reply(model, [], "one")[1].cached_tokens == 0
    assert reply(model, [], "two")[1].cached_tokens == 0
    assert reply(model, [], "one")[1].cached_tokens > 0
    assert model.caches.forget("one") == 1
    assert reply(model, [], "one")[1].cached_tokens == 0


@pytest.mark.parametrize(
    "header",
    [b"[]", b'{"a": 1}', b'{"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}', b'{"__metadata__": []}'],
)
def test_bytes_that_are_no_safetensors_are_refused(header: bytes, client: TestClient) -> None:
    content = len(header).to_bytes(8, "little") + header + bytes(1)
    assert client.put("/v1/caches/one", content=content).status_code == 400


def test_messages_that_the_template_refuses_are_refused(model: Model, client: TestClient) -> None:
    for template in ("{{ raise_exception('no system') }}", "{{ messages + 1 }}", None):
        model.tokenizer.chat_template = template
        assert client.post("/v1/chat/completions", json={"messages": ASKED}).status_code == 400


def make_cache(first: int, tokens: int = 32) -> Cache:
    part = torch.zeros(1, 2, tokens, 16)
    return Cache(tuple(range(first, first + tokens)), ((part, part),))


def test_least_recently_used_cache_leaves_and_a_pinned_one_stays() -> None:
    size = make_cache(0).size
    store = CacheStore(3 * size)
    store.put("pinned", make_cache(0), is_pinned=True)
    store.put("old", make_cache(100))
    store.put("used", make_cache(200))
    assert store.find(range(100, 132), adapter="", salt="", names=["old"])
    store.put("new", make_cache(300))
    assert set(store.names()) == {"pinned", "old", "new"}
    assert store.size <= store.budget
    assert store.evicted == 1
    with pytest.raises(TooLarge):
        store.put("large", make_cache(0, 1000))


def test_measures_are_times_of_the_same_tokens_as_text_and_as_a_cache(client: TestClient) -> None:
    measured = client.post("/v1/measure", json={"context": 600, "query": 20}).json()
    assert measured["bytes"] == 600 * client.get("/v1/models").json()["data"][0]["bytes_per_token"]
    assert 0 < measured["cache_seconds"] < measured["text_seconds"]
