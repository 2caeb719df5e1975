"""The parts of a candidate's score, their weights, and their fusion into one score. Pure.

The weights were tuned on two development conversations and checked on three others. Learned weights then change the
order once more (vault/retrieval/learned_weights.py). docs/benchmarks.md lists what each part brings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

import numpy as np

from vault.retrieval.learned_weights import add_learned, load_learned_weights
from vault.retrieval.lexical import CONTEXT, Candidates, Floats, LexicalScores, ids_of

BARE = 0.3  # factor of the weights of words if a question only names a speaker or a time
LEAST_DENSE = 0.3  # the least calibrated cosine at which a memory without a common word counts as relevant
PART_NAMES = ("lexical", "context", "session", "dense", "entity", "time", "asks", "graph")  # in the order of Parts


@dataclass(frozen=True)
class Weights:
    """The weights of the parts of a score, each 0..1. Heat, trust and fingerprint are added after the other parts are
    summed.

    asks: the share of its score that a memory loses if it only asks a question, 0..1; learned: how much of the learned
    weights counts in the last step.
    """

    lexical: float
    context: float
    session: float
    dense: float
    entity: float
    time: float
    asks: float = 0.0
    learned: float = 0.0
    graph: float = 0.0
    heat: float = 0.0
    trust: float = 0.0
    fingerprint: float = 0.0

    @property
    def behaviour(self) -> float:
        """The sum of the weights that are added after the ranking."""
        return self.heat + self.trust + self.fingerprint

    @property
    def words(self) -> bool:
        """Return whether a part of the score depends on the words of the question."""
        return bool(self.lexical or self.context or self.session)

    @property
    def highest_without_words(self) -> float:
        """The highest score that a memory can reach without a word of the question: by its vector, its speaker and its
        time."""
        return self.dense + self.entity + self.time

    def restrict(self, *, entity: bool, time: bool, bare: bool, questions: bool, learned: bool) -> "Weights":
        """Return the weights without the parts that do not apply to a question.

        bare: the question only names a speaker or a time; questions: the question may be looking for a question;
        learned: the learned weights were trained on questions of its kind.
        """
        words = BARE if bare else 1.0
        return replace(
            self,
            lexical=words * self.lexical,
            context=words * self.context,
            session=words * self.session,
            entity=self.entity if entity else 0.0,
            time=self.time if time else 0.0,
            asks=0.0 if questions else self.asks,
            learned=self.learned if learned and not (bare or questions) else 0.0,
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
    learned: float = 0.0  # what the learned weights add to its score, as a share of that score
    heat: float = 0.0  # vault/retrieval/heat_and_trust.py, and trust
    trust: float = 0.0
    fingerprint: float = 0.0  # cosine with the centroid of the questions that the memory answered


@dataclass(frozen=True)
class Ranked:
    """A ranked memory that is not opened yet. is_ended: the search prefers official or personal statements, and the
    validity of this one has ended.
    """

    cube_id: UUID
    score: float
    parts: Parts
    is_ended: bool = False


NO_PARTS = Parts(lexical=0.0, context=0.0, session=0.0, dense=0.0, entity=0.0, time=0.0)
HYBRID = Weights(lexical=1.0, context=1.0, session=0.7, dense=0.3, entity=0.8, time=0.6, asks=0.25, learned=1.0)
LEXICAL = Weights(lexical=1.0, context=0.0, session=0.0, dense=0.0, entity=0.0, time=0.0)
# Ranks by nearness; the tiny lexical weight orders the memories that no walk reaches.
GRAPH = Weights(lexical=1e-9, context=0.0, session=0.0, dense=0.0, entity=0.0, time=0.0, graph=1.0)
DENSE = Weights(lexical=0.0, context=0.0, session=0.0, dense=1.0, entity=0.0, time=0.0)


@dataclass(frozen=True, eq=False)
class ScoredCandidates:
    """The candidates and their scores. parts: one array for each of PART_NAMES; limit: the number of results wanted."""

    candidates: Candidates
    parts: Sequence[Floats]
    weights: Weights
    limit: int

    def sum_parts(self, weights: Weights) -> Floats:
        total, by_name = np.zeros(len(self.candidates)), dict(zip(PART_NAMES, self.parts, strict=True))
        asks = by_name.pop("asks")
        for name, part in by_name.items():
            if weight := getattr(weights, name):
                total += weight * part
        return total * (1 - weights.asks * asks)

    @cached_property
    def last_score(self) -> float:
        """The score, without vectors, of the last of the `limit` best candidates; 0 if there are fewer candidates."""
        if self.limit > len(self.candidates):
            return 0.0
        return float(np.partition(self.sum_parts(replace(self.weights, dense=0.0)), -self.limit)[-self.limit])

    def find_best(self, count: int) -> list[Ranked]:
        """Return the `count` best candidates, best first; equal scores newest first. Candidates with the score 0 are
        left out."""
        fused, candidates = self.sum_parts(self.weights), self.candidates
        totals = fused
        if self.weights.learned:
            totals = add_learned(candidates, fused, load_learned_weights().weights, self.weights.learned)
        order = np.lexsort((candidates.low, candidates.high, totals))[::-1][: min(count, np.count_nonzero(totals))]
        found = [Parts(*row) for row in np.stack(self.parts)[:, order].T.tolist()]
        in_sessions = any(parts.session for parts in found)
        ids = ids_of(candidates.high[order], candidates.low[order])
        changes = (totals[order] / fused[order]).tolist()
        return [
            _change_score(cube_id, parts, fuse(parts, self.weights, in_sessions=in_sessions), change)
            for cube_id, parts, change in zip(ids, found, changes, strict=True)
        ]


def score_candidates(
    lexical: LexicalScores,
    candidates: Candidates,
    weights: Weights,
    limit: int,
    nearness: Mapping[int, float] | None = None,
    *,
    scale: Callable[[Floats], Floats] = np.asarray,
) -> ScoredCandidates:
    """Score each candidate. nearness: the graph scores, by the low half of a cube's id; scale: calibrates cosines."""
    if not len(candidates):
        return ScoredCandidates(candidates, [np.zeros(0)] * len(PART_NAMES), weights, limit)
    windows = lexical.score_contexts(candidates)
    in_session = candidates.session != 0
    near = (
        [(nearness or {}).get(low, 0.0) for low in candidates.low.tolist()] if nearness else np.zeros(len(candidates))
    )
    by_words = _divide(lexical.score_words(candidates), lexical.highest)
    context = _divide(windows.context, lexical.highest)
    session = _divide(windows.session, float(windows.session.max(initial=0.0)))
    parts = (
        by_words,
        np.where(in_session, context, _weighted_mean(context[in_session], by_words[in_session]) * by_words),
        np.where(in_session, session, _weighted_mean(session[in_session], by_words[in_session]) * by_words),
        scale(candidates.dense),
        candidates.entity,
        candidates.time,
        candidates.asks,
        np.array(near, np.float64),
    )
    return ScoredCandidates(candidates, parts, weights, limit)


