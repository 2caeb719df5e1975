"""How a walk becomes a score, alone and beside the others. Pure."""

from dataclasses import replace
from uuid import UUID

import pytest

from vault.retrieval.ranker import Ranked
from vault.retrieval.ranking import HYBRID, NO_PARTS
from vault.retrieval.walking import by_walk, with_walk

A, B, C = (UUID(int=number) for number in range(1, 4))
FOUND = [Ranked(A, 0.8, replace(NO_PARTS, lexical=0.9)), Ranked(B, 0.4, replace(NO_PARTS, lexical=0.3))]


def test_alone_the_nearest_come_first_and_unreached_hits_last() -> None:
    rows = by_walk({C: 1.0, B: 0.5}, FOUND, limit=10)
    assert [(row.cube_id, row.score, row.parts.graph) for row in rows] == [(C, 1.0, 1.0), (B, 0.5, 0.5), (A, 0.0, 0.0)]
    assert rows[1].parts.lexical == 0.3
    assert by_walk({C: 1.0, B: 0.5}, FOUND, limit=1) == rows[:1]


def test_beside_the_others_it_counts_by_its_weight_and_brings_what_they_missed() -> None:
    rows = with_walk(FOUND, {C: 1.0, B: 0.5}, replace(HYBRID, graph=1.0), limit=10)
    assert {row.cube_id: row.score for row in rows} == pytest.approx({A: 0.4, B: 0.45, C: 0.5})
    assert [row.cube_id for row in rows] == [C, B, A]
    assert {row.cube_id: row.parts.graph for row in rows} == {A: 0.0, B: 0.5, C: 1.0}


def test_it_is_off_in_hybrid_as_it_did_not_gain() -> None:
    assert HYBRID.graph == 0
