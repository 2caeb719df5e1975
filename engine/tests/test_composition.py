"""Caches put together: keys moved exactly, tokens of the prompt alone, and never taken for the full prompt."""

from typing import Any

import torch
from memos_engine.caches import Cache, count_common
from memos_engine.composition import find_runs, prefill_composed, rotate_keys
from memos_engine.model import Model, Reply, Request
from starlette.testclient import TestClient

SYSTEM = {"role": "system", "content": "Answer from the memories."}
BLOCKS = [
    '[1] {"text": "The caretaker of the museum is Ines, and she keeps what a model has read."}\n',
    '[1] {"text": "A cache reads words and keeps words, a model of the museum is what it reads."}\n',
    '[1] {"text": "What Ines has read is a model that reads words, and the caretaker keeps it."}\n',
]
QUESTION = "\nQuestion: who is the caretaker?"


def renumber(blocks: list[str]) -> str:
    return "".join(block.replace("[1]", f"[{at}]") for at, block in enumerate(blocks, start=1))


ASKED = [SYSTEM, {"role": "user", "content": renumber(BLOCKS) + QUESTION}]


def build(model: Model, block: str) -> Cache:
    return model.build_cache(model.encode_beginning([SYSTEM, {"role": "user", "content": block}]))


def compute_error(expected: torch.Tensor, found: torch.Tensor) -> float:
    return float((expected - found).abs().max() / expected.abs().max())


def reply(model: Model, salt: str, **more: Any) -> tuple[str, Reply]:
    told = Reply()
    return "".join(model.generate(Request(ASKED, 24, salt=salt, **more), told, lambda: False)), told


def test_block_moved_alone_is_what_the_model_reads_at_the_new_place(model: Model) -> None:
    """A block that stands alone attends only to itself, and RoPE knows distances only: moved, it must be the same."""
    ids = model.encode(ASKED)
    cut, far = len(ids) - 12, 500
    past, full = model.prefill(ids)
    assert model.frequencies is not None
    moved = [
        (rotate_keys(layer.keys[:, :, :cut], far, model.frequencies), layer.values[:, :, :cut]) for layer in past.layers
    ]
    positions = torch.arange(far, far + len(ids))[None]
    with torch.inference_mode():
        there = model.model(input_ids=torch.tensor([ids]), position_ids=positions, use_cache=True)
        assert compute_error(full, there.logits[0, -1]) <= 1e-3
        for (keys, values), layer in zip(moved, there.past_key_values.layers, strict=True):
            assert compute_error(layer.keys[:, :, :cut], keys) <= 1e-3
            assert compute_error(layer.values[:, :, :cut], values) <= 1e-3
        unmoved = past.layers[0].keys[:, :, :cut]
        assert compute_error(there.past_key_values.layers[0].keys[:, :, :cut], unmoved) > 0.1


def test_moved_blocks_read_again_completely_are_the_full_prompt(model: Model) -> None:
    ids = model.encode(ASKED)
    caches = [build(model, block) for block in BLOCKS]
    head = caches[0].crop(count_common(caches[0].ids, ids))
    _, full = model.prefill(ids)
    past, logits, moved = model.compose(ids, head, [(cache, 1_000) for cache in caches[1:]])
    assert (moved, past.get_seq_length()) == (0, len(ids))
    assert compute_error(full, logits) <= 1e-3


def test_moved_run_that_was_read_with_the_same_tokens_before_it_is_the_full_prompt(model: Model) -> None:
    """Tokens between the runs are read out of their order in memory: the result must not depend on that order."""
    ids = model.encode(ASKED)
    whole = model.build_cache(ids)
    runs = [run for run in find_runs(ids[:-1], 40, [(Cache(whole.ids, whole.layers), 5)]) if run.place == run.start]
    assert runs
    assert model.frequencies is not None
    past, logits = prefill_composed(
        model.model, model.config, model.frequencies, ids, None, [run.shorten(9) for run in runs]
    )
    _, full = model.prefill(ids)
    assert compute_error(full, logits) <= 1e-3
    for layer, (keys, _) in zip(past.layers, whole.layers, strict=True):
        assert compute_error(keys, layer.keys) <= 1e-3


