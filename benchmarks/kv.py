"""KV caches beside text: seconds to the first token of a query after a context, as the paper's table has them.

MemOS, arXiv 2507.03724, table of KV-based memory acceleration: build, first token with and without, by context × query.
Then prompts of caches that were made apart, beside the full prompt.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.client import BenchmarkError
from benchmarks.tables import markdown
from vault.conversion.quality import MOVED, measure_quality
from vault.forms.costs import measure_costs
from vault.forms.rules import choose_form
from vault.providers.engines import InferenceEngine
from vault.providers.registry import engine

CONTEXTS, QUERIES = (256, 1_024, 2_048), (32, 167)  # tokens
ROUNDS = 3
TOGETHER = ((4, 1), (10, 1), (10, 5))  # memories, and those of one cache


def kv(
    contexts: Sequence[int] = CONTEXTS,
    queries: Sequence[int] = QUERIES,
    rounds: int = ROUNDS,
    together: Sequence[tuple[int, int]] = TOGETHER,
) -> dict[str, Any]:
    """Measure the engine of MEMOS_LLM_ENGINE; of several rounds the fastest counts, as other work only slows them."""
    runs_in = engine()
    if runs_in is None:
        raise BenchmarkError("no engine: set MEMOS_LLM_URL, MEMOS_LLM_MODEL and MEMOS_LLM_ENGINE=local")
    model = runs_in.identify()
    costs = measure_costs(runs_in, model)
    runs_in.measure(min(contexts), min(queries))  # warms it up
    rows = []
    for context in contexts:
        for query in queries:
            measured = [runs_in.measure(context, query) for _ in range(rounds)]
            text, cache = (min(getattr(one, f"{form}_seconds") for one in measured) for form in ("text", "cache"))
            choice = choose_form(costs, context, measured[0].bytes, is_loaded=True)
            rows.append(
                {
                    "context": context,
                    "query": query,
                    "megabytes": round(measured[0].bytes / 1e6, 1),
                    "build": round(min(one.build_seconds for one in measured), 3),
                    "copy": round(min(one.copy_seconds for one in measured), 3),
                    "text": round(text, 3),
                    "cache": round(cache, 3),
                    "saving": f"{100 * (cache / text - 1):+.1f} %",
                    "chosen": str(choice.form),
                }
            )
    compositions = [_compose(runs_in, *counts) for counts in together] if model.is_movable else []
    figures = {"model": model.name, "fingerprint": model.fingerprint, "costs": asdict(costs)}
    return {**figures, "rows": rows, "compositions": compositions}


def _compose(runs_in: InferenceEngine, memories: int, size: int) -> dict[str, Any]:
    """Return the quality of each composition of memories, with a cache for each `size` of them."""
    found = measure_quality(runs_in, memories, size)
    moved = {str(choice): asdict(row) for choice, row in found.moved.items()}
    return {
        "memories": f"{memories // size} × {size}",
        "without": found.without,
        "tokens": found.tokens,
        "full": asdict(found.full),
        **moved,
    }


def kv_table(figures: dict[str, Any]) -> str:
    headers = ["context, query", "MB", "build s", "copy s", "first token as text s", "as cache s", "saving", "chosen"]
    parts = ("megabytes", "build", "copy", "text", "cache", "saving", "chosen")
    rows = [[f"{row['context']}, {row['query']}", *(row[part] for part in parts)] for row in figures["rows"]]
    table = f"{figures['model']}\n\n{markdown(headers, rows)}"
    composed = [
        [f"{found['memories']}, {name}", *(found[name][part] for part in ("kl", "same", "right", "moved", "seconds"))]
        for found in figures["compositions"]
        for name in ("full", *map(str, MOVED))
    ]
    composed += [
        [f"{found['memories']}, no memories", found["without"], "", "", "", ""] for found in figures["compositions"]
    ]
    headers = ["caches × memories, composition", "KL", "same replies", "right replies", "tokens moved", "first token s"]
    return f"{table}\n\n{markdown(headers, composed)}" if composed else table
