"""Learned weights of the last step of a hybrid ranking: a logistic regression over what the candidates show. Pure.

A candidate is judged by its fused score, and by the messages said before and after it, whose meaning may tell what it
answers ("Where did you go?" before "To Kyoto."). The weights are in learned_weights.json, which
`manage.py train ranking` writes (docs/decisions/0078). They are relative to that of the fused score, which is 1.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vault.retrieval.lexical import Candidates, Floats, look_up_values

FILE = Path(__file__).with_name("learned_weights.json")
LEAST_SHARE = 1e-3  # of its fused score, which a candidate keeps however much it loses


class Features(NamedTuple):
    """The features of each candidate, 0..1. Each share is of the highest value among the candidates."""

    fused: Floats  # share of the highest fused score
    asks: Floats  # 1 if it only asks a question
    time: Floats  # how well its time fits the question
    opens: Floats  # 1 if it is the first message of its session
    near: Floats  # share of the highest cosine with the question
    near_before: Floats  # the same for the message before it in its session, 0 if that is no candidate
    near_after: Floats  # the same for the message after it


def describe_candidates(candidates: Candidates, fused: Floats) -> Features:
    """Return the features of candidates. fused: their fused scores."""
    near = candidates.dense / (candidates.dense.max(initial=0.0) or 1.0)
    _, which = np.unique(candidates.session, return_inverse=True)
    places = (which << 32) | candidates.position
    in_session = candidates.session != 0
    order = np.flatnonzero(in_session)[np.argsort(places[in_session])]

    def beside(away: int) -> Floats:
        found = look_up_values(places[order], near[order], places + away)
        return np.where(in_session & (candidates.position + away >= 0), found, 0.0)

    return Features(
        fused=fused / (fused.max(initial=0.0) or 1.0),
        asks=candidates.asks,
        time=candidates.time,
        opens=(in_session & (candidates.position == 0)).astype(np.float64),
        near=near,
        near_before=beside(-1),
        near_after=beside(1),
    )


def add_learned(candidates: Candidates, fused: Floats, weights: Mapping[str, float], share: float) -> Floats:
    """Return the scores of candidates after the last step; the highest stays as high as it was.

    fused: their scores before, at least 0; those with 0 keep it. share: how much of the learned weights counts, 0..1.
    """
    features = describe_candidates(candidates, fused)
    added = sum(weights[name] * values for name, values in features._asdict().items() if name != "fused")
    scores = np.maximum(features.fused + share * added, LEAST_SHARE * features.fused)
    scores = np.where(fused > 0, scores, 0.0)
    return np.asarray(scores * (fused.max(initial=0.0) / (scores.max(initial=0.0) or 1.0)))


@dataclass(frozen=True)
class LearnedWeights:
    """weights: by feature. embedder, language: of the vectors and questions that they were trained on."""

    weights: Mapping[str, float]
    embedder: str
    language: str

    def fit(self, embedder: str, language: str) -> bool:
        """Return whether they were trained on such vectors and questions; for others they were not checked."""
        return (embedder, language) == (self.embedder, self.language)


@cache
def load_learned_weights() -> LearnedWeights:
    """Return the weights of the file. Raises OSError; ValueError."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return LearnedWeights(stored["weights"], stored["embedder"], stored["language"])
