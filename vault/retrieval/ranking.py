"""How the parts of a score become one. Pure. The weights were set on conv-26 and conv-42 alone (docs/benchmarks.md)."""

from dataclasses import dataclass

BM25_K1 = 1.2
BM25_B = 0.75


@dataclass(frozen=True)
class Weights:
    """Share of each part in the fused score; each part lies in 0..1, so the score does too."""

    lexical: float
    context: float
    dense: float


HYBRID = Weights(lexical=0.5, context=0.25, dense=0.25)
LEXICAL = Weights(lexical=1.0, context=0.0, dense=0.0)
DENSE = Weights(lexical=0.0, context=0.0, dense=1.0)
