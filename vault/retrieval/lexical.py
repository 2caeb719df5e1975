"""Lexical scores in arrays: BM25, the context window of each memory, and its session. Pure.

A common question has tens of thousands of postings, so all of them are scored at once in NumPy arrays. A memory is
identified by the low half of its id, of which 62 bits are random.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

BM25_K1 = 1.2
BM25_B = 0.4
SESSION_K = 1.0  # how soon a word stops counting for its session
# The context window: distance of a neighbour in the session → share of the neighbour's score that a message gets.
CONTEXT = {-1: 0.6, 1: 0.3, -2: 0.3, 2: 0.3}
REACH = max(CONTEXT)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Halves = NDArray[np.uint64]

# Row formats that PostgreSQL sends (vault/retrieval/sql.py). high, low: the halves of a cube's id; session: 0 outside
# of sessions; said: packed position in the session, number of words, and frequency of the term.
WORD = np.dtype([("high", ">u8"), ("low", ">u8"), ("session", ">u8"), ("said", ">u8")])
CANDIDATE = np.dtype(
    [
        ("high", ">u8"),
        ("low", ">u8"),
        ("version", ">i8"),
        ("session", ">i8"),
        ("position", ">i8"),
        ("entity", ">f8"),
        ("time", ">f8"),
        ("asks", ">f8"),
    ]
)
EMBEDDED = np.dtype([("high", ">u8"), ("low", ">u8"), ("version", ">i8"), ("dense", ">f8")])
ID = np.dtype([("high", ">u8"), ("low", ">u8")])
NUMBERS = len(WORD.names or ())  # of one posting
POSITION_BITS, LENGTH_BITS = 32, 16  # where the parts of `said` begin
SIEVE = 4096  # size of the bitmap over the low bits of a session's token, which is random


class TermPostings(NamedTuple):
    """The postings of one term as PostgreSQL sends them.

    rows: in the visible namespaces; granted: of memories granted singly; archived: of archived memories. excluded: ids
    to leave out of the results; only the first term of a question carries them.
    """

    rows: bytes | None
    granted: bytes | None
    archived: bytes | None
    excluded: bytes | None

    @property
    def entries(self) -> bytes:
        return b"".join([self.rows or b"", self.granted or b"", self.archived or b""])

    @property
    def size(self) -> int:
        return len(self.entries) // WORD.itemsize


class SessionPosition(NamedTuple):
    """The position of a memory in its session. session: 0 for a memory outside of sessions."""

    cube_id: UUID
    session: int
    position: int


class Candidates:
    """The visible candidates of a ranking: their positions, and the parts of their scores that do not depend on
    words."""

    low: Halves

    def __init__(self, sent: bytes | None, embedded: bytes | None = None, *, known: "Candidates | None" = None) -> None:
        """Read the candidates from `sent`. embedded: the similarities of their vectors; known: candidates to leave
        out."""
        rows = np.frombuffer(sent or b"", CANDIDATE)
        if known is not None:
            rows = rows[~is_among(rows["low"].astype(np.uint64), known.low)]
        self.high = rows["high"].astype(np.uint64)
        self.low = rows["low"].astype(np.uint64)
        self.session = rows["session"].astype(np.int64)
        self.position = rows["position"].astype(np.int64)
        self.entity = rows["entity"].astype(np.float64)
        self.time = rows["time"].astype(np.float64)
        self.asks = rows["asks"].astype(np.float64)
        self.dense = _match_dense_scores(np.frombuffer(embedded or b"", EMBEDDED), self.low, rows["version"])

    def __len__(self) -> int:
        return len(self.low)

    def join(self, other: "Candidates") -> "Candidates":
        """Return the candidates of both. No candidate may be in both."""
        if not len(self) or not len(other):
            return self if len(self) else other
        both = Candidates(None)
        for name, values in vars(self).items():
            setattr(both, name, np.concatenate([values, getattr(other, name)]))
        return both


class ContextScores(NamedTuple):
    """Two scores for each candidate. context: BM25 of its context window; session: match of its session with the
    question."""

    context: Floats
    session: Floats


class LexicalScores:
    """The BM25 score of every memory that contains a word of the question.

    found: the postings of each term; cubes: the number of visible memories; length: their mean length in words; only:
    the ids that pass the filters without a column in the index, None without such filters.
    """

    def __init__(self, found: Sequence[TermPostings], *, cubes: int, length: float, only: bytes | None = None) -> None:
        sent = [postings.entries for postings in found]
        numbers = np.frombuffer(b"".join(sent), ">u8").astype(np.uint64).reshape(-1, NUMBERS)
        word = np.repeat(np.arange(len(sent)), np.array([len(entries) // WORD.itemsize for entries in sent], np.int64))
        if excluded := b"".join(postings.excluded or b"" for postings in found):
            there = ~is_among(numbers[:, 1], np.frombuffer(excluded, ID)["low"].astype(np.uint64))
            numbers, word = numbers[there], word[there]
        if only is not None:
            there = is_among(numbers[:, 1], np.frombuffer(only, ID)["low"].astype(np.uint64))
            numbers, word = numbers[there], word[there]
        self._high, self._low, session, said = np.ascontiguousarray(numbers.T)
        self._word, self._session = word, session.view(np.int64)
        self._position = said.view(np.int64) >> POSITION_BITS
        self._frequency = (said & np.uint64((1 << LENGTH_BITS) - 1)).astype(np.float64)
        words = (said >> np.uint64(LENGTH_BITS) & np.uint64((1 << LENGTH_BITS) - 1)).astype(np.float64)
        self._weights = np.array(
            [idf_weight(count, cubes) for count in np.bincount(word, minlength=len(sent)).tolist()]
        )
        saturation = BM25_K1 * (1 - BM25_B) + (BM25_K1 * BM25_B / length) * words
        self._adds = self._weights[word] * self._frequency * (BM25_K1 + 1) / (self._frequency + saturation)
        self._sum_scores()

    def _sum_scores(self) -> None:
        """Sum the scores of each memory. Terms are added in a fixed order, so that equal memories get equal scores."""
        order = np.argsort(self._low)
        low = self._low[order]
        begins = np.append(True, low[1:] != low[:-1])[: len(low)]
        which = np.empty(len(low), np.int64)
        which[order] = np.cumsum(begins) - 1
        self._cubes = low[begins]
        self._entry = order[begins]  # one of each cube
        self._bm25 = _sum_by(which, self._adds, len(self._cubes))

    @cached_property
    def highest(self) -> float:
        return float(self._bm25.max(initial=0.0))

    def find_best(self, count: int) -> "BestMatches":
        """Return the `count` memories with the highest BM25, best first; equal scores newest first."""
        among = np.arange(len(self._bm25))
        if count < len(among):
            among = np.flatnonzero(self._bm25 >= np.partition(self._bm25, -count)[-count])
        high, low, score = self._high[self._entry[among]], self._cubes[among], self._bm25[among]
        order = np.lexsort((low, high, score))[::-1][:count]
        entry = self._entry[among[order]]
        return BestMatches(score[order], high[order], low[order], self._session[entry], self._position[entry])

    def score_words(self, candidates: Candidates) -> Floats:
        """Return the BM25 score of each candidate."""
        return look_up_values(self._cubes, self._bm25, candidates.low)

    def score_contexts(self, candidates: Candidates) -> ContextScores:
        """Return the context scores of each candidate, computed from the postings of this question."""
        sessions = np.unique(candidates.session[candidates.session != 0])
        of = np.searchsorted(sessions, candidates.session)
        near, session = self._select_postings_in(sessions)
        beside = self._score_neighbours(near, session, of, candidates.position)
        told = np.append(self._score_sessions(near, session, len(sessions)), 0.0)[of]
        in_one = candidates.session != 0
        return ContextScores(np.where(in_one, beside, 0.0), np.where(in_one, told, 0.0))

    def _select_postings_in(self, sessions: Integers) -> tuple[Integers, Integers]:
        """Return the indices of the postings in `sessions` (sorted), and the index of the session of each.

        A bitmap of the low bits of the session numbers first drops most other postings cheaply.
        """
        sieve = np.zeros(SIEVE, bool)
        sieve[sessions & (SIEVE - 1)] = True
        near = np.flatnonzero(sieve[self._session & (SIEVE - 1)])
        session = np.searchsorted(sessions, self._session[near])
        is_one = np.append(sessions, 0)[session] == self._session[near]
        is_one &= self._session[near] != 0
        return near[is_one], session[is_one]

    def _score_neighbours(self, near: Integers, session: Integers, of: Integers, position: Integers) -> Floats:
        places, which = np.unique((session << POSITION_BITS) | self._position[near], return_inverse=True)
        scores = _sum_by(which, self._adds[near], len(places))
        here = (of << POSITION_BITS) | position
        beside = np.zeros(len(here))
        for away, share in CONTEXT.items():
            beside += share * look_up_values(places, scores, here + away)
        return beside

    def _score_sessions(self, near: Integers, session: Integers, sessions: int) -> Floats:
        words = len(self._weights)
        often = _sum_by(session * words + self._word[near], self._frequency[near], sessions * words)
        often = often.reshape(sessions, words)
        told: Floats = np.sum(self._weights * (often / (often + SESSION_K)), axis=1)
        return told


@dataclass(frozen=True, eq=False)
class BestMatches:
    """The memories with the highest BM25, best first."""

    scores: Floats
    high: Halves
    low: Halves
    session: Integers
    position: Integers

    def list_positions(self, count: int) -> list[SessionPosition]:
        ids = ids_of(self.high[:count], self.low[:count])
        return list(map(SessionPosition, ids, self.session[:count].tolist(), self.position[:count].tolist()))

    def list_ids_above(self, candidates: Candidates, least: float) -> list[UUID]:
        """Return the ids of memories that score `least` or more and are not in `candidates`, best first."""
        others = np.flatnonzero((self.scores >= least) & ~is_among(self.low, candidates.low))
        return ids_of(self.high[others], self.low[others])


class ContextWindows(NamedTuple):
    """Disjoint ranges of positions in sessions. ids: the memories outside of sessions."""

    ids: list[UUID]
    sessions: list[int]
    firsts: list[int]
    lasts: list[int]


def make_context_windows(places: Sequence[SessionPosition]) -> ContextWindows:
    found = ContextWindows([place.cube_id for place in places if not place.session], [], [], [])
    for place in sorted(
        (place for place in places if place.session), key=lambda place: (place.session, place.position)
    ):
        first, last = max(0, place.position - REACH), place.position + REACH
        if found.sessions and found.sessions[-1] == place.session and first <= found.lasts[-1]:
            found.lasts[-1] = last
            continue
        found.sessions.append(place.session)
        found.firsts.append(first)
        found.lasts.append(last)
    return found


def idf_weight(holding: int, cubes: int) -> float:
    """Return the BM25 weight of a word that `holding` of `cubes` memories contain; never negative, as in Lucene."""
    return math.log(1 + (max(cubes, holding) - holding + 0.5) / (holding + 0.5))


def _sum_by(which: Integers, values: Floats, count: int) -> Floats:
    return np.bincount(which, values, count).astype(np.float64, copy=False)


def is_among(values: Halves, others: Halves) -> NDArray[np.bool_]:
    """Return a mask of the values that are among `others`. For few `others` it is several times as fast as
    numpy.isin."""
    if not len(others):
        return np.zeros(len(values), bool)
    others = np.sort(others)
    at = np.minimum(np.searchsorted(others, values), len(others) - 1)
    among: NDArray[np.bool_] = others[at] == values
    return among


def look_up_values(keys: NDArray[Any], values: Floats, wanted: NDArray[Any]) -> Floats:
    """Return the value of each key in `wanted`, or 0 if it is not among the sorted `keys`."""
    if not len(keys):
        return np.zeros(len(wanted))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0.0)


def _match_dense_scores(embedded: NDArray[Any], low: Halves, version: NDArray[Any]) -> Floats:
    """Return the dense score of each memory, or 0 if its vector is missing or belongs to another version."""
    if not len(embedded):
        return np.zeros(len(low))
    embedded = embedded[np.argsort(embedded["low"])]
    keys = embedded["low"].astype(np.uint64)
    dense = look_up_values(keys, embedded["dense"].astype(np.float64), low)
    return np.where(look_up_values(keys, embedded["version"].astype(np.float64), low) == version, dense, 0.0)


def ids_of(high: NDArray[Any], low: NDArray[Any]) -> list[UUID]:
    return [UUID(int=(first << 64) | last) for first, last in zip(high.tolist(), low.tolist(), strict=True)]
