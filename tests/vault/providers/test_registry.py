"""Tests of the choice of a provider by settings."""

from types import SimpleNamespace

import pytest
from pytest_django import Settings

from vault.providers import registry
from vault.providers.hashing_embedder import HashingEmbedder
from vault.providers.openai_embedder import OpenAiEmbedder
from vault.providers.openai_llm import OpenAiLlm
from vault.providers.ports import ProviderUnavailable
from vault.providers.sentence_encoder import SentenceEncoderEmbedder
from vault.providers.sentence_transformers import SentenceTransformersEmbedder
from vault.providers.wordllama import WordLlamaEmbedder

URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("universal-sentence-encoder", SentenceEncoderEmbedder),
        ("wordllama", WordLlamaEmbedder),
        ("hashing", HashingEmbedder),
        ("sentence-transformers", SentenceTransformersEmbedder),
        ("openai", OpenAiEmbedder),
    ],
)
def test_the_settings_choose_the_embedder_and_it_is_built_once(settings: Settings, family: str, kind: type) -> None:
    settings.MEMOS_EMBEDDER = SimpleNamespace(family=family, model="m", url=URL, key="k")
    assert type(registry.embedder()) is kind
    assert registry.embedder() is registry.embedder()


def test_an_unknown_embedder_is_refused(settings: Settings) -> None:
    settings.MEMOS_EMBEDDER = SimpleNamespace(family="magic", model="", url="", key="")
    with pytest.raises(ProviderUnavailable, match="'magic', which is no embedder"):
        registry.embedder()


def test_without_an_address_there_is_no_model(settings: Settings) -> None:
    settings.MEMOS_LLM = SimpleNamespace(url="", key="", model="")
    assert registry.llm() is None


def test_with_an_address_there_is_one_model(settings: Settings) -> None:
    settings.MEMOS_LLM = SimpleNamespace(url=URL, key="k", model="tiny", engine="openai")
    model = registry.llm()
    assert isinstance(model, OpenAiLlm)
    assert model is registry.llm()
    assert model.name == "tiny"


def test_an_address_without_a_model_name_is_refused(settings: Settings) -> None:
    settings.MEMOS_LLM = SimpleNamespace(url=URL, key="k", model="")
    with pytest.raises(ProviderUnavailable, match="MEMOS_LLM_MODEL is not"):
        registry.llm()
