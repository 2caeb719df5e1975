"""Cosines of any embedder and language on one scale, on which thresholds are stated."""

import json
from typing import Any

import numpy as np
import pytest

from tests.harness.cases import each_case
from vault.embeddings.calibration import FILE, calibrate, calibrate_all, probability, to_cosine
from vault.providers.sentence_encoder import SentenceEncoderEmbedder
from vault.providers.wordllama import WordLlamaEmbedder

DEFAULT, OTHER = SentenceEncoderEmbedder.name, WordLlamaEmbedder.name
MEASURED: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["models"]


@each_case("cosine", [-1.0, -0.2, 0.0, 0.06, 0.3, 0.6, 1.0])
def test_the_default_embedder_in_english_is_the_scale(cosine: float) -> None:
    assert calibrate(cosine, DEFAULT, "en") == cosine
    assert calibrate(cosine, "someone's/model", "zh") == cosine  # not measured


@each_case("model", [DEFAULT, OTHER])
@each_case("language", ["en", "zh", "de"])
def test_the_scale_rises_and_returns(model: str, language: str) -> None:
    cosines = np.linspace(-1, 1, 81)
    found = [calibrate(cosine, model, language) for cosine in cosines]
    assert found == sorted(found)
    assert (found[0], found[-1]) == pytest.approx((-1, 1))
    assert [to_cosine(value, model, language) for value in found] == pytest.approx(cosines.tolist())


def test_unrelated_and_related_texts_have_the_same_place_in_each_language() -> None:
    """Chinese texts without a relation have a cosine of .49 by one of them, which means nothing there."""
    scale = MEASURED[DEFAULT]["en"]
    for model, languages in MEASURED.items():
        for language, measured in languages.items():
            for name in ("unrelated", "related"):
                assert calibrate(measured[name], model, language) == pytest.approx(scale[name])
    assert calibrate(0.49, OTHER, "zh") < 0.1
    assert calibrate(0.49, OTHER, "en") > 0.4


def test_a_threshold_is_a_probability() -> None:
    assert probability(-1) < 0.01
    assert 0.8 < probability(0.3) < 0.9
    assert probability(0.6) > 0.99


def test_missing_vectors_stay_without_a_score() -> None:
    found = calibrate_all(np.array([0.0, 0.2, 0.68]), OTHER, "zh")
    assert found.tolist() == pytest.approx([0.0, 0.0, 0.34], abs=0.01)
