"""The probability that a passage answers a question: logistic regression over features of both. Pure.

The weights are in answer_model.json, which `manage.py train answers` writes (docs/decisions/0068).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp
from pathlib import Path

FILE = Path(__file__).with_name("answer_model.json")
LEAST = 0.25  # the probability from which a passage is quoted as an answer
FEATURES = (
    "match",  # the share of the question's words and of what its kind needs that the passage has
    "match_lead",  # how much that is more than the best other passage has; less than 0 for all but the best
    "lead",  # the same for the score of the search, as a share of the best score
    "nearness",  # cosine of question and passage, 0..1
    "context",  # the part of the search's score for words of the messages around it
    "length",  # the logarithm of its number of characters
    "reply",  # the share of the question's words that the question before it in its session has, 0 if it follows none
    "own",  # 1 if the asking person said it
    "assistant",  # 1 if the assistant said it
    "assistant_asked",  # 1 if the question asks what the assistant said, and this is such a passage
    "other_asked",  # 1 if the question asks what the assistant or the person said, and the other one said this
    "chinese",  # 1 if the question is Chinese
)


@dataclass(frozen=True)
class AnswerModel:
    """weights: by feature; the probability is σ(bias + Σ weight · feature)."""

    weights: Mapping[str, float]
    bias: float

    def estimate(self, features: Sequence[float]) -> float:
        """Return the probability for features in the order of FEATURES."""
        odds = self.bias + sum(self.weights[name] * value for name, value in zip(FEATURES, features, strict=True))
        return 1 / (1 + exp(-max(-50.0, min(50.0, odds))))


@cache
def load_answer_model() -> AnswerModel:
    """Return the model of the file. Raises OSError; ValueError."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return AnswerModel(stored["weights"], stored["bias"])


def lead_of(values: Sequence[float], at: int, unseen: float = 1.0) -> float:
    """Return by how much a value is greater than the greatest of the others.

    unseen: what the best of the others is taken to have, as a share of the value, where the search found only this one.
    """
    return values[at] - max((value for index, value in enumerate(values) if index != at), default=unseen * values[at])
