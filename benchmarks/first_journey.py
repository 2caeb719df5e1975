"""Stores one conversation through REST, message by message, and searches every question about it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.bulk_load import message_of, wait_for_vectors
from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.locomo import Conversation, Question, Turn, conversations, recall
from benchmarks.report import timing
from benchmarks.tables import markdown

TOP_K = 10


def first_journey(target: Target, data: Path, sample: str) -> dict[str, Any]:
    """Return the figures of one run. Its memories are erased at the end."""
    conversation = _choose(conversations(data), sample)
    client, namespace = Client(target), f"/benchmarks/{uuid4().hex}"
    stored, add_ms = _add_all(client, namespace, conversation.turns)
    embedded_after = wait_for_vectors(client, namespace)
    recalls, search_ms = _search_all(client, namespace, conversation.questions)
    for memory_id in stored:
        client.call("DELETE", f"memories/{memory_id}/?purge=true")
    return {
        "conversation": conversation.id,
        "data_sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
        "messages": len(conversation.turns),
        "questions": len(conversation.questions),
        f"recall@{TOP_K}": round(sum(recalls) / len(recalls), 4),
        "add_ms": timing(add_ms),
        "search_ms": timing(search_ms),
        "vectors_ready_s": round(embedded_after, 2),
    }


def first_journey_table(figures: dict[str, Any]) -> str:
    rows = [[name, figures[key].p50, figures[key].p95] for name, key in (("add", "add_ms"), ("search", "search_ms"))]
    recalled = [[name, figures[name]] for name in ("messages", "questions", f"recall@{TOP_K}", "vectors_ready_s")]
    return f"{markdown(['', 'p50 ms', 'p95 ms'], rows)}\n\n{markdown([figures['conversation'], ''], recalled)}"


def _choose(found: Sequence[Conversation], sample: str) -> Conversation:
    for conversation in found:
        if conversation.id == sample:
            return conversation
    raise BenchmarkError(f"no conversation {sample}; there are {', '.join(conversation.id for conversation in found)}")


def _add_all(client: Client, namespace: str, turns: Sequence[Turn]) -> tuple[list[str], list[float]]:
    stored, times = [], []
    for turn in turns:
        session = f"session-{turn.session}"
        body = {"messages": [message_of(turn)], "infer": False, "namespace": namespace, "session_id": session}
        reply = client.call("POST", "memories/", body)
        times.append(client.last_ms)
        stored.append(reply["results"][0]["id"])
    return stored, times


def _search_all(client: Client, namespace: str, questions: Sequence[Question]) -> tuple[list[float], list[float]]:
    recalls, times = [], []
    for question in questions:
        body = {"query": question.text, "top_k": TOP_K, "namespaces": [namespace]}
        reply = client.call("POST", "memories/search/", body)
        times.append(client.last_ms)
        recalls.append(recall([memory["message_id"] for memory in reply["results"]], question.evidence))
    return recalls, times
