"""The last step of a hybrid ranking, on candidates made by hand."""

import struct

import numpy as np
import pytest

from benchmarks.training import fit_logistic
from governance.ids import uuid7
from vault.retrieval.fusion import HYBRID, PART_NAMES, ScoredCandidates
from vault.retrieval.learned_weights import add_learned, describe_candidates, load_learned_weights
from vault.retrieval.lexical import Candidates

NEAR_AND_ASKED = {"asks": -0.5, "time": 0.0, "opens": 0.0, "near": 0.0, "near_before": 0.4, "near_after": 0.0}
SESSION = 7


def _candidates(*rows: tuple[int, int, float]) -> Candidates:
    """Return candidates. rows: session, position and cosine of each."""
    ids = [uuid7() for _ in rows]
    sent = b"".join(
        cube_id.bytes + struct.pack(">qqqddd", 1, session, position, 0.0, 0.0, 0.0)
        for cube_id, (session, position, _) in zip(ids, rows, strict=True)
    )
    embedded = b"".join(
        cube_id.bytes + struct.pack(">qd", 1, near) for cube_id, (_, _, near) in zip(ids, rows, strict=True)
    )
    return Candidates(sent, embedded)


def test_neighbours_in_the_session_are_described_and_no_others() -> None:
    found = describe_candidates(
        _candidates((SESSION, 1, 0.2), (SESSION, 0, 0.8), (8, 2, 0.4), (0, 0, 0.6), (0, 1, 0.5)),
        np.array([0.5, 0.0, 1.0, 0.25, 0.1]),
    )
    assert found.fused.tolist() == [0.5, 0.0, 1.0, 0.25, 0.1]
    assert found.near.tolist() == pytest.approx([0.25, 1.0, 0.5, 0.75, 0.625])
    assert found.near_before.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert found.near_after.tolist() == [0.0, 0.25, 0.0, 0.0, 0.0]
    assert found.opens.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_message_after_the_nearest_rises_and_highest_score_stays() -> None:
    candidates = _candidates((SESSION, 4, 0.9), (SESSION, 5, 0.1), (8, 0, 0.1))
    scores = add_learned(candidates, np.array([0.5, 0.3, 0.4]), NEAR_AND_ASKED, 1.0)
    assert np.argsort(-scores).tolist() == [0, 1, 2]
    assert scores.max() == pytest.approx(0.5)
    unchanged = add_learned(candidates, np.array([0.5, 0.3, 0.4]), NEAR_AND_ASKED, 0.0)
    assert unchanged.tolist() == pytest.approx([0.5, 0.3, 0.4])


def test_candidate_with_score_0_keeps_it_and_no_other_falls_to_0() -> None:
    candidates = _candidates((SESSION, 4, 0.9), (SESSION, 5, 0.1), (8, 0, 0.1))
    candidates.asks = np.array([0.0, 0.0, 1.0])
    scores = add_learned(candidates, np.array([0.5, 0.0, 0.01]), NEAR_AND_ASKED, 1.0)
    assert scores[1] == 0
    assert 0 < scores[2] < 0.01


def test_results_descend_and_say_what_was_learned() -> None:
    candidates = _candidates((SESSION, 4, 0.9), (SESSION, 5, 0.5), (8, 2, 0.0))
    words = {"lexical": np.array([1.0, 0.5, 0.65]), "dense": candidates.dense}
    parts = [words.get(name, np.zeros(3)) for name in PART_NAMES]
    best = ScoredCandidates(candidates, parts, HYBRID, 3).find_best(3)
    assert [row.cube_id.int & (1 << 64) - 1 for row in best] == candidates.low.tolist()
    assert [row.score for row in best] == sorted((row.score for row in best), reverse=True)
    assert [row.parts.learned > 0 for row in best] == [False, True, False]


def test_learned_weights_apply_only_to_what_they_were_trained_on() -> None:
    learned = load_learned_weights()
    assert learned.fit(learned.embedder, "en")
    assert not learned.fit(learned.embedder, "zh")
    assert not learned.fit("hashing", "en")
    for case in ({"bare": True}, {"questions": True}, {"learned": False}):
        kinds = {"entity": True, "time": True, "bare": False, "questions": False, "learned": True, **case}
        assert HYBRID.restrict(**kinds).learned == 0


def test_trained_weights_find_the_feature_that_tells() -> None:
    random = np.random.default_rng(5)
    features = random.random((400, 2))
    weights, _ = fit_logistic(features, (features[:, 1] > 0.5).astype(float), np.ones(400))
    assert weights[1] > 10 * abs(weights[0])
