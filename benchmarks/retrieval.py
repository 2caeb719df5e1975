"""Measures evidence recall on LoCoMo: the share of the turns that answer a question among the first k results.

Weights were tuned on two conversations and checked on the others. Baselines run over the same turns, and so does mem0
if it is installed.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings

from benchmarks.baselines import Bm25, ExactCosine
from benchmarks.bulk_load import store_turns
from benchmarks.client import Client, Target
from benchmarks.locomo import Conversation, conversations, recall
from benchmarks.peers import mem0, mem0_version, why_no_mem0
from benchmarks.tables import markdown
from vault.providers.registry import embedder

HALVES = ("tuning", "checking")
TUNED_ON = frozenset({"conv-26", "conv-42"})
DEPTHS = (5, 10, 20)
Search = Callable[[str, int], list[str]]
Recalls = dict[str, list[tuple[int, list[float]]]]  # system → (category, recall at each depth) of each question


def retrieval(target: Target, data: Path, mode: str) -> dict[str, Any]:
    """Return the recall of the product, the baselines and mem0, on the tuning half and the checking half."""
    client = Client(target)
    halves: dict[str, Recalls] = {half: defaultdict(list) for half in HALVES}
    for conversation in conversations(data):
        half = halves[half_of(conversation)]
        for system, recalls in _measure(client, conversation, mode).items():
            half[system] += recalls
    return {
        "data_sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
        "mode": mode,
        "embedder": embedder().name,
        "search weights": settings.MEMOS_SEARCH_WEIGHTS,  # empty for the product's own weights
        "mem0": why_no_mem0() or f"mem0ai {mem0_version()}, infer=False",
        "questions": {half: len(recalls["ours"]) for half, recalls in halves.items()},
        **{half: {system: _means(found) for system, found in systems.items()} for half, systems in halves.items()},
        "checking by category": _by_category(halves["checking"]["ours"]),
    }


def retrieval_table(figures: dict[str, Any]) -> str:
    """Format recall as a table. If a file has conversations of only one half, the other half's cells are empty."""
    columns = [(half, f"R@{depth}") for half in HALVES for depth in DEPTHS]
    systems = dict.fromkeys(system for half in HALVES for system in figures[half])
    rows = [[system, *(figures[half].get(system, {}).get(depth, "") for half, depth in columns)] for system in systems]
    return markdown(["system", *(f"{half} {depth}" for half, depth in columns)], rows)


def half_of(conversation: Conversation) -> str:
    """Return the name of the half that contains a conversation."""
    return HALVES[0] if conversation.id in TUNED_ON else HALVES[1]


def _measure(client: Client, conversation: Conversation, mode: str) -> Recalls:
    with store_turns(client, conversation.turns) as namespace, _peers(conversation) as peers:

        def ours(question: str, limit: int) -> list[str]:
            body = {"query": question, "top_k": limit, "namespaces": [namespace], "mode": mode}
            return [memory["message_id"] for memory in client.call("POST", "memories/search/", body)["results"]]

        systems: dict[str, Search] = {
            "ours": ours,
            "bm25": Bm25(conversation.turns).search,
            "exact cosine": ExactCosine(conversation.turns).search,
            **peers,
        }
        return {system: _recalls(search, conversation) for system, search in systems.items()}


@contextmanager
def _peers(conversation: Conversation) -> Iterator[dict[str, Search]]:
    """Yield mem0 with the conversation in a temporary collection; nothing if mem0 is not installed.

    Its texts are `speaker: text`, as in the baselines, because it does not search the names of messages.
    """
    if why_no_mem0() is not None:
        yield {}
        return
    with mem0(f"retrieval_{uuid4().hex[:8]}") as peer:
        for turn in conversation.turns:
            peer.add(replace(turn, text=f"{turn.speaker}: {turn.text}"), conversation.id)
        peer.vacuum()
        yield {"mem0": lambda question, limit: peer.turns(question, conversation.id, limit)}
        peer.memory.vector_store.delete_col()


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
    return {str(number): _means([result for result in found if result[0] == number]) for number in categories}
