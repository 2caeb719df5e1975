"""Caches that were made apart, put together in one prompt: their keys are rotated to their new places (RoPE, Su et al.,
arXiv 2104.09864), and some of their tokens are read again.

What is put together is not the full prompt: the tokens of a moved cache do not attend to what stands before it now.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from memos_engine.caches import Cache

CHUNK = 512  # tokens of one step of a prefill: between two, a call can end
LEAST_RUN = 8  # tokens: shorter matches are chance
EXAMINED, FAR = 24, 100  # tokens of the examination of a model, and how far they are moved
LARGEST_ERROR = {torch.float32: 1e-3}
LARGEST_ERROR_ELSE = 3e-2  # of half precision


class Cancelled(Exception):
    """The client has left or has cancelled the work, so its result is not needed."""


@dataclass(frozen=True)
class Run:
    """Tokens of a cache, from `start`, that a prompt has from `place`."""

    cache: Cache
    start: int
    place: int
    length: int

    def shorten(self, count: int) -> "Run":
        """Return the run without its first tokens."""
        return Run(self.cache, self.start + count, self.place + count, self.length - count)


def find_runs(ids: Sequence[int], begin: int, moved: Sequence[tuple[Cache, int]]) -> list[Run]:
    """Return the tokens that a prompt has in common with caches, from `begin` on, in the order of the caches.

    moved: caches, each with the number of its first tokens in the prompt that are read again. Tokens that differ, such
    as numbers of memories, end a run. A cache in another order than in the prompt is not found.
    """
    places: dict[tuple[int, ...], list[int]] = {}
    for at in range(begin, len(ids) - LEAST_RUN + 1):
        places.setdefault(tuple(ids[at : at + LEAST_RUN]), []).append(at)
    found: list[Run] = []
    for cache, again in moved:
        at, left = 0, again
        while at <= len(cache.ids) - LEAST_RUN:
            here = places.get(cache.ids[at : at + LEAST_RUN], ())
            place = next((place for place in here if place >= begin), None)
            if place is None:
                at += 1
                continue
            length = LEAST_RUN
            while at + length < len(cache.ids) and place + length < len(ids):
                if cache.ids[at + length] != ids[place + length]:
                    break
                length += 1
            run, skipped = Run(cache, at, place, length), min(left, length)
            found += [run.shorten(skipped)] if skipped < length else []
            left, at, begin = left - skipped, at + length, place + length
    return found


def rotate_keys(keys: torch.Tensor, shift: int, frequencies: torch.Tensor) -> torch.Tensor:
    """Return keys as they would be `shift` places later. keys: (1, heads, tokens, size); frequencies: of RoPE, (n,) for
    the first 2n numbers of a key.
    """
    angles = torch.cat((frequencies, frequencies)).to(torch.float64) * shift
    turning, rest = keys[..., : len(angles)].float(), keys[..., len(angles) :]
    first, second = turning.chunk(2, dim=-1)
    turned = turning * angles.cos().float() + torch.cat((-second, first), dim=-1) * angles.sin().float()
    return torch.cat((turned.to(keys.dtype), rest), dim=-1)


def find_frequencies(model: Any) -> torch.Tensor | None:
    """Return the frequencies of a model's RoPE, or None if it has none, or several."""
    found = [getattr(module, "inv_freq", None) for module in model.modules()]
    tensors = [each for each in found if isinstance(each, torch.Tensor)]
    return tensors[0] if len(tensors) == 1 else None


@torch.inference_mode()
def can_move(model: Any, config: Any, frequencies: torch.Tensor | None) -> bool:
    """Return whether rotated keys are those that the model computes at the new place, in all layers."""
    if frequencies is None or set(getattr(config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
        return False
    device = frequencies.device
    ids = torch.tensor([[(7 * at + 11) % (config.vocab_size - 100) + 50 for at in range(EXAMINED)]], device=device)
    there = []
    for shift in (0, FAR):
        past = DynamicCache(config=config)
        positions = torch.arange(shift, shift + EXAMINED, device=device)[None]
        model(input_ids=ids, position_ids=positions, past_key_values=past, use_cache=True, logits_to_keep=1)
        there.append([layer.keys for layer in past.layers])
    errors = [
        float((rotate_keys(before, FAR, frequencies) - after).abs().max() / after.abs().max())
        for before, after in zip(*there, strict=True)
    ]
    return max(errors) <= LARGEST_ERROR.get(there[0][0].dtype, LARGEST_ERROR_ELSE)


@torch.inference_mode()
def prefill_composed(
    model: Any,
    config: Any,
    frequencies: torch.Tensor,
    ids: Sequence[int],
    cached: Cache | None,
    runs: Sequence[Run],
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[DynamicCache, torch.Tensor]:
    """Read the tokens that neither `cached`, a real beginning, nor the runs have. Return the cache of all, in the order
    of the prompt, and the logits after the last. Raises Cancelled.

    A token that is read attends to all before it, wherever their keys come from.
    """
    places = list(range(len(cached.ids))) if cached else []
    parts = [[list(pair)] for pair in cached.layers] if cached else [[] for _ in range(config.num_hidden_layers)]
    for run in runs:
        end = run.start + run.length
        for part, (keys, values) in zip(parts, run.cache.layers, strict=True):
            rotated = rotate_keys(keys[:, :, run.start : end], run.place - run.start, frequencies)
            part.append([rotated, values[:, :, run.start : end]])
        places += range(run.place, run.place + run.length)
    pairs = [(torch.cat([k for k, _ in part], 2), torch.cat([v for _, v in part], 2)) for part in parts if part]
    past = DynamicCache(pairs, config=config) if pairs else DynamicCache(config=config)
    known, logits = set(places), None
    rest = [at for at in range(len(ids)) if at not in known]
    for first in range(0, len(rest), CHUNK):
        if cancelled():
            raise Cancelled
        chunk = rest[first : first + CHUNK]
        places += chunk
        at, before = (torch.tensor(each, device=frequencies.device) for each in (chunk, places))
        mask = torch.zeros(1, 1, len(chunk), len(places), dtype=model.dtype, device=at.device)
        mask.masked_fill_(at[:, None] < before[None, :], torch.finfo(model.dtype).min)
        logits = model(
            input_ids=torch.tensor(ids, device=at.device)[at][None],
            position_ids=at[None],
            attention_mask=mask,
            past_key_values=past,
            use_cache=True,
            logits_to_keep=1,
        ).logits[0, -1]
    assert logits is not None
    order = torch.tensor(places, device=logits.device).argsort()
    for layer in past.layers:
        layer.keys, layer.values = layer.keys.index_select(2, order), layer.values.index_select(2, order)
    return past, logits
