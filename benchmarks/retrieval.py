"""Evidence recall on LoCoMo: how many of the turns that answer a question are among the first k results.

Tuned on two conversations, checked on the others (spec of the measures); baselines run over the same turns.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

from benchmarks.baselines import Bm25, ExactCosine
from benchmarks.client import Client, Target
from benchmarks.loading import stored
from benchmarks.locomo import Conversation, conversations, recall
from vault.providers.registry import embedder

TUNED_ON = frozenset({"conv-26", "conv-42"})
DEPTHS = (5, 10, 20)
Search = Callable[[str, int], list[str]]
Recalls = dict[str, list[tuple[int, list[float]]]]  # system → (category, recall at each depth) of each question


def retrieval(target: Target, data: Path, mode: str) -> dict[str, Any]:
    """Recall of ours and of the baselines, on the tuning half and on the checking half."""
    client = Client(target)
    halves: dict[str, Recalls] = {"tuning": defaultdict(list), "checking": defaultdict(list)}
    for conversation in conversations(data):
        half = halves["tuning" if conversation.id in TUNED_ON else "checking"]
        for system, found in _measured(client, conversation, mode).items():
            half[system] += found
    return {
        "data_sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
        "mode": mode,
        "embedder": embedder().name,
        "search weights": settings.MEMOS_SEARCH_WEIGHTS,  # where they are not those of the product
        "questions": {half: len(found["ours"]) for half, found in halves.items()},
        **{half: {system: _means(found) for system, found in systems.items()} for half, systems in halves.items()},
        "checking by category": _by_category(halves["checking"]["ours"]),
    }


def _measured(client: Client, conversation: Conversation, mode: str) -> Recalls:
    with stored(client, conversation.turns) as namespace:

        def ours(question: str, limit: int) -> list[str]:
            body = {"query": question, "top_k": limit, "namespaces": [namespace], "mode": mode}
            return [memory["message_id"] for memory in client.call("POST", "memories/search/", body)["results"]]

        systems: dict[str, Search] = {
            "ours": ours,
            "bm25": Bm25(conversation.turns).search,
            "exact cosine": ExactCosine(conversation.turns).search,
        }
        return {system: _recalls(search, conversation) for system, search in systems.items()}


def _recalls(search: Search, conversation: Conversation) -> list[tuple[int, list[float]]]:
    found = []
    for question in conversation.questions:
        results = search(question.text, max(DEPTHS))
        found.append((question.category, [recall(results[:depth], question.evidence) for depth in DEPTHS]))
    return found


def _means(found: Sequence[tuple[int, list[float]]]) -> dict[str, float]:
    return {
        f"R@{depth}": round(sum(recalls[index] for _, recalls in found) / max(1, len(found)), 4)
        for index, depth in enumerate(DEPTHS)
    }


def _by_category(found: Sequence[tuple[int, list[float]]]) -> dict[str, dict[str, float]]:
    categories = sorted({category for category, _ in found})
    return {str(number): _means([one for one in found if one[0] == number]) for number in categories}
