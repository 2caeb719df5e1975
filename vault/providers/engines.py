"""The port `InferenceEngine`: where a model runs, what it can do beside answering, and the engines that there are."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import httpx2

from governance.transport import Limits, Reach, Transport
from vault.providers.openai_endpoint import CONNECT_SECONDS, Endpoint
from vault.providers.ports import ChatMessage, ProviderUnavailable

CALL_SECONDS = 600.0  # a cache of a long text on a processor takes minutes
ALREADY_LOADED = "has already been loaded"  # of vLLM's answer to a second load
MOST_BYTES = 2 * 1024 * 1024 * 1024  # of a cache


class Capability(StrEnum):
    """The abilities of an engine."""

    COMPLETE = "complete"
    PREFIX_CACHE = "prefix_cache"
    KV_INJECT = "kv_inject"
    ADAPTER_SERVE = "adapter_serve"
    ADAPTER_TRAIN = "adapter_train"


class EngineBusy(Exception):
    """The engine's queue is full, or it trains already."""


@dataclass(frozen=True)
class EngineModel:
    """The model that an engine serves. fingerprint: of weights, tokenizer, template and precision; context: tokens;
    is_movable: the keys of its caches can be rotated to other places."""

    name: str
    fingerprint: str
    context: int
    bytes_per_token: int
    is_movable: bool = False


@dataclass(frozen=True)
class BuiltCache:
    """A cache that an engine built. content: safetensors; seconds: of its build."""

    tokens: int
    seconds: float
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Measured:
    """Seconds with a context and a query: to build its cache, to copy it into the engine, and to the first token with
    the context as text and as a cache that is loaded."""

    context: int
    query: int
    bytes: int
    build_seconds: float
    copy_seconds: float
    text_seconds: float
    cache_seconds: float


@dataclass(frozen=True)
class Comparison:
    """A prompt of moved caches beside the full prompt. again: the tokens of each cache that were read again; kl: of the
    distributions of the first token, in nats; seconds: to that token; moved: the tokens that were not read."""

    again: int
    kl: float
    seconds: float
    moved: int
    reply: str = field(repr=False)


@dataclass(frozen=True)
class ComparedPrompt:
    """The full prompt of blocks, and its comparisons. without: `kl` of a prompt without the blocks."""

    tokens: int
    seconds: float
    without: float
    reply: str = field(repr=False)
    rows: tuple[Comparison, ...]


@dataclass(frozen=True)
class TrainingPair:
    """A question with its answer; paraphrases are asked in examinations only."""

    question: str = field(repr=False)
    answer: str = field(repr=False)
    paraphrases: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class AdapterState:
    """The state of an adapter in the engine: training, trained, in examination, examined, loaded, cancelled, failed."""

    status: str
    step: int
    steps: int
    loss: float
    is_loaded: bool
    report: Mapping[str, float] | None = None


class InferenceEngine(Protocol):
    """An engine. Calls take seconds: never inside a database transaction. Every call raises ProviderUnavailable."""

    @property
    def capabilities(self) -> frozenset[Capability]: ...
    def identify(self) -> EngineModel: ...
    def measure(self, context: int, query: int) -> Measured: ...
    def compare_compositions(
        self, system: str, blocks: Sequence[str], text: str, question: str, agains: Sequence[int]
    ) -> ComparedPrompt:
        """Compare prompts of caches made of single blocks with the full prompt. text: of the blocks in the prompt."""

    def build_cache(self, name: str, messages: Sequence[ChatMessage]) -> BuiltCache:
        """Build the cache of a prompt's beginning, and keep it loaded."""

    def load_cache(self, name: str, content: bytes, *, is_pinned: bool) -> None: ...
    def loaded_caches(self) -> frozenset[str]: ...
    def drop_cache(self, name: str) -> None:
        """Remove a cache; it is no error if there is none."""

    def forget_prefixes(self, salt: str) -> None:
        """Forget what the prefix cache holds of prompts with this salt."""

    def train_adapter(self, name: str, pairs: Sequence[TrainingPair], recipe: Mapping[str, Any]) -> None: ...
    def adapter_state(self, name: str) -> AdapterState | None: ...
    def read_adapter(self, name: str) -> bytes: ...
    def load_adapter(self, name: str, content: bytes) -> None: ...
    def examine_adapter(self, name: str, pairs: Sequence[TrainingPair], strangers: Sequence[str]) -> None: ...
    def drop_adapter(self, name: str) -> None:
        """Cancel a training, forget and unload an adapter; it is no error if there is none."""


