"""The providers that the settings name, built once per process.

Clients of OpenAI's protocol and of S3 are imported only if the settings name them: importing them takes a second.
"""

from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from django.conf import settings

from vault.providers.blobs_folder import FolderBlobStore
from vault.providers.hashing_embedder import HashingEmbedder
from vault.providers.ports import BlobStore, Embedder, Llm, ProviderUnavailable, Reranker, VectorIndex
from vault.providers.reranker import OverlapReranker
from vault.providers.reranker_cross_encoder import CrossEncoderReranker
from vault.providers.sentence_encoder import SentenceEncoderEmbedder
from vault.providers.sentence_transformers import SentenceTransformersEmbedder
from vault.providers.wordllama import WordLlamaEmbedder

if TYPE_CHECKING:
    from vault.providers.engines import InferenceEngine

BLOBS = "blobs"  # the folder of the data directory
MOST_TENANT_MODELS = 64  # clients that this process keeps for tenants


class BlobStoreChoice(Protocol):
    """A bucket of a service that speaks S3 (memos_web.config)."""

    @property
    def bucket(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def endpoint(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def key_id(self) -> str: ...
    @property
    def secret(self) -> str: ...


_BUILDING = Lock()  # `cache` alone would let two threads load the same model twice


def embedder() -> Embedder:
    """The embedder of settings.MEMOS_EMBEDDER. Raises ProviderUnavailable when it cannot be built."""
    choice = settings.MEMOS_EMBEDDER
    with _BUILDING:
        return _make_embedder(choice.family, choice.model, choice.url, choice.key)


def embedder_by_name(name: str) -> Embedder | None:
    """The embedder that calls itself `name`, as it stands beside vectors; None when this process cannot build it.

    A former one of the `openai` family is asked at the address that is configured now.
    """
    configured = embedder()
    if configured.name == name:
        return configured
    choice = settings.MEMOS_EMBEDDER
    with _BUILDING:
        return _make_former_embedder(name, choice.url, choice.key)


def reranker() -> Reranker | None:
    """The reranker of settings.MEMOS_RERANKER; None when none is set. Raises ProviderUnavailable."""
    choice = settings.MEMOS_RERANKER
    if not choice.family:
        return None
    with _BUILDING:
        return _make_reranker(choice.family, choice.model, choice.url, choice.key)


def llm() -> Llm | None:
    """The model of settings.MEMOS_LLM; None when no address is set. Raises ProviderUnavailable if it lacks a part."""
    choice = settings.MEMOS_LLM
    if not choice.url:
        return None
    if not choice.model:
        raise ProviderUnavailable("MEMOS_LLM_URL is set but MEMOS_LLM_MODEL is not: name the model too")
    with _BUILDING:
        return _make_llm(choice.url, choice.key, choice.model, choice.engine)


def engine() -> "InferenceEngine | None":
    """The engine of settings.MEMOS_LLM_ENGINE, where it can do more than answer; else None."""
    choice = settings.MEMOS_LLM
    is_able = choice.engine == "local" or (choice.engine == "vllm" and choice.adapters)
    if not choice.url or not is_able:
        return None
    with _BUILDING:
        return _make_engine(choice.url, choice.key, choice.model, choice.adapters if choice.engine == "vllm" else "")


def tenant_llm(*, url: str, key: str, model: str, read_seconds: float, retries: int) -> Llm:
    """The model behind an address that a tenant wrote. Raises ProviderUnavailable for a bad one.

    If it is that of the installation's engine, requests name caches and adapters as the installation's own do.
    """
    choice = settings.MEMOS_LLM
    served_by = choice.engine if (url, model) == (choice.url, choice.model) else "openai"
    with _BUILDING:
        return _tenant_llm(url, key, model, read_seconds, retries, served_by)


def runs_in_engine(model: Llm) -> bool:
    """Return whether a model is that of settings.MEMOS_LLM, which may be an engine: its own, or a tenant's endpoint."""
    choice = settings.MEMOS_LLM
    return bool(choice.url) and model.place == (choice.url, choice.model)


def vector_index() -> VectorIndex | None:
    """The vector index of settings.MEMOS_VECTOR_INDEX; None where vectors are in PostgreSQL alone."""
    choice = settings.MEMOS_VECTOR_INDEX
    if not choice.address:
        return None
    with _BUILDING:
        return _make_milvus(choice.address, choice.token)


def blob_store() -> BlobStore:
    """The store of settings.MEMOS_BLOB_STORE; a folder of the data directory where none is named."""
    return choose_blob_store(settings.MEMOS_BLOB_STORE, Path(settings.DATA_DIR))


def find_shared_store() -> BlobStore | None:
    """The blob store that machines share; None where it is a folder of this machine."""
    store = blob_store()
    return store if store.is_remote else None


def choose_blob_store(choice: BlobStoreChoice, data_dir: Path) -> BlobStore:
    """The store that is chosen; a folder of `data_dir` where none is."""
    if not choice.bucket:
        return FolderBlobStore(data_dir / BLOBS)
    with _BUILDING:
        return _make_s3_store(
            choice.bucket, choice.prefix, choice.endpoint, choice.region, choice.key_id, choice.secret
        )


@cache
def _make_s3_store(bucket: str, prefix: str, endpoint: str, region: str, key_id: str, secret: str) -> BlobStore:
    from vault.providers.blobs_s3 import S3BlobStore

    return S3BlobStore(bucket=bucket, prefix=prefix, endpoint=endpoint, region=region, key_id=key_id, secret=secret)


@cache
def _make_milvus(address: str, token: str) -> VectorIndex:
    from vault.providers.milvus import MilvusIndex

    return MilvusIndex(address=address, token=token)


@cache
def _make_embedder(family: str, model: str, url: str, key: str) -> Embedder:
    match family:
        case "universal-sentence-encoder":
            return SentenceEncoderEmbedder()
        case "wordllama":
            return WordLlamaEmbedder()
        case "hashing":
            return HashingEmbedder()
        case "sentence-transformers":
            return SentenceTransformersEmbedder(model)
        case "openai":
            from vault.providers.openai_embedder import OpenAiEmbedder
            from vault.providers.openai_endpoint import Endpoint

            return OpenAiEmbedder(Endpoint(url=url, key=key, model=model))
    raise ProviderUnavailable(f"MEMOS_EMBEDDER names {family!r}, which is no embedder")


@cache
def _make_former_embedder(name: str, url: str, key: str) -> Embedder | None:
    """Build a former embedder, once per process; None where it is not installed."""
    family, _, model = name.partition("/")
    try:
        found = _make_embedder(family, model, url, key)
        if family == "sentence-transformers":
            found.dimension  # noqa: B018  loads it, or says that it is not on this machine
    except ProviderUnavailable:
        return None
    return found if found.name == name else None


@cache
def _make_reranker(family: str, model: str, url: str, key: str) -> Reranker:
    match family:
        case "overlap":
            return OverlapReranker()
        case "sentence-transformers":
            return CrossEncoderReranker(model)
        case "openai":
            from vault.providers.openai_endpoint import Endpoint
            from vault.providers.reranker_endpoint import EndpointReranker

            return EndpointReranker(Endpoint(url=url, key=key, model=model))
    raise ProviderUnavailable(f"MEMOS_RERANKER names {family!r}, which is no reranker")


@cache
def _make_llm(url: str, key: str, model: str, served_by: str) -> Llm:
    from vault.providers.openai_endpoint import Endpoint
    from vault.providers.openai_llm import OpenAiLlm

    return OpenAiLlm(Endpoint(url=url, key=key, model=model), served_by)


@cache
def _make_engine(url: str, key: str, model: str, adapters: str) -> "InferenceEngine":
    """Return vLLM with a folder for adapters, else the local engine."""
    from vault.providers.engines import LocalEngine, VllmEngine
    from vault.providers.openai_endpoint import Endpoint

    endpoint = Endpoint(url=url, key=key, model=model)
    return VllmEngine(endpoint, Path(adapters)) if adapters else LocalEngine(endpoint)


@lru_cache(maxsize=MOST_TENANT_MODELS)
def _tenant_llm(url: str, key: str, model: str, read_seconds: float, retries: int, served_by: str) -> Llm:
    from vault.providers.openai_endpoint import Endpoint
    from vault.providers.openai_llm import OpenAiLlm

    endpoint = Endpoint(url=url, key=key, model=model, read_seconds=read_seconds, retries=retries, is_of_operator=False)
    return OpenAiLlm(endpoint, served_by)
