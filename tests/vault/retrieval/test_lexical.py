"""Tests of lexical scores in arrays, compared with the formulas for one cube at a time."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from uuid import UUID

import pytest

from governance.ids import uuid7
from vault.retrieval.fusion import Weights, score_candidates
from vault.retrieval.lexical import (
    BM25_B,
    BM25_K1,
    CONTEXT,
    SESSION_K,
    Candidates,
    LexicalScores,
    SessionPosition,
    TermPostings,
    idf_weight,
    make_context_windows,
)

CUBES = 1_000
LENGTH = 8.0


@dataclass(frozen=True)
class Entry:
    """A cube's posting of one word."""

    cube_id: UUID
    session: int = 0
    position: int = 0
    length: int = 8
    frequency: int = 1
    asks: float = 0.0

    @property
    def sent(self) -> bytes:
        return struct.pack(">16sqIHH", self.cube_id.bytes, self.session, self.position, self.length, self.frequency)


def test_cube_scores_the_bm25_of_all_its_words() -> None:
    heron, both = Entry(uuid7(), length=4), Entry(uuid7(), length=16, frequency=3)
    said = _scores([heron, both], [both])
    best = said.find_best(10)
    assert [place.cube_id for place in best.list_positions(10)] == [both.cube_id, heron.cube_id]
    assert best.scores.tolist() == pytest.approx([_bm25(both, 2) + _bm25(both, 1), _bm25(heron, 2)])
    assert said.score_words(_pool(heron, Entry(uuid7()), both)).tolist() == pytest.approx(
        [_bm25(heron, 2), 0.0, _bm25(both, 2) + _bm25(both, 1)]
    )


def test_word_of_more_cubes_than_counted_has_almost_no_weight() -> None:
    assert 0 < idf_weight(12, 10) < 0.05


def test_deleted_memory_is_no_candidate_and_not_counted() -> None:
    kept, gone = Entry(uuid7()), Entry(uuid7())
    said = LexicalScores([_postings(kept.sent + gone.sent, excluded=gone.cube_id.bytes)], cubes=CUBES, length=LENGTH)
    assert [place.cube_id for place in said.find_best(10).list_positions(10)] == [kept.cube_id]
    assert said.find_best(10).scores.tolist() == pytest.approx([_bm25(kept, 1)])


def test_equal_scores_rank_newest_first_at_any_limit() -> None:
    entries = [Entry(uuid7()) for _ in range(40)]
    shuffled = Random(1).sample(entries, len(entries))
    newest = sorted((entry.cube_id for entry in entries), reverse=True)
    for count in (1, 7, 39, 40, 100):
        assert [place.cube_id for place in _scores(shuffled).find_best(count).list_positions(count)] == newest[:count]


def test_question_without_an_indexed_word_has_no_candidates() -> None:
    for said in (_scores(), _scores([]), _scores([], [])):
        assert said.find_best(10).list_positions(10) == []
        assert said.highest == 0.0
        assert said.score_contexts(_pool(Entry(uuid7(), session=3))).context.tolist() == [0.0]


def test_neighbouring_turn_counts_by_its_distance() -> None:
    walk = [Entry(uuid7(), session=7, position=position, frequency=position + 1) for position in range(6)]
    other = [Entry(uuid7(), session=8, position=3), Entry(uuid7(), position=3)]
    said = _scores(walk + other, [walk[2]])
    own = [_bm25(entry, 8) + (_bm25(entry, 1) if entry is walk[2] else 0.0) for entry in walk]
    context = said.score_contexts(_pool(*walk, *other)).context.tolist()
    for position in range(6):
        beside = [share * own[position + away] for away, share in CONTEXT.items() if 0 <= position + away < 6]
        assert context[position] == pytest.approx(sum(beside))
    assert context[6:] == [0.0, 0.0]


def test_repeated_word_saturates_in_its_session_score() -> None:
    walk = [Entry(uuid7(), session=-7, position=position, frequency=2) for position in range(3)]
    quiet, outside = Entry(uuid7(), session=9), Entry(uuid7())
    said = _scores([*walk, outside], [walk[0]])
    told = said.score_contexts(_pool(walk[2], quiet, outside)).session.tolist()
    wanted = idf_weight(4, CUBES) * 6 / (6 + SESSION_K) + idf_weight(1, CUBES) * 2 / (2 + SESSION_K)
    assert told == pytest.approx([wanted, 0.0, 0.0])


@pytest.mark.parametrize("seed", range(4))
def test_many_sessions_score_as_each_by_itself(seed: int) -> None:
    """The sieve lets nothing else through, and loses nothing: each session by itself says the same."""
    random = Random(seed)
    sessions = [random.getrandbits(64) - (1 << 63) for _ in range(60)]
    sessions += [session ^ 1 << 40 for session in sessions[:20]]  # that agree in all that the sieve looks at
    entries = [Entry(uuid7(), random.choice(sessions), random.randrange(30), frequency=2) for _ in range(800)]
    entries = list({(entry.session, entry.position): entry for entry in entries}.values())
    asked = random.sample(entries, 30)
    around = _scores(entries).score_contexts(_pool(*asked))
    for index, entry in enumerate(asked):
        alone = [item for item in entries if item.session == entry.session]
        scores = {item.position: _bm25(item, len(entries)) for item in alone}
        wanted = sum(share * scores.get(entry.position + away, 0.0) for away, share in CONTEXT.items())
        often = sum(item.frequency for item in alone)
        assert around.context[index] == pytest.approx(wanted)
        assert around.session[index] == pytest.approx(idf_weight(len(entries), CUBES) * often / (often + SESSION_K))