class _Caller:
    """Calls an engine's own API, which is below the address of OpenAI's."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        limits = Limits(
            seconds=CALL_SECONDS,
            connect_seconds=CONNECT_SECONDS,
            read_seconds=CALL_SECONDS,
            answer_bytes=MOST_BYTES,
            pieces=10_000_000,
        )
        self._client = httpx2.Client(
            base_url=endpoint.url.rstrip("/"),
            headers={"Authorization": f"Bearer {endpoint.key}"},
            transport=Transport(limits, Reach.OPERATOR),
            timeout=CALL_SECONDS,
        )

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with self._endpoint.translate_failures():
            found = self._call(method, path, json=body).json()
            if not isinstance(found, dict):
                raise self._endpoint.unreadable()
            return found

    def _call(self, method: str, path: str, *, may: Sequence[int] = (), **sent: Any) -> httpx2.Response:
        """Send a request and return its answer. may: statuses beside success. Raises EngineBusy."""
        with self._endpoint.translate_failures():
            answer = self._client.request(method, path, **{name: value for name, value in sent.items() if value})
        if answer.status_code == 503:
            raise EngineBusy
        if not answer.is_success and answer.status_code not in may:
            raise self._endpoint.unavailable(f"answered with status {answer.status_code}")
        return answer


class LocalEngine(_Caller):
    """The engine of this repository (`engine/`)."""

    capabilities = frozenset(Capability)

    def identify(self) -> EngineModel:
        for entry in self._json("GET", "/models").get("data", []):
            if entry.get("id") == self._endpoint.model and "fingerprint" in entry:
                return EngineModel(
                    self._endpoint.model,
                    str(entry["fingerprint"]),
                    int(entry["context"]),
                    int(entry["bytes_per_token"]),
                    "kv_compose" in entry.get("capabilities", []),
                )
        raise self._endpoint.unavailable("is not served by a local engine")

    def measure(self, context: int, query: int) -> Measured:
        return Measured(**self._json("POST", "/measure", {"context": context, "query": query}))

    def compare_compositions(
        self, system: str, blocks: Sequence[str], text: str, question: str, agains: Sequence[int]
    ) -> ComparedPrompt:
        body = {"system": system, "blocks": list(blocks), "text": text, "question": question, "again": list(agains)}
        found = self._json("POST", "/measure/composition", body)
        return ComparedPrompt(**{**found, "rows": tuple(Comparison(**row) for row in found["rows"])})

    def build_cache(self, name: str, messages: Sequence[ChatMessage]) -> BuiltCache:
        body = {"messages": [{"role": message.role.value, "content": message.content} for message in messages]}
        made = self._json("POST", f"/caches/{name}", body)
        return BuiltCache(int(made["tokens"]), float(made["seconds"]), self._call("GET", f"/caches/{name}").content)

    def load_cache(self, name: str, content: bytes, *, is_pinned: bool) -> None:
        self._call("PUT", f"/caches/{name}?pinned={str(is_pinned).lower()}", content=content)

    def loaded_caches(self) -> frozenset[str]:
        return frozenset(cache["name"] for cache in self._json("GET", "/caches")["caches"])

    def drop_cache(self, name: str) -> None:
        self._call("DELETE", f"/caches/{name}", may=(404,))

    def forget_prefixes(self, salt: str) -> None:
        self._call("DELETE", f"/prefixes?salt={salt}")

    def train_adapter(self, name: str, pairs: Sequence[TrainingPair], recipe: Mapping[str, Any]) -> None:
        body = {"pairs": [asdict(pair) for pair in pairs], "recipe": dict(recipe)}
        self._json("POST", f"/adapters/{name}", body)

    def adapter_state(self, name: str) -> AdapterState | None:
        answer = self._call("GET", f"/adapters/{name}", may=(404,))
        if answer.status_code == 404:
            return None
        found = answer.json()
        return AdapterState(
            status=found["status"],
            step=found["step"],
            steps=found["steps"],
            loss=found["loss"],
            is_loaded=found["loaded"],
            report=found["report"],
        )

    def read_adapter(self, name: str) -> bytes:
        return self._call("GET", f"/adapters/{name}/weights").content

    def load_adapter(self, name: str, content: bytes) -> None:
        self._call("PUT", f"/adapters/{name}", content=content)

    def examine_adapter(self, name: str, pairs: Sequence[TrainingPair], strangers: Sequence[str]) -> None:
        body = {"pairs": [asdict(pair) for pair in pairs], "strangers": list(strangers)}
        self._json("POST", f"/adapters/{name}/examination", body)

    def drop_adapter(self, name: str) -> None:
        self._call("DELETE", f"/adapters/{name}", may=(404,))


class VllmEngine(_Caller):
    """vLLM with runtime updating of LoRA adapters allowed. folder: one that vLLM reads at the same path."""

    capabilities = frozenset({Capability.COMPLETE, Capability.PREFIX_CACHE, Capability.ADAPTER_SERVE})

    def __init__(self, endpoint: Endpoint, folder: Path) -> None:
        super().__init__(endpoint)
        self._folder = folder

    def identify(self) -> EngineModel:
        """Return the model without a fingerprint, as vLLM states none: adapters go by the model's name."""
        for entry in self._json("GET", "/models").get("data", []):
            if entry.get("id") == self._endpoint.model:
                return EngineModel(self._endpoint.model, "", int(entry.get("max_model_len") or 0), 0)
        raise self._endpoint.unavailable("is not served by vLLM")

    def adapter_state(self, name: str) -> AdapterState | None:
        names = [entry.get("id") for entry in self._json("GET", "/models").get("data", [])]
        return AdapterState("loaded", 0, 0, 0.0, is_loaded=True) if name in names else None

    def load_adapter(self, name: str, content: bytes) -> None:
        """Load an adapter in PEFT's format. Its files stay as long as it is loaded, because vLLM reads them again when
        it has dropped the adapter for others."""
        place = self._folder / name
        place.mkdir(parents=True, mode=0o700, exist_ok=True)
        try:
            (place / "adapter_model.safetensors").write_bytes(content)
            config = {**json.loads(_read_metadata(content)["config"]), "peft_type": "LORA", "task_type": "CAUSAL_LM"}
            (place / "adapter_config.json").write_text(json.dumps(config))
            body = {"lora_name": name, "lora_path": str(place)}
            answer = self._call("POST", "/load_lora_adapter", json=body, may=(400,))
            if not answer.is_success and ALREADY_LOADED not in answer.text:  # another process may have loaded the same
                raise self._endpoint.unavailable(f"answered with status {answer.status_code}")
        except (KeyError, ValueError):
            shutil.rmtree(place, ignore_errors=True)
            raise self._endpoint.unavailable("cannot take this adapter: its settings cannot be read") from None
        except (ProviderUnavailable, EngineBusy):
            shutil.rmtree(place, ignore_errors=True)
            raise

    def drop_adapter(self, name: str) -> None:
        """Unload an adapter and remove its files. Raises ProviderUnavailable also where vLLM cannot let it go."""
        self._call("POST", "/unload_lora_adapter", json={"lora_name": name}, may=(404,))
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def loaded_caches(self) -> frozenset[str]:
        return frozenset()

    def drop_cache(self, name: str) -> None:
        """Do nothing: vLLM holds no caches by name."""

    def forget_prefixes(self, salt: str) -> None:
        """Do nothing: vLLM forgets prefixes by use alone. No tenant's salt finds another's."""

    def measure(self, context: int, query: int) -> Measured:
        raise self._unable()

    def compare_compositions(
        self, system: str, blocks: Sequence[str], text: str, question: str, agains: Sequence[int]
    ) -> ComparedPrompt:
        raise self._unable()

    def build_cache(self, name: str, messages: Sequence[ChatMessage]) -> BuiltCache:
        raise self._unable()

    def load_cache(self, name: str, content: bytes, *, is_pinned: bool) -> None:
        raise self._unable()

    def train_adapter(self, name: str, pairs: Sequence[TrainingPair], recipe: Mapping[str, Any]) -> None:
        raise self._unable()

    def read_adapter(self, name: str) -> bytes:
        raise self._unable()

    def examine_adapter(self, name: str, pairs: Sequence[TrainingPair], strangers: Sequence[str]) -> None:
        raise self._unable()

    def _unable(self) -> ProviderUnavailable:
        return self._endpoint.unavailable("runs in vLLM, which cannot do that")


def _read_metadata(content: bytes) -> dict[str, str]:
    """Return the metadata of safetensors. Raises KeyError; ValueError."""
    length = int.from_bytes(content[:8], "little")
    found: dict[str, str] = json.loads(content[8 : 8 + length])["__metadata__"]
    return found
