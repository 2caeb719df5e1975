"""What each part of a score brings: evidence recall with its weight set to zero."""

from pathlib import Path
from typing import Any

from benchmarks.retrieval import HALVES
from benchmarks.tables import markdown
from benchmarks.weighing import bench, components, digest_of, weighed, weight_of
from vault.retrieval.ranking import HYBRID, Weights

DEPTHS = (5, 10, 20)
CHOSEN = "as chosen"
TRIED = 0.3  # the weight of a part that is off


def ablation(data: Path) -> dict[str, Any]:
    """Recall as the product ranks, without each part that counts, and with each that does not."""
    loaded = bench(data)
    return {
        "data_sha256": digest_of(data),
        "weights": {name: weight_of(name) for name in components()},
        "questions": {half: loaded.questions(half) for half in HALVES},
        "recall": {name: loaded.recalls(weights, DEPTHS) for name, weights in variants().items()},
    }


def variants() -> dict[str, Weights]:
    """The product's weights; those without each part that counts; those with each part that does not."""
    found = {CHOSEN: HYBRID}
    for name in components():
        if weight_of(name):
            found[f"without {name}"] = weighed(name, 0.0)
        else:
            found[f"with {name}"] = weighed(name, TRIED)
    return found


def ablation_table(figures: dict[str, Any]) -> str:
    chosen = figures["recall"][CHOSEN]["checking"]
    rows = [
        [
            name,
            *(found[half][f"R@{depth}"] for half in HALVES for depth in DEPTHS),
            f"{found['checking']['R@10'] - chosen['R@10']:+.4f}",
        ]
        for name, found in figures["recall"].items()
    ]
    headers = ["", *(f"{half} R@{depth}" for half in HALVES for depth in DEPTHS), "checking R@10 against chosen"]
    return markdown(headers, rows)
