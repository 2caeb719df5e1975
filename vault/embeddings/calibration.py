"""Cosines of any embedder and language on one scale, on which thresholds are stated. Pure.

The scale is the cosine of the default embedder in English. Of each embedder and language the data file has the median
cosine of a question with a message that does not answer it (`unrelated`), and with one that does (`related`). Both are
mapped to those of the scale, and what lies between or beyond linearly; 1, which means equal texts, stays 1.
`manage.py train calibration` makes the file.
"""

import json
from collections.abc import Mapping
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FILE = Path(__file__).with_name("calibration.json")
LANGUAGES = ("en", "zh")  # that are measured; others count as the first


def calibrate(cosine: float, model: str, language: str) -> float:
    """Return a cosine of a model's vectors on the scale; unchanged for a model that was not measured."""
    own, scale = _anchors(model, language)
    return float(np.interp(cosine, own, scale)) if own != scale else cosine


def calibrate_all(cosines: Floats, model: str, language: str) -> Floats:
    """Return positive cosines on the scale, never below 0; 0 stands for a missing vector and stays."""
    own, scale = _anchors(model, language)
    if own == scale:
        return cosines
    return np.where(cosines > 0, np.maximum(np.interp(cosines, own, scale), 0.0), 0.0)


def to_cosine(calibrated: float, model: str, language: str) -> float:
    """Return the cosine of a model's vectors that has this value on the scale."""
    own, scale = _anchors(model, language)
    return float(np.interp(calibrated, scale, own)) if own != scale else calibrated


def probability(calibrated: float) -> float:
    """Return the probability that a message answers a question, at this value of the scale: a logistic regression, with
    as many messages that answer as others.
    """
    scale = _load_file()["scale"]
    return 1 / (1 + exp(-scale["slope"] * calibrated - scale["intercept"]))


def _anchors(model: str, language: str) -> tuple[list[float], list[float]]:
    """Return the values of a model that have a known place on the scale, and these places."""
    models: Mapping[str, Any] = _load_file()["models"]
    measured = models.get(model)
    if measured is None:
        return [-1.0, 1.0], [-1.0, 1.0]
    scale = models[_load_file()["scale"]["model"]][LANGUAGES[0]]
    own = measured[language if language in LANGUAGES else LANGUAGES[0]]
    return [-1.0, own["unrelated"], own["related"], 1.0], [-1.0, scale["unrelated"], scale["related"], 1.0]


@cache
def _load_file() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found
