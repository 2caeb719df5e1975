"""Trains the answer model of the chat on labelled questions, of which it uses those of the tuning halves only.

Each conversation is stored and its questions are searched through REST, as a chat does. The features are computed in
this process by the code that the chat runs.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answer_parts import retrieve_passages
from benchmarks.answers import Labelled, Sample, Stored, samples, store_conversation
from benchmarks.client import Client, Target
from vault.chat.rules import make_candidate
from vault.providers.registry import embedder
from vault.reader.rules.answer_model import FEATURES, FILE
from vault.reader.rules.answers import describe_passages
from vault.reader.rules.questions import question_parts

REPORTED = frozenset({"checking", "held out"})  # halves that figures are reported on
PENALTY = 5.0  # of the squared weights of scaled features
ROUNDS = 25  # of Newton's method
Floats = NDArray[np.float64]


def train_answers(target: Target, files: Mapping[Path, float]) -> dict[str, Any]:
    """Train the answer model and store it. files: with the weight of each. Returns figures. Raises BenchmarkError."""
    client = Client(target)
    features: list[list[float]] = []
    labels: list[bool] = []
    weights: list[float] = []
    asked = 0
    for path, weight in files.items():
        for sample in samples(path):
            if sample.half in REPORTED:
                continue
            asked += len(sample.questions)
            for found, answers in _describe_sample(client, sample):
                features.append(found)
                labels.append(answers)
                weights.append(weight)
    fitted, bias = fit_logistic(np.array(features), np.array(labels, dtype=float), np.array(weights))
    model = {
        "embedder": embedder().name,
        "trained_on": {
            path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "weight": weight}
            for path, weight in files.items()
        },
        "questions": asked,
        "passages": len(labels),
        "weights": {name: round(float(value), 4) for name, value in zip(FEATURES, fitted, strict=True)},
        "bias": round(bias, 4),
    }
    FILE.write_text(json.dumps(model, indent=1) + "\n", encoding="utf-8")
    return model


def fit_logistic(features: Floats, labels: Floats, counts: Floats) -> tuple[Floats, float]:
    """Return the weights and the bias of a logistic regression with a penalty on large weights, by Newton's method.

    features: (rows, features); labels: 0 or 1; counts: how much each row counts.
    """
    mean, spread = np.average(features, axis=0, weights=counts), features.std(axis=0) + 1e-6
    scaled = np.column_stack([(features - mean) / spread, np.ones(len(features))])
    penalty = np.append(np.full(features.shape[1], PENALTY), 1e-6)
    found = np.zeros(scaled.shape[1])
    for _ in range(ROUNDS):
        likely = 1 / (1 + np.exp(-scaled @ found))
        slope = scaled.T @ (counts * (likely - labels)) + penalty * found
        curve = (scaled * (counts * likely * (1 - likely))[:, None]).T @ scaled + np.diag(penalty)
        found -= np.linalg.solve(curve, slope)
    weights = found[:-1] / spread
    return weights, float(found[-1] - weights @ mean)


def _describe_sample(client: Client, sample: Sample) -> list[tuple[list[float], bool]]:
    """Return the features of each passage of each question, and whether it answers."""
    with store_conversation(client, sample) as stored:
        return [row for question in sample.questions for row in _describe_question(client, question, stored)]


def _describe_question(client: Client, question: Labelled, stored: Stored) -> list[tuple[list[float], bool]]:
    found = retrieve_passages(client, question.text)
    candidates = {str(memory.marker): make_candidate(memory) for memory in found}
    messages = {str(memory.marker): stored.messages.get(memory.source, "") for memory in found}
    asked = question_parts(question.text, {candidate.speaker for candidate in candidates.values()})
    return [
        (features, is_answer(question, messages[passage.key], passage.text))
        for passage, features in describe_passages(asked, list(candidates.values()))
    ]


def is_answer(question: Labelled, message: str, text: str) -> bool:
    """Return whether a text answers a question. message: the one that states it."""
    if question.evidence:
        return any(message in part for part in question.evidence)
    worded: Sequence[str] = [answer for answer in question.answers if not answer.startswith("^")]
    return any(answer.casefold() in text.casefold() for answer in worded)
