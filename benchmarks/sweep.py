"""Measures how recall depends on the weights: k from 5 to 40, and each weight multiplied by 0.5 and 1.5."""

from pathlib import Path
from typing import Any

from benchmarks.retrieval import HALVES
from benchmarks.tables import markdown
from benchmarks.weights import bench, change_weight, components, digest_of, weight_of
from vault.retrieval.fusion import HYBRID

DEPTHS = (5, 10, 15, 20, 25, 30, 35, 40)
FACTORS = (0.5, 1.5)
AT = (10, max(DEPTHS))  # weights are compared at the first depth, but ranked to the last one


def sweep(data: Path) -> dict[str, Any]:
    loaded = bench(data)
    varied = {
        f"{name} × {factor}": loaded.recalls(change_weight(name, weight_of(name) * factor), AT)
        for name in components()
        if weight_of(name)
        for factor in FACTORS
    }
    return {
        "data_sha256": digest_of(data),
        "weights": {name: weight_of(name) for name in components()},
        "questions": {half: loaded.questions(half) for half in HALVES},
        "depth": loaded.recalls(HYBRID, DEPTHS),
        "weight": varied,
    }


def sweep_table(figures: dict[str, Any]) -> str:
    depths = markdown(
        ["", *(f"R@{depth}" for depth in DEPTHS)],
        [[half, *figures["depth"][half].values()] for half in HALVES],
    )
    key = f"R@{AT[0]}"
    chosen = [["as chosen", *(figures["depth"][half][key] for half in HALVES)]]
    varied = [[name, *(found[half][key] for half in HALVES)] for name, found in figures["weight"].items()]
    weights = markdown(["weight", *(f"{half} {key}" for half in HALVES)], [*chosen, *varied])
    return f"{depths}\n\n{weights}"
