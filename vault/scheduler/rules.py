"""The working set of the next turn: predictors name memories, their weights follow what was used. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import exp
from uuid import UUID

import numpy as np

from vault.lifecycle.forgetting_policies import Use
from vault.providers.ports import Matrix
from vault.scheduler.replacement import Held, Replacement

Scores = dict[UUID, float]

RECENT, NEAREST, FOUND = 60, 60, 100  # memories that a predictor names
AROUND, AROUND_REACH = 12, 5  # positions beside a memory; those in which its weight falls to 1/e
AROUND_TURNS, AROUND_FOUND = 3, 10  # last turns, and the first results of each, whose neighbours are looked at
CITED = 2.0  # weight of a cited memory beside that of the first result
SESSIONS = 3  # memories of the last turn whose sessions are named
LINKED_FOUND = 10  # first results of the last search, whose neighbours in the graph are looked at
TOPIC_TURNS, FADE = 3, 0.5  # last turns that make the topic, and the weight of each beside the next
LABEL_TURNS = 5
DUE_DAYS = 7
LEAST_WEIGHT, HIGHEST_WEIGHT = 0.05, 4.0
PRIOR_PRELOADED = 30  # memories that count before any was: of these, the next turn used a share of PRIORS
PRIORS = {"beside": 0.2, "results": 0.2, "topic": 0.03, "recent": 0.03}
PRIOR = 0.1  # of the others
RETAINED, RETAINED_OF_OTHER_TOPIC = 0.1, 0.02  # share of the policy's score that a memory of the last set keeps


@dataclass(frozen=True)
class Candidate:
    """A memory that may be preloaded. at: when it was said; place: its session and its position there; due: when its
    event is, if that is ahead."""

    id: UUID
    tokens: int
    at: datetime
    vector: Matrix | None = field(default=None, repr=False)
    importance: float = 0.5
    priority: float = 0.5
    tags: frozenset[str] = frozenset()
    place: tuple[int, int] | None = None
    due: datetime | None = None


@dataclass(frozen=True)
class PastTurn:
    """A turn. used: the memories that its answer cites; found: the results of its search, best first; is_new_topic: it
    does not continue the topic of the turn before. vector: of its text."""

    at: datetime
    vector: Matrix | None = field(repr=False)
    used: frozenset[UUID] = frozenset()
    found: tuple[UUID, ...] = ()
    is_new_topic: bool = False


class Memories:
    """Candidates with what predictors look them up by. links: memory → its neighbours in the graph."""

    def __init__(self, candidates: Sequence[Candidate], links: Mapping[UUID, Sequence[UUID]] | None = None) -> None:
        self.by_id = {candidate.id: candidate for candidate in candidates}
        self.newest = sorted(candidates, key=lambda candidate: candidate.at, reverse=True)
        self.by_place = {candidate.place: candidate.id for candidate in candidates if candidate.place}
        self.due = [candidate for candidate in candidates if candidate.due]
        self.links = links or {}
        self._vectors = [candidate for candidate in candidates if candidate.vector is not None]
        matrix = [candidate.vector for candidate in self._vectors if candidate.vector is not None]
        self._matrix = np.stack(matrix) if matrix else np.zeros((0, 1), dtype=np.float32)

    def measure_near(self, vector: Matrix | None) -> Scores:
        """Return the cosine of each memory with a vector, where it is over 0."""
        if vector is None or not len(self._matrix) or self._matrix.shape[1] != len(vector):
            return {}
        near = self._matrix @ (vector / max(float(np.linalg.norm(vector)), 1e-9))
        return {self._vectors[at].id: float(near[at]) for at in np.flatnonzero(near > 0)}


@dataclass(frozen=True)
class Moment:
    """A time after a turn. turns: oldest first, at least one; near: cosines with the topic of the last turns."""

    memories: Memories
    turns: Sequence[PastTurn]
    near: Scores

    @property
    def last(self) -> PastTurn:
        return self.turns[-1]


def _predict_recent(moment: Moment) -> Scores:
    """Name the newest memories."""
    before = (candidate for candidate in moment.memories.newest if candidate.at <= moment.last.at)
    return {candidate.id: 1 / (1 + rank / 10) for rank, candidate in zip(range(RECENT), before, strict=False)}


def _predict_results(moment: Moment) -> Scores:
    """Name the results of the last search."""
    return {cube_id: 1 / (1 + rank / 20) for rank, cube_id in enumerate(moment.last.found[:FOUND])}


def _predict_topic(moment: Moment) -> Scores:
    """Name the memories nearest to the last turns."""
    best = sorted(moment.near.items(), key=lambda pair: -pair[1])[:NEAREST]
    highest = best[0][1] if best else 1.0
    return {cube_id: near / highest for cube_id, near in best}


def _predict_beside(moment: Moment) -> Scores:
    """Name what was said near the places that the last turns cite or found. Places with much around them count most."""
    scores: Scores = defaultdict(float)
    for away, turn in enumerate(reversed(moment.turns[-AROUND_TURNS:])):
        heard: Scores = {cube_id: 1 / (1 + rank / 3) for rank, cube_id in enumerate(turn.found[:AROUND_FOUND])}
        for cube_id in turn.used:
            heard[cube_id] = heard.get(cube_id, 0.0) + CITED
        for cube_id, weight in heard.items():
            candidate = moment.memories.by_id.get(cube_id)
            if candidate is None or candidate.place is None:
                continue
            session, position = candidate.place
            for step in range(-AROUND, AROUND + 1):
                other = moment.memories.by_place.get((session, position + step))
                if other is not None:
                    scores[other] += FADE**away * weight * exp(-abs(step) / AROUND_REACH)
    return _normalise(scores)


def _predict_session(moment: Moment) -> Scores:
    """Name what was said in the sessions of what the last turn cites, or of the first results of its search."""
    sessions: dict[int, float] = {}
    for rank, cube_id in enumerate(_last_memories(moment)[:SESSIONS]):
        candidate = moment.memories.by_id.get(cube_id)
        if candidate is not None and candidate.place is not None:
            sessions.setdefault(candidate.place[0], 1 / (1 + rank))
    named = (candidate for candidate in moment.memories.newest if candidate.place)
    return {each.id: sessions[each.place[0]] for each in named if each.place and each.place[0] in sessions}


def _predict_graph(moment: Moment) -> Scores:
    """Name the neighbours in the graph of the memories of the last turn."""
    scores: Scores = {}
    for rank, cube_id in enumerate(_last_memories(moment)):
        for other in moment.memories.links.get(cube_id, ()):
            scores[other] = max(scores.get(other, 0.0), 1 / (1 + rank / 3))
    return scores


def _predict_together(moment: Moment) -> Scores:
    """Name the memories that earlier answers cite together with those of the last."""
    counts: Counter[UUID] = Counter()
    for turn in moment.turns[:-1]:
        if turn.used & moment.last.used:
            counts.update(turn.used)
    return _normalise(counts)


def _predict_hour(moment: Moment) -> Scores:
    """Name the memories that answers cite at this hour, or on this day of the week."""
    now = moment.last.at
    counts: Counter[UUID] = Counter()
    for turn in moment.turns[:-1]:
        if abs(turn.at.hour - now.hour) in {0, 1, 23} and turn.at.date() != now.date():
            counts.update({cube_id: 1 + (turn.at.weekday() == now.weekday()) for cube_id in turn.used})
    return _normalise(counts)


def _predict_dates(moment: Moment) -> Scores:
    """Name what happens in the next days."""
    ahead = {candidate.id: candidate.due - moment.last.at for candidate in moment.memories.due if candidate.due}
    reach = timedelta(days=DUE_DAYS)
    return {cube_id: 1 - wait / reach for cube_id, wait in ahead.items() if timedelta(0) <= wait < reach}


Predictors = Mapping[str, Callable[[Moment], Scores]]
PREDICTORS: Predictors = {
    "recent": _predict_recent,
    "results": _predict_results,
    "topic": _predict_topic,
    "beside": _predict_beside,
    "session": _predict_session,
    "graph": _predict_graph,
    "together": _predict_together,
    "hour": _predict_hour,
    "dates": _predict_dates,
}


@dataclass(frozen=True)
class Chosen:
    """A memory of a working set. reason: the predictor that counted most; empty if it was only kept from the last set.
    score: 0..1."""

    id: UUID
    reason: str
    score: float
    tokens: int


@dataclass
class Count:
    """The memories that a predictor preloaded, and those of them that the next turn used."""

    preloaded: int = 0
    used: int = 0


def learn_weights(counts: Mapping[str, Count]) -> dict[str, float]:
    """Return the weight of each predictor: the share of its memories that was used, beside that of all predictors,
    between LEAST_WEIGHT and HIGHEST_WEIGHT.
    """
    shares = {}
    for name in PREDICTORS:
        count = counts.get(name, Count())
        prior = PRIORS.get(name, PRIOR)
        shares[name] = (count.used + prior * PRIOR_PRELOADED) / (count.preloaded + PRIOR_PRELOADED)
    mean = sum(shares.values()) / len(shares)
    return {name: min(max(share / mean, LEAST_WEIGHT), HIGHEST_WEIGHT) for name, share in shares.items()}


def preload(
    memories: Memories,
    turns: Sequence[PastTurn],
    *,
    weights: Mapping[str, float],
    policy: Replacement,
    before: AbstractSet[UUID],
    budget: int,
    predictors: Predictors = PREDICTORS,
) -> list[Chosen]:
    """Return the memories for the turn after the last of `turns`, best first, within a budget of tokens.

    before: the last set. Its memories stay by the policy's score; most leave with a new topic. predictors: all, unless
    one is taken away to measure its worth.
    """
    moment = Moment(memories, turns, memories.measure_near(_mean_topic(turns)))
    scores: Scores = defaultdict(float)
    leading: dict[UUID, tuple[float, str]] = {}
    for name, predict in predictors.items():
        for cube_id, score in predict(moment).items():
            if cube_id in memories.by_id:
                part = weights[name] * score
                scores[cube_id] += part
                leading[cube_id] = max(leading.get(cube_id, (0.0, "")), (part, name))
    retained = RETAINED_OF_OTHER_TOPIC if moment.last.is_new_topic else RETAINED
    uses = _Uses(moment)
    for cube_id in before & memories.by_id.keys():
        scores[cube_id] += retained * policy.score(uses.hold(memories.by_id[cube_id]))
    highest = max(scores.values(), default=1.0) or 1.0
    chosen, left = [], budget
    for cube_id in sorted(scores, key=lambda key: (-scores[key], str(key))):
        tokens = memories.by_id[cube_id].tokens
        if tokens <= left:
            left -= tokens
            chosen.append(Chosen(cube_id, leading.get(cube_id, (0.0, ""))[1], scores[cube_id] / highest, tokens))
    return chosen


class _Uses:
    """The use of memories in past turns."""

    def __init__(self, moment: Moment) -> None:
        self.moment = moment
        self.counts = Counter(cube_id for turn in moment.turns for cube_id in turn.used)
        self.last = {cube_id: turn.at for turn in moment.turns for cube_id in turn.used}
        by_id = moment.memories.by_id
        used = {cube_id for turn in moment.turns[-LABEL_TURNS:] for cube_id in turn.used}
        self.tags = frozenset().union(*(by_id[cube_id].tags for cube_id in used if cube_id in by_id))

    def hold(self, candidate: Candidate) -> Held:
        now = self.moment.last.at
        idle = max(now - max(self.last.get(candidate.id, candidate.at), candidate.at), timedelta(0))
        both = candidate.tags | self.tags
        return Held(
            use=Use(idle, self.counts[candidate.id], candidate.importance, candidate.priority),
            near=self.moment.near.get(candidate.id, 0.0),
            labels=len(candidate.tags & self.tags) / len(both) if both else 0.0,
        )


def _last_memories(moment: Moment) -> list[UUID]:
    """Return what the last answer cites, then the first results of its search."""
    ordered = sorted(moment.last.used, key=str)
    return list(dict.fromkeys([*ordered, *moment.last.found[:LINKED_FOUND]]))


def _mean_topic(turns: Sequence[PastTurn]) -> Matrix | None:
    """Return the mean vector of the last turns of one topic, of which the last counts most."""
    total: Matrix | None = None
    weight = 1.0
    for turn in reversed(turns[-TOPIC_TURNS:]):
        if turn.vector is not None and (total is None or len(total) == len(turn.vector)):
            total = turn.vector * weight if total is None else total + turn.vector * weight
        weight *= FADE
        if turn.is_new_topic:
            break
    return total


def _normalise(counts: Mapping[UUID, float]) -> Scores:
    highest = max(counts.values(), default=1.0)
    return {cube_id: count / highest for cube_id, count in counts.items()}
