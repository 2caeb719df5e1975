"""Loads conversations into a server in bulk, and erases them."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from benchmarks.client import BenchmarkError, Client
from benchmarks.locomo import Turn

LONGEST_WAIT = 300.0  # seconds for the vectors


def message_of(turn: Turn) -> dict[str, Any]:
    """Return a turn as a message of the REST API."""
    return {
        "role": "user",
        "name": turn.speaker,
        "content": turn.text,
        "timestamp": turn.at.isoformat(),
        "message_id": turn.id,
    }


def items_of(turns: Sequence[Turn], namespace: str) -> list[dict[str, Any]]:
    """Return the turns as bulk items: one memory per message, in order, with their sessions."""
    sessions: dict[int, list[dict[str, Any]]] = {}
    for turn in turns:
        sessions.setdefault(turn.session, []).append(message_of(turn))
    return [
        {"messages": messages, "infer": False, "namespace": namespace, "session_id": f"session-{number}"}
        for number, messages in sessions.items()
    ]


@contextmanager
def store_turns(client: Client, turns: Sequence[Turn]) -> Iterator[str]:
    """Store `turns`, yield their namespace once they are searchable by word and vector, and erase them after the
    block."""
    namespace = f"/benchmarks/{uuid4().hex}"
    reply = client.call("POST", "memories/bulk/", {"items": items_of(turns, namespace)})
    wait_for_vectors(client, namespace)
    yield namespace
    for result in reply["results"]:
        client.call("DELETE", f"memories/{result['memory']['id']}/?purge=true")


def wait_for_vectors(client: Client, namespace: str) -> float:
    """Wait until every memory of the namespace has its vector, and return the seconds. Raises BenchmarkError."""
    started = time.monotonic()
    while time.monotonic() - started < LONGEST_WAIT:
        if not any(memory["pending_embedding"] for memory in _all(client, namespace)):
            return time.monotonic() - started
        time.sleep(0.1)
    raise BenchmarkError("the vectors are not ready: does the worker run?")


def _all(client: Client, namespace: str) -> Iterator[dict[str, Any]]:
    page = client.call("GET", f"memories/?namespace={namespace}&page_size=200")
    yield from page["results"]
    while page["next"]:
        page = client.call("GET", page["next"].partition("/api/v1/")[2])
        yield from page["results"]