def fuse(parts: Parts, weights: Weights, *, in_sessions: bool) -> float:
    """Fuse the parts into one score, 0..1: their weighted sum divided by the highest possible sum.

    in_sessions: a result belongs to a session, so context and session count towards the highest possible sum.
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


def _change_score(cube_id: UUID, parts: Parts, fused: float, change: float) -> Ranked:
    """Return a memory whose fused score is multiplied by `change`, at most 1."""
    if change == 1:
        return Ranked(cube_id, fused, parts)
    return Ranked(cube_id, min(1.0, fused * change), replace(parts, learned=max(0.0, 1 - 1 / change)))


def context_share(parts: Parts) -> float:
    """Return the share of a score that comes from the context window and the session, 0..1."""
    most = HYBRID.context * sum(CONTEXT.values()) + HYBRID.session
    return min(1.0, (HYBRID.context * parts.context + HYBRID.session * parts.session) / most)


def is_relevant(parts: Parts) -> bool:
    """Return whether the memory with these parts is about the question: it shares a word with it or is near by
    vector."""
    return parts.lexical > 0 or parts.dense >= LEAST_DENSE


def order_by_score(rows: Sequence[Ranked]) -> list[Ranked]:
    """Return memories best first; those whose validity has ended come after all others that are about the question."""
    ordered = sorted(rows, key=lambda row: -row.score)
    if not any(row.is_ended for row in ordered):
        return ordered
    return sorted(ordered, key=lambda row: row.is_ended or not is_relevant(row.parts))


def _divide(values: Floats, whole: float) -> Floats:
    return values / whole if whole else np.zeros(len(values))


def _weighted_mean(values: Floats, counts: Floats) -> float:
    return float(np.average(values, weights=counts)) if counts.any() else 0.0