def test_runs_are_tokens_of_the_prompt_alone_and_in_its_order(model: Model) -> None:
    ids = model.encode(ASKED)
    caches = [build(model, block) for block in BLOCKS]
    begin = count_common(build(model, "").ids, ids)
    runs = find_runs(ids, begin, [(caches[1], 0), (caches[2], 0)])
    taken = [at for run in runs for at in range(run.place, run.place + run.length)]
    assert taken == sorted(set(taken))
    for run in runs:
        assert ids[run.place : run.place + run.length] == list(run.cache.ids[run.start : run.start + run.length])
    swapped = find_runs(ids, begin, [(caches[2], 0), (caches[1], 0)])
    assert sum(run.length for run in swapped) < sum(run.length for run in runs)
    assert find_runs(ids, begin, [(build(model, "Nothing of that is asked here, and it is not said."), 0)]) == []


def test_request_that_names_moved_caches_reads_less_and_leaves_the_full_prompt_to_others(model: Model) -> None:
    full, alone = reply(model, "first")
    names = [f"block{at}" for at in range(len(BLOCKS))]
    for name, block in zip(names, BLOCKS, strict=True):
        model.caches.put(name, build(model, block))
    before = [keys.clone() for name in names for keys, _ in (model.caches.get(name) or build(model, "")).layers]
    moved = [(name, 4) for name in names[1:]]
    composed, told = reply(model, "one", names=names, moved=moved)
    assert told.moved_tokens > 40
    assert told.cached_tokens > reply(model, "two", names=names)[1].cached_tokens + 40
    again = reply(model, "one", names=names, moved=moved)
    assert again[0] == composed
    assert again[1].cached_tokens == told.prompt_tokens - 1
    assert reply(model, "one")[1].cached_tokens == 0  # the salt is the same, and no full prompt was read under it
    assert reply(model, "three", names=names)[0] == full
    assert alone.cached_tokens == 0
    after = [keys for name in names for keys, _ in (model.caches.get(name) or build(model, "")).layers]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert model.caches.forget("one") == 2


def test_model_whose_keys_cannot_be_moved_reads_the_full_prompt(model: Model) -> None:
    full, _ = reply(model, "first")
    model.caches.put("block", build(model, BLOCKS[1]))
    model.can_move = False
    composed, told = reply(model, "one", names=["block"], moved=[("block", 0)])
    assert (composed, told.moved_tokens) == (full, 0)


def test_chat_moves_the_caches_of_its_request_and_measures_compare_with_the_full_prompt(client: TestClient) -> None:
    for at, block in enumerate(BLOCKS):
        built = {"messages": [SYSTEM, {"role": "user", "content": block}]}
        assert client.post(f"/v1/caches/block{at}", json=built).status_code == 201
    names = [f"block{at}" for at in range(len(BLOCKS))]
    asked = {"messages": ASKED, "max_tokens": 2, "caches": names}
    counts = [
        client.post("/v1/chat/completions", json={**asked, "cache_salt": salt, **more}).json()["usage"]
        for salt, more in (("a", {}), ("b", {"moved": [{"name": name, "again": 4} for name in names[1:]]}))
    ]
    few, many = (usage["prompt_tokens_details"]["cached_tokens"] for usage in counts)
    assert many > few + 40
    for bad in ([{"name": "other"}], "block0", [{"name": "block0", "again": -1}], [{"name": "block0", "again": 9999}]):
        assert client.post("/v1/chat/completions", json={**asked, "moved": bad}).status_code == 400
    given = {"system": SYSTEM["content"], "blocks": BLOCKS, "text": renumber(BLOCKS), "question": QUESTION}
    given |= {"again": [0, 1000], "max_tokens": 8}
    measured = client.post("/v1/measure/composition", json=given).json()
    assert [row["again"] for row in measured["rows"]] == [0, 1000]
    assert measured["rows"][0]["moved"] > 30 > measured["rows"][1]["moved"] == 0
    assert measured["rows"][1]["kl"] < 1e-6
    assert measured["rows"][1]["reply"] == measured["reply"]
    assert client.post("/v1/measure/composition", json={**given, "blocks": BLOCKS[:1]}).status_code == 400
    assert "kv_compose" in client.get("/v1/models").json()["data"][0]["capabilities"]
