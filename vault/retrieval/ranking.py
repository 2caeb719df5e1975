"""The weights of a score's parts, and their fusion into one score. Pure.

The weights were tuned on two development conversations and checked on three others. `manage.py benchmark retrieval`
repeats that; docs/benchmarks.md lists what each part brings.
"""

import math
from dataclasses import dataclass, replace

BM25_K1 = 1.2
BM25_B = 0.4
SESSION_K = 1.0  # how soon a word stops counting for its session
# What was said before and after counts for a message: distance in its session → share of the neighbour's own score.
CONTEXT = {-1: 0.6, 1: 0.3, -2: 0.3, 2: 0.3}
REACH = max(CONTEXT)
BEST = 20  # cubes, at least, taken into the pool by words, and with each its neighbours
NEAREST = 20  # cubes, at least, taken into the pool by vector
POOLED = 1.5  # of either, for each result that is asked for
LEAST_FITTING = 50  # cubes, at least, taken into the pool because they fit who is named and when
LOOKED_THROUGH = 200  # cubes, the best by words, that are asked whether they fit
DATED = 1_000  # cubes that are looked at for the times that are asked for, the latest of each and of each namespace
LEAST_DATED = 3  # of one time in one namespace, however many they are
BARE = 0.3  # what words count for in a question that only names who spoke, and when
MOST_POSTINGS = 512 * 1024  # that one question reads, of all its terms: 16 MB
FEW = 2_000  # vectors that pass a filter: up to so many are compared one by one
# The vector index costs as much as comparing INDEX_COST vectors for each row that it visits (`benchmark search-latency`
# shows both): never fewer than EF_SEARCH rows, and more where most of what it finds is not the caller's. Where all
# hangs on vectors that finds too few of the nearest: up to COMPARED_ALONE all are compared, beyond it EF_ALONE rows are
# visited (docs/decisions/0008-when-search-uses-an-index.md).
INDEX_COST = 40
EF_SEARCH = 40
COMPARED_ALONE = 150_000
EF_ALONE = 1_000  # the most that pgvector takes


@dataclass(frozen=True)
class Weights:
    """The weight of each part of a score, 0..1. Heat, trust and fingerprint are added to the sum of all others.

    asks: the share of its score that a memory loses if it only asks a question, 0..1.
    """

    lexical: float
    context: float
    session: float
    dense: float
    entity: float
    time: float
    asks: float = 0.0
    graph: float = 0.0
    heat: float = 0.0
    trust: float = 0.0
    fingerprint: float = 0.0

    @property
    def of_behaviour(self) -> float:
        """The sum of the weights that are added after the ranking."""
        return self.heat + self.trust + self.fingerprint

    @property
    def words(self) -> bool:
        """Return whether any part depends on the words of the question."""
        return bool(self.lexical or self.context or self.session)

    @property
    def unspoken(self) -> float:
        """The highest score of a memory without a word of the question: from its vector, its speaker and its time."""
        return self.dense + self.entity + self.time

    def asked(self, *, entity: bool, time: bool, bare: bool, questions: bool) -> "Weights":
        """Without the parts that this question says nothing about; bare: it only says who, or when; questions:
        what it looks for may be a question."""
        words = BARE if bare else 1.0
        return replace(
            self,
            lexical=words * self.lexical,
            context=words * self.context,
            session=words * self.session,
            entity=self.entity if entity else 0.0,
            time=self.time if time else 0.0,
            asks=0.0 if questions else self.asks,
        )


@dataclass(frozen=True)
class Parts:
    """The parts of one cube's score, each in 0..1 (context: up to the sum of CONTEXT)."""

    lexical: float
    context: float
    session: float
    dense: float
    entity: float
    time: float
    asks: float = 0.0
    graph: float = 0.0  # nearness over links: vault/graph/walks.py
    heat: float = 0.0  # vault/retrieval/heat_and_trust.py, and trust
    trust: float = 0.0
    fingerprint: float = 0.0  # cosine of the question and the centroid of those that it answered


NO_PARTS = Parts(lexical=0.0, context=0.0, session=0.0, dense=0.0, entity=0.0, time=0.0)
HYBRID = Weights(lexical=1.0, context=1.0, session=0.7, dense=0.3, entity=0.8, time=0.6, asks=0.25)
LEXICAL = Weights(lexical=1.0, context=0.0, session=0.0, dense=0.0, entity=0.0, time=0.0)
# Nearness alone; of what no walk reaches, the best by words first.
GRAPH = Weights(lexical=1e-9, context=0.0, session=0.0, dense=0.0, entity=0.0, time=0.0, graph=1.0)
DENSE = Weights(lexical=0.0, context=0.0, session=0.0, dense=1.0, entity=0.0, time=0.0)


def rarity(holding: int, cubes: int) -> float:
    """The BM25 weight of a word that `holding` of `cubes` memories contain; never negative, as in Lucene."""
    return math.log(1 + (max(cubes, holding) - holding + 0.5) / (holding + 0.5))


def pooled(at_least: int, limit: int) -> int:
    """The number of candidates to take for `limit` results."""
    return max(at_least, math.ceil(POOLED * limit))


def index_pays(visible: int, stored: int, nearest: int, *, alone: bool) -> bool:
    """Return whether to find the `nearest` of `visible` vectors by an index over all `stored` ones, instead of
    comparing each.

    alone: too few memories match by words, so the result depends on vectors.
    """
    if visible <= (COMPARED_ALONE if alone else 0):
        return False
    visited = EF_ALONE if alone else EF_SEARCH
    return visible > INDEX_COST * (visited + nearest * max(stored, visible) / visible)


def fused(parts: Parts, weights: Weights, *, in_sessions: bool) -> float:
    """The score, 0..1: the weighted sum divided by the highest possible one. Context counts only if a result has a
    session.
    """
    total = (
        weights.lexical * parts.lexical
        + weights.context * parts.context
        + weights.session * parts.session
        + weights.dense * parts.dense
        + weights.entity * parts.entity
        + weights.time * parts.time
        + weights.graph * parts.graph
    )
    most = weights.lexical + weights.dense + weights.entity + weights.time + weights.graph
    if in_sessions:
        most += weights.context * sum(CONTEXT.values()) + weights.session
    return min(1.0, total * (1 - weights.asks * parts.asks) / most) if most else 0.0


def context_share(parts: Parts) -> float:
    """The share of a score that comes from the context window and the session, 0..1."""
    most = HYBRID.context * sum(CONTEXT.values()) + HYBRID.session
    return min(1.0, (HYBRID.context * parts.context + HYBRID.session * parts.session) / most)
