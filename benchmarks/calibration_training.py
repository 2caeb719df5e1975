"""Measures how an embedder's cosine tells questions with their answers from others, in each language.

Uses the halves of the labelled conversations on which no figure is reported. Needs no server.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import Sample, samples
from benchmarks.client import BenchmarkError
from benchmarks.training import REPORTED, fit_logistic, is_answer
from vault.embeddings.calibration import FILE, LANGUAGES, probability
from vault.layers.rules import Constants
from vault.lexicon.tokens import language_of
from vault.providers.ports import Embedder
from vault.providers.registry import embedder
from vault.providers.sentence_encoder import SentenceEncoderEmbedder
from vault.providers.wordllama import WordLlamaEmbedder
from vault.retrieval.fusion import LEAST_DENSE
from vault.store import catalogue, comparison

Floats = NDArray[np.float64]
THRESHOLDS = {
    "relevance without a common word": LEAST_DENSE,
    "a pack's statement beside an own one": comparison.LEAST_SIMILAR,
    "a pack that is found by its meaning": catalogue.LEAST_SIMILAR,
    "a page that joins a segment": Constants().theta,
}
FEWEST = 10  # questions with their answers, of a language


def train_calibration(path: Path) -> dict[str, Any]:
    """Measure the packaged embedders and the configured one, and store the file. Raises BenchmarkError."""
    models: dict[str, Embedder] = {
        model.name: model for model in (SentenceEncoderEmbedder(), WordLlamaEmbedder(), embedder())
    }
    used = [sample for sample in samples(path) if sample.half not in REPORTED]
    file: dict[str, Any] = {"trained_on": {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}, "models": {}}
    for name, model in models.items():
        file["models"][name] = {}
        for language in LANGUAGES:
            cosines, labels = _compare_pairs(model, [sample for sample in used if _language(sample) == language])
            file["models"][name][language] = _measure(cosines, labels)
            if not file.get("scale"):
                slope, intercept = fit_logistic(cosines[:, None], labels, _balance(labels))
                scale = {"model": name, "slope": round(float(slope[0]), 3), "intercept": round(intercept, 3)}
                file = {"trained_on": file["trained_on"], "scale": scale, "models": file["models"]}
    FILE.write_text(json.dumps(file, indent=1) + "\n", encoding="utf-8")
    return file


def _measure(cosines: Floats, labels: Floats) -> dict[str, float]:
    related, unrelated = cosines[labels == 1], cosines[labels == 0]
    ahead = float(np.mean(related[:, None] > unrelated[None, :]))
    return {
        "unrelated": round(float(np.median(unrelated)), 4),
        "related": round(float(np.median(related)), 4),
        "pairs": len(labels),
        "related_pairs": len(related),
        "auc": round(ahead, 3),
    }


def _compare_pairs(model: Embedder, used: Sequence[Sample]) -> tuple[Floats, Floats]:
    """Return the cosine of each question with each message of its conversation, and 1 where the message answers."""
    cosines: list[Floats] = []
    labels: list[bool] = []
    for sample in used:
        texts = [str(message["content"]) for _, message in sample.messages]
        asked = [question for question in sample.questions if question.answers]
        vectors = model.embed([*texts, *(question.text for question in asked)]).astype(np.float64)
        cosines.append((vectors[len(texts) :] @ vectors[: len(texts)].T).ravel())
        labels += [is_answer(question, text, text) for question in asked for text in texts]
    if sum(labels) < FEWEST:
        raise BenchmarkError(f"{FEWEST} questions with their answers are needed in each language of {LANGUAGES}")
    return np.concatenate(cosines), np.array(labels, dtype=float)


def _balance(labels: Floats) -> Floats:
    share = labels.mean()
    counts: Floats = np.where(labels == 1, 0.5 / share, 0.5 / (1 - share))
    return counts


def _language(sample: Sample) -> str:
    return language_of(" ".join(question.text for question in sample.questions))


def lines(file: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text, and the probability that each threshold of the product stands for."""
    for name, languages in file["models"].items():
        for language, found in languages.items():
            measured = "  ".join(f"{value} {found[value]:.3f}" for value in ("unrelated", "related", "auc"))
            yield f"{name:44} {language}  {measured}"
    for what, least in THRESHOLDS.items():
        yield f"{what:44} {least}  probability {probability(least):.2f}"
