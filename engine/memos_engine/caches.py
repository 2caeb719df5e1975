"""KV caches in memory: tokens and their keys and values, by name or as prefixes of earlier prompts, within a budget.

A stored cache is never changed: each use gets tensors that it may only read, and `DynamicCache` makes new ones when it
grows. The format outside of memory is safetensors.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

LONGEST_PREFIX_LIFE = 900.0  # seconds without use
LEAST_COMMON = 16  # tokens; a shorter common beginning is not worth a look-up
FORMAT = "memos-kv-1"


class TooLarge(Exception):
    """A cache is larger than the budget."""


class Unreadable(Exception):
    """Bytes are no cache or adapter of this model."""


@dataclass(frozen=True)
class Cache:
    """The keys and values of each layer, of shape (1, heads, len(ids), size), for a sequence of tokens."""

    ids: tuple[int, ...]
    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]

    @property
    def size(self) -> int:
        return sum(part.numel() * part.element_size() for layer in self.layers for part in layer)

    def crop(self, count: int) -> "Cache":
        """Return a view of the first `count` tokens."""
        layers = tuple((keys[:, :, :count], values[:, :, :count]) for keys, values in self.layers)
        return Cache(self.ids[:count], layers)

    def encode(self, fingerprint: str) -> bytes:
        """Return the cache as safetensors."""
        tensors = {}
        for at, (keys, values) in enumerate(self.layers):
            tensors[f"{at}.k"], tensors[f"{at}.v"] = keys.cpu().contiguous(), values.cpu().contiguous()
        tensors["ids"] = torch.tensor(self.ids, dtype=torch.int64)
        return save(tensors, {"format": FORMAT, "fingerprint": fingerprint})


def decode_cache(content: bytes, fingerprint: str, shapes: Sequence[tuple[int, int]], like: torch.Tensor) -> Cache:
    """Return a cache from safetensors. shapes: heads and size of each layer; like: for its type and device.

    Raises Unreadable, also for a cache of another model.
    """
    if read_metadata(content).get("fingerprint") != fingerprint:
        raise Unreadable("the cache is of another model")
    tensors = load(content)
    ids = tensors.get("ids")
    if ids is None or ids.dtype is not torch.int64 or ids.dim() != 1 or not len(ids):
        raise Unreadable("the cache names no tokens")
    layers = []
    for at, (heads, size) in enumerate(shapes):
        pair = tensors.get(f"{at}.k"), tensors.get(f"{at}.v")
        for part in pair:
            if part is None or tuple(part.shape) != (1, heads, len(ids), size) or part.dtype is not like.dtype:
                raise Unreadable("the cache has other layers than the model")
            if not bool(torch.isfinite(part).all()):
                raise Unreadable("the cache holds numbers that are none")
        layers.append(tuple(part.to(like.device) for part in pair if part is not None))
    return Cache(tuple(ids.tolist()), tuple(layers))  # type: ignore[arg-type]


def read_metadata(content: bytes) -> dict[str, Any]:
    """Return the metadata of safetensors. Raises Unreadable."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, 10_000_000):
        raise Unreadable("these bytes are no safetensors")
    try:
        load(content)  # refuses other headers
        header = json.loads(content[8 : 8 + length])
    except (SafetensorError, ValueError, KeyError) as failure:
        raise Unreadable("these bytes are no safetensors") from failure
    return dict(header.get("__metadata__") or {})


def count_common(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the common beginning of two sequences."""
    for at, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return at
    return min(len(first), len(second))


class _Key(NamedTuple):
    """adapter: under which a cache was made; label: the name of a named cache, or the salt of a prefix."""

    adapter: str
    label: str
    number: int  # of a prefix; 0 for named caches


@dataclass
class _Held:
    cache: Cache
    used: float
    is_pinned: bool = False


class CacheStore:
    """Caches within a budget of bytes: the least recently used leaves first, pinned ones last.

    Named caches serve the requests that name them; prefixes of earlier prompts serve requests with the same salt, so
    that no tenant can measure what another asked.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.evicted = 0
        self._lock = threading.Lock()
        self._held: OrderedDict[_Key, _Held] = OrderedDict()  # in the order of their last use
        self._number = 0

    @property
    def size(self) -> int:
        return sum(held.cache.size for held in list(self._held.values()))

    def put(self, name: str, cache: Cache, *, adapter: str = "", is_pinned: bool = False) -> None:
        """Keep a cache by name, in the place of one of the same name. Raises TooLarge."""
        if cache.size > self.budget:
            raise TooLarge(f"the cache has {cache.size} bytes, of {self.budget} for all")
        with self._lock:
            self._held.pop(_Key(adapter, name, 0), None)
            self._held[_Key(adapter, name, 0)] = _Held(cache, time.monotonic(), is_pinned)
            self._make_room()

    def get(self, name: str, adapter: str = "") -> Cache | None:
        held = self._held.get(_Key(adapter, name, 0))
        return held.cache if held else None

    def remove(self, name: str) -> bool:
        """Remove the caches of a name. Return whether there was one."""
        return self._drop(lambda key, _: key.number == 0 and key.label == name) > 0

    def names(self) -> dict[str, int]:
        """Return the tokens of each named cache."""
        return {key.label: len(held.cache.ids) for key, held in list(self._held.items()) if not key.number}

    def remember(self, cache: Cache, *, adapter: str, salt: str) -> None:
        """Keep the cache of a prompt; those that it continues leave."""
        if cache.size > self.budget // 2:
            return
        self._drop(
            lambda key, held: (
                bool(key.number)
                and (key.adapter, key.label) == (adapter, salt)
                and held.cache.ids == cache.ids[: len(held.cache.ids)]
            )
        )
        with self._lock:
            self._number += 1
            self._held[_Key(adapter, salt, self._number)] = _Held(cache, time.monotonic())
            self._make_room()

    def find(self, ids: Sequence[int], *, adapter: str, salt: str, names: Sequence[str] = ()) -> Cache | None:
        """Return the longest beginning of `ids` among the named caches and the prefixes of this salt, or None."""
        self._drop_old()
        best, length = None, LEAST_COMMON - 1
        with self._lock:
            for key, held in self._held.items():
                if key.adapter != adapter or not (key.label == salt if key.number else key.label in names):
                    continue
                common = count_common(held.cache.ids, ids)
                if common > length:
                    best, length = key, common
            if best is None:
                return None
            self._held.move_to_end(best)
            self._held[best].used = time.monotonic()
            return self._held[best].cache.crop(length)

    def forget(self, salt: str | None = None) -> int:
        """Drop the prefixes of a salt, also those with moved caches, or all. Return their number."""
        return self._drop(lambda key, _: bool(key.number) and salt in {None, key.label.partition("\n")[0]})

    def forget_adapter(self, adapter: str) -> None:
        """Drop all caches that were made with an adapter."""
        self._drop(lambda key, _: key.adapter == adapter)

    def _drop_old(self) -> None:
        earliest = time.monotonic() - LONGEST_PREFIX_LIFE
        self._drop(lambda key, held: bool(key.number) and held.used < earliest)

    def _drop(self, chosen: Callable[[_Key, _Held], bool]) -> int:
        with self._lock:
            keys = [key for key, held in self._held.items() if chosen(key, held)]
            for key in keys:
                del self._held[key]
            return len(keys)

    def _make_room(self) -> None:
        over = self.size - self.budget
        free = [key for key, held in self._held.items() if not held.is_pinned]
        pinned = [key for key, held in self._held.items() if held.is_pinned]
        for key in (*free, *pinned):
            if over <= 0:
                return
            over -= self._held.pop(key).cache.size
            self.evicted += 1
