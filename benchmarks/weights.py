"""Measures evidence recall under any weights, by the product's own ranking in process, since no request can set
weights.

The conversations are stored in one tenant, each in a namespace, and are kept: no message is stored twice.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from uuid import UUID

from pgvector import HalfVector

from benchmarks.locomo import Conversation, Question, conversations, recall
from benchmarks.retrieval import HALVES, half_of
from benchmarks.tenants import await_jobs, drafts_of, fill_tenant, owner_of
from governance.actor import Actor
from governance.database import acting
from vault.providers.registry import embedder
from vault.retrieval.fusion import HYBRID, ScoredCandidates, Weights
from vault.retrieval.queries import SearchQuery
from vault.retrieval.question import QuestionVector, read_question
from vault.retrieval.ranker import score_all
from vault.retrieval.scope import resolve_scope
from vault.retrieval.selectors import rank_memories

TENANT = "bench-locomo"


@dataclass(frozen=True)
class Stored:
    """A stored conversation. turns: cube id → turn id."""

    conversation: Conversation
    namespace: str
    turns: dict[UUID, str]

    @property
    def half(self) -> str:
        return half_of(self.conversation)


@dataclass(frozen=True)
class Asked:
    """A question with its vector, so that it is embedded only once for all weights."""

    question: Question
    stored: Stored
    vector: HalfVector


@dataclass(frozen=True)
class Bench:
    """All questions of a file, with their stored conversations."""

    actor: Actor
    asked: list[Asked]

    def questions(self, half: str) -> int:
        return sum(asked.stored.half == half for asked in self.asked)

    def recalls(self, weights: Weights, depths: Sequence[int]) -> dict[str, dict[str, float]]:
        """Return half → R@k → mean evidence recall."""
        sums = {half: [0.0] * len(depths) for half in HALVES}
        for asked in self.asked:
            found = _rank_ids(self.actor, asked, weights, max(depths))
            for index, depth in enumerate(depths):
                sums[asked.stored.half][index] += recall(found[:depth], asked.question.evidence)
        return {
            half: {
                f"R@{depth}": round(total / max(1, self.questions(half)), 4)
                for depth, total in zip(depths, totals, strict=True)
            }
            for half, totals in sums.items()
        }


def components() -> list[str]:
    """Return the names of the parts of a hybrid score."""
    return [part.name for part in fields(HYBRID) if part.name != "graph"]


def weight_of(component: str) -> float:
    found: float = getattr(HYBRID, component)
    return found


def change_weight(component: str, weight: float) -> Weights:
    """Return the product's weights with one changed."""
    return replace(HYBRID, **{component: weight})


def bench(data: Path) -> Bench:
    """Load the file into the tenant, skipping stored messages. Raises BenchmarkError."""
    found = conversations(data)
    actor = owner_of(TENANT).actor
    digest = digest_of(data)[:12]
    stored = [_store(actor, conversation, digest) for conversation in found]
    await_jobs(actor)
    return Bench(actor, [asked for conversation in stored for asked in _pair_questions(conversation)])


def digest_of(data: Path) -> str:
    return hashlib.sha256(data.read_bytes()).hexdigest()


def _store(actor: Actor, conversation: Conversation, digest: str) -> Stored:
    namespace = f"/{digest}/{conversation.id}"
    ids = fill_tenant(actor, drafts_of(conversation.turns, namespace))
    turns = {cube_id: turn.id for cube_id, turn in zip(ids, conversation.turns, strict=True)}
    return Stored(conversation, namespace, turns)


def _pair_questions(stored: Stored) -> list[Asked]:
    vectors = embedder().embed([question.text for question in stored.conversation.questions])
    return [
        Asked(question, stored, HalfVector(vector))
        for question, vector in zip(stored.conversation.questions, vectors, strict=True)
    ]


def score_question(actor: Actor, asked: Asked, weights: Weights, limit: int) -> ScoredCandidates:
    """Return the candidates of a question for `limit` results, before the last step of the ranking."""
    with acting(actor):
        scope = resolve_scope(actor, _search_for(asked, weights, limit))
        return score_all(scope, read_question(scope, _vector_of(asked)), limit)


def _rank_ids(actor: Actor, asked: Asked, weights: Weights, limit: int) -> list[str]:
    """Return the ids of the found turns, best first, as `memories_search` ranks them, without opening or auditing."""
    with acting(actor):
        ranked = rank_memories(resolve_scope(actor, _search_for(asked, weights, limit)), _vector_of(asked), limit)
    return [asked.stored.turns[row.cube_id] for row in ranked]


def _search_for(asked: Asked, weights: Weights, limit: int) -> SearchQuery:
    places = (asked.stored.namespace,)
    return SearchQuery(query=asked.question.text, top_k=limit, namespaces=places, weights=weights)


def _vector_of(asked: Asked) -> QuestionVector:
    model = embedder().name
    return QuestionVector(model, model, asked.vector)
