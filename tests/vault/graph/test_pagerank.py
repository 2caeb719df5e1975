"""Personalised PageRank. Pure."""

from itertools import combinations
from uuid import UUID

import pytest

from vault.graph.pagerank import Edge, Group, personalised_pagerank

A, B, C, D = (UUID(int=number) for number in range(1, 5))


def test_without_seeds_nothing_is_near() -> None:
    assert personalised_pagerank({}, [Edge(A, B)]) == {}


def test_seeds_without_edges_keep_their_proportion() -> None:
    assert personalised_pagerank({A: 2.0, B: 1.0}, []) == pytest.approx({A: 1.0, B: 0.5})


def test_it_is_the_fixed_point_of_its_formula() -> None:
    """A – B – C from A with d = ½: a = ½ + ¼b, b = ½a + ½c, c = ¼b; so b = 4c, a = 7c."""
    ranks = personalised_pagerank({A: 1.0}, [Edge(A, B), Edge(B, C)], damping=0.5)
    assert ranks == pytest.approx({A: 1.0, B: 4 / 7, C: 1 / 7}, abs=1e-6)


def test_what_no_path_reaches_is_at_0_and_a_heavier_edge_leads_nearer() -> None:
    ranks = personalised_pagerank({A: 1.0}, [Edge(A, B, 3.0), Edge(A, C, 1.0), Edge(D, UUID(int=9))])
    assert ranks[B] == pytest.approx(3 * ranks[C])
    assert ranks[D] == 0
    assert all(0 <= rank <= 1 for rank in ranks.values())


def test_a_start_that_no_edge_leaves_gives_its_rank_back_to_the_starts() -> None:
    ranks = personalised_pagerank({A: 1.0, D: 1.0}, [Edge(A, B)])
    assert ranks[A] > ranks[B] > 0
    assert ranks[D] > 0


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_group_is_an_edge_between_any_two_of_its_members(size: int) -> None:
    members = (A, B, C, UUID(int=7))[:size]
    edges = [Edge(item, other, 1 / (size - 1)) for item, other in combinations(members, 2)]
    others = [Edge(A, D), Edge(B, D, 0.5)]
    by_group = personalised_pagerank({A: 1.0, D: 0.3}, others, [Group(members)])
    assert by_group == pytest.approx(personalised_pagerank({A: 1.0, D: 0.3}, [*others, *edges]), abs=1e-9)


def test_entity_named_by_one_memory_leads_to_no_other() -> None:
    assert personalised_pagerank({A: 1.0}, [Edge(A, B)], [Group((A,)), Group((C,))]) == personalised_pagerank(
        {A: 1.0}, [Edge(A, B)]
    )


def test_what_few_name_leads_nearer_than_what_many_name() -> None:
    ranks = personalised_pagerank({A: 1.0}, [], [Group((A, B)), Group((A, C, D))])
    assert ranks[B] > ranks[C] == pytest.approx(ranks[D])
