"""The providers that the settings name, built once per process."""

from functools import cache
from threading import Lock

from django.conf import settings

from vault.providers.hashing import HashingEmbedder
from vault.providers.openai_embedder import OpenAiEmbedder
from vault.providers.openai_endpoint import Endpoint
from vault.providers.openai_llm import OpenAiLlm
from vault.providers.ports import Embedder, Llm, ProviderUnavailable
from vault.providers.sentence_transformers import SentenceTransformersEmbedder
from vault.providers.wordllama import WordLlamaEmbedder

_BUILDING = Lock()  # `cache` alone would let two threads load the same model twice


def embedder() -> Embedder:
    """The embedder of settings.MEMOS_EMBEDDER. Raises ProviderUnavailable when it cannot be built."""
    choice = settings.MEMOS_EMBEDDER
    with _BUILDING:
        return _embedder(choice.family, choice.model, choice.url, choice.key)


def llm() -> Llm | None:
    """The model of settings.MEMOS_LLM; None when no address is set. Raises ProviderUnavailable if it lacks a part."""
    choice = settings.MEMOS_LLM
    if not choice.url:
        return None
    if not choice.model:
        raise ProviderUnavailable("MEMOS_LLM_URL is set but MEMOS_LLM_MODEL is not: name the model too")
    with _BUILDING:
        return _llm(choice.url, choice.key, choice.model)


@cache
def _embedder(family: str, model: str, url: str, key: str) -> Embedder:
    match family:
        case "wordllama":
            return WordLlamaEmbedder()
        case "hashing":
            return HashingEmbedder()
        case "sentence-transformers":
            return SentenceTransformersEmbedder(model)
        case "openai":
            return OpenAiEmbedder(Endpoint(url=url, key=key, model=model))
    raise ProviderUnavailable(f"MEMOS_EMBEDDER names {family!r}, which is no embedder")


@cache
def _llm(url: str, key: str, model: str) -> Llm:
    return OpenAiLlm(Endpoint(url=url, key=key, model=model))
