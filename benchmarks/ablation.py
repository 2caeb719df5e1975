"""Measures evidence recall without each part of the score and without each mechanism of the search."""

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.retrieval import HALVES
from benchmarks.tables import markdown
from benchmarks.weights import Bench, bench, change_weight, components, digest_of, weight_of
from vault.lexicon import dates, tokens
from vault.retrieval import sources
from vault.retrieval.fusion import HYBRID, Weights

DEPTHS = (5, 10, 20)
CHOSEN = "as chosen"
TRIED = 0.3  # the weight tried for a part whose weight is 0


def ablation(data: Path) -> dict[str, Any]:
    """Return the recall with the product's weights, with each weight set to 0, and with each unused part given a
    weight."""
    loaded = bench(data)
    return {
        "data_sha256": digest_of(data),
        "weights": {name: weight_of(name) for name in components()},
        "questions": {half: loaded.questions(half) for half in HALVES},
        "recall": {name: loaded.recalls(weights, DEPTHS) for name, weights in variants().items()},
        "mechanisms": {name: _measure_recall(loaded, removed) for name, removed in removals().items()},
    }


def removals() -> dict[str, AbstractContextManager[Any]]:
    """Return patches that remove one mechanism each, by name; each kind of time expression is one mechanism."""
    found: dict[str, AbstractContextManager[Any]] = {
        "without further looks by words": mock.patch.object(sources, "DEEPEST", 1),
        "without days as terms of a question": mock.patch.object(tokens, "days_of", return_value=()),
    }
    for reader in dict.fromkeys(map(reader_of, dates.KINDS)):
        left = tuple(kind for kind in dates.KINDS if reader_of(kind) != reader)
        found[f"without times read by {reader}"] = mock.patch.object(dates, "KINDS", left)
    found["without any named time"] = mock.patch.object(dates, "KINDS", ())
    return found


def reader_of(kind: dates.Kind) -> str:
    read = kind.read
    name: str = (read.func if isinstance(read, partial) else read).__name__
    return name


def _measure_recall(loaded: Bench, removed: AbstractContextManager[Any]) -> dict[str, dict[str, float]]:
    with removed:
        return loaded.recalls(HYBRID, DEPTHS)


def variants() -> dict[str, Weights]:
    """Return the product's weights, variants with one weight set to 0, and variants with the weight TRIED for an unused
    part."""
    found = {CHOSEN: HYBRID}
    for name in components():
        if weight_of(name):
            found[f"without {name}"] = change_weight(name, 0.0)
        else:
            found[f"with {name}"] = change_weight(name, TRIED)
    return found


def ablation_table(figures: dict[str, Any]) -> str:
    chosen = figures["recall"][CHOSEN]["checking"]
    rows = [
        [
            name,
            *(found[half][f"R@{depth}"] for half in HALVES for depth in DEPTHS),
            f"{found['checking']['R@10'] - chosen['R@10']:+.4f}",
        ]
        for name, found in {**figures["recall"], **figures["mechanisms"]}.items()
    ]
    headers = ["", *(f"{half} R@{depth}" for half in HALVES for depth in DEPTHS), "checking R@10 against chosen"]
    return markdown(headers, rows)