def test_ids_above_a_score_are_best_first_without_candidates() -> None:
    entries = [Entry(uuid7(), frequency=frequency) for frequency in (5, 4, 3, 2, 1)]
    best = _scores(entries).find_best(10)
    candidates = _pool(entries[0], entries[2])
    assert best.list_ids_above(candidates, _bm25(entries[3], 5)) == [entries[1].cube_id, entries[3].cube_id]
    assert best.list_ids_above(candidates, 1e9) == []


def test_overlapping_context_windows_are_requested_once() -> None:
    alone = uuid7()
    places = [SessionPosition(uuid7(), 5, position) for position in (20, 0, 4, 9)] + [
        SessionPosition(alone, 0, 0),
        SessionPosition(uuid7(), 4, 1),
    ]
    found = make_context_windows(places)
    assert found.ids == [alone]
    assert list(zip(found.sessions, found.firsts, found.lasts, strict=True)) == [
        (4, 0, 3),
        (5, 0, 6),
        (5, 7, 11),
        (5, 18, 22),
    ]


def test_scores_are_shares_of_the_best_and_equals_rank_newest_first() -> None:
    entries = [Entry(uuid7(), session=3, position=position * 9) for position in range(4)]
    said = _scores(entries)
    weights = Weights(lexical=1.0, context=1.0, session=0.5, dense=0.3, entity=0.0, time=0.0)
    found = score_candidates(said, _pool(*entries), weights, 4)
    assert [row.cube_id for row in found.find_best(3)] == [entry.cube_id for entry in reversed(entries)][:3]
    assert all(
        (row.parts.lexical, row.parts.session, row.parts.context) == (1.0, 1.0, 0.0) for row in found.find_best(4)
    )
    assert found.last_score == 1.5
    asking = [replace(entry, asks=0.5 * (place == 3)) for place, entry in enumerate(entries)]
    found = score_candidates(said, _pool(*asking), replace(weights, asks=0.5), 4)
    assert [row.cube_id for row in found.find_best(4)] == [
        entry.cube_id for entry in (*reversed(entries[:3]), entries[3])
    ]
    assert found.last_score == 0.75 * 1.5
    assert replace(found, limit=5).last_score == 0.0


def test_only_memories_that_pass_the_filters_are_counted() -> None:
    first, second = Entry(uuid7()), Entry(uuid7())
    found = [_postings(first.sent + second.sent)]
    said = LexicalScores(found, cubes=CUBES, length=LENGTH, only=second.cube_id.bytes)
    assert [place.cube_id for place in said.find_best(10).list_positions(10)] == [second.cube_id]
    assert said.find_best(10).scores.tolist() == pytest.approx([_bm25(second, 1)])


def test_granted_and_archived_postings_are_of_the_same_term() -> None:
    first, second, third = Entry(uuid7()), Entry(uuid7()), Entry(uuid7())
    apart = LexicalScores([TermPostings(first.sent, second.sent, third.sent, None)], cubes=CUBES, length=LENGTH)
    assert apart.find_best(10).scores.tolist() == _scores([first, second, third]).find_best(10).scores.tolist()


def test_vector_of_another_version_scores_zero() -> None:
    entries = [Entry(uuid7()) for _ in range(4)]
    of_version = {1: (0.5, 1), 2: (0.25, 2), 3: (0.75, 1)}  # of the second, a former version; of the first, none yet
    embedded = [
        struct.pack(">16sqd", entries[item].cube_id.bytes, version, near)
        for item, (near, version) in of_version.items()
    ]
    candidates = Candidates(_rows(*entries), b"".join(reversed(embedded)))
    assert candidates.dense.tolist() == [0.0, 0.5, 0.0, 0.75]
    assert _pool(*entries).dense.tolist() == [0.0] * 4


def _scores(*words: Sequence[Entry]) -> LexicalScores:
    found = [_postings(b"".join(entry.sent for entry in entries)) for entries in words]
    return LexicalScores(found, cubes=CUBES, length=LENGTH)


def _postings(rows: bytes, *, excluded: bytes | None = None) -> TermPostings:
    return TermPostings(rows, None, None, excluded)


def _pool(*entries: Entry) -> Candidates:
    return Candidates(_rows(*entries))


def _rows(*entries: Entry) -> bytes:
    rows = [
        struct.pack(">16sqqqddd", entry.cube_id.bytes, 1, entry.session, entry.position, 0.0, 0.0, entry.asks)
        for entry in entries
    ]
    return b"".join(rows)


def _bm25(entry: Entry, holding: int) -> float:
    """Robertson and Zaragoza 2009."""
    saturation = BM25_K1 * (1 - BM25_B + BM25_B * entry.length / LENGTH)
    return idf_weight(holding, CUBES) * entry.frequency * (BM25_K1 + 1) / (entry.frequency + saturation)
