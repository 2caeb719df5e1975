"""Trains the learned weights of the search on LoCoMo's questions, and measures them on conversations left out.

The conversations are stored and ranked in process as in `sweep`. The features are computed by the code of the product.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.locomo import Question, recall
from benchmarks.training import Floats, fit_logistic
from benchmarks.weights import Asked, Bench, bench, score_question
from vault.providers.registry import embedder
from vault.retrieval.fusion import HYBRID
from vault.retrieval.learned_weights import FILE, Features, describe_candidates
from vault.retrieval.lexical import ids_of

DEPTHS = (5, 10, 20)
LANGUAGE = "en"  # of LoCoMo
MULTI_HOP = 1  # the category of questions whose answer is spread over several messages
TRAINED_AMONG = 50  # candidates of a question, the best by their fused score


@dataclass(frozen=True)
class Described:
    """A question with its candidates. features: (candidates, features); turns: of each candidate."""

    question: Question
    conversation: str
    features: Floats
    turns: tuple[str, ...]

    @property
    def labels(self) -> Floats:
        return np.array([turn in self.question.evidence for turn in self.turns], dtype=float)

    def recall_at(self, weights: Floats, depth: int) -> float:
        order = np.argsort(-(self.features @ weights), kind="stable")[:depth]
        return recall([self.turns[index] for index in order], self.question.evidence)


def train_ranking(data: Path) -> dict[str, Any]:
    """Train the weights on all conversations of a file and store them, with figures of each conversation by weights
    that were trained on the others. Returns what is stored. Raises BenchmarkError."""
    described = _describe(bench(data))
    weights = _fit(described)
    model = {
        "embedder": embedder().name,
        "language": LANGUAGE,
        "trained_on": {data.name: hashlib.sha256(data.read_bytes()).hexdigest()},
        "questions": len(described),
        "recall of conversations left out": {
            "unlearned": _measure(described, [_unlearned()] * len(described)),
            "learned": _measure(described, _leave_out(described)),
        },
        "weights": {
            name: round(float(value), 3) for name, value in zip(Features.__annotations__, weights, strict=True)
        },
    }
    FILE.write_text(json.dumps(model, indent=1) + "\n", encoding="utf-8")
    return model


def _describe(loaded: Bench) -> list[Described]:
    return [_describe_question(loaded, asked) for asked in loaded.asked]


def _describe_question(loaded: Bench, asked: Asked) -> Described:
    scored = score_question(loaded.actor, asked, HYBRID, max(DEPTHS))
    features = describe_candidates(scored.candidates, scored.sum_parts(scored.weights))
    ids = ids_of(scored.candidates.high, scored.candidates.low)
    turns = tuple(asked.stored.turns[cube_id] for cube_id in ids)
    return Described(asked.question, asked.stored.conversation.id, np.stack(features, axis=1), turns)


def _fit(described: Sequence[Described]) -> Floats:
    """Return the weights of the features, relative to that of the fused score."""
    features, labels = [], []
    for asked in described:
        among = np.argsort(-asked.features[:, 0], kind="stable")[:TRAINED_AMONG]
        features.append(asked.features[among])
        labels.append(asked.labels[among])
    weights, _ = fit_logistic(np.concatenate(features), np.concatenate(labels), np.ones(sum(map(len, labels))))
    return np.asarray(weights / weights[0])


def _leave_out(described: Sequence[Described]) -> list[Floats]:
    """Return for each question the weights that are trained on the other conversations."""
    fitted = {
        left_out: _fit([asked for asked in described if asked.conversation != left_out])
        for left_out in {asked.conversation for asked in described}
    }
    return [fitted[asked.conversation] for asked in described]


def _unlearned() -> Floats:
    return np.array([1.0] + [0.0] * (len(Features.__annotations__) - 1))


def _measure(described: Sequence[Described], weights: Sequence[Floats]) -> dict[str, float]:
    pairs = list(zip(described, weights, strict=True))
    several = [(asked, found) for asked, found in pairs if asked.question.category == MULTI_HOP]
    figures = {f"R@{depth}": _mean(asked.recall_at(found, depth) for asked, found in pairs) for depth in DEPTHS}
    return {**figures, "multi-hop R@10": _mean(asked.recall_at(found, 10) for asked, found in several)}


def _mean(values: Iterable[float]) -> float:
    return round(float(np.mean(list(values))), 4)
