"""Personalised PageRank: the proximity of cubes in a small graph to the seeds of a question, over all paths. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

DAMPING = 0.5  # a walk goes on with this chance: half of them end within a step, as answers are near
ROUNDS = 30  # what is not yet settled then is less than DAMPING ** ROUNDS


@dataclass(frozen=True, order=True)
class Edge:
    """A link, walked in both directions with the same weight."""

    first: UUID
    other: UUID
    weight: float = 1.0


@dataclass(frozen=True, order=True)
class Group:
    """Distinct cubes that are all connected with each other: an edge of 1 / (members - 1) between any two."""

    members: tuple[UUID, ...]


def personalised_pagerank(
    seeds: Mapping[UUID, float],
    edges: Sequence[Edge],
    groups: Sequence[Group] = (),
    *,
    damping: float = DAMPING,
    rounds: int = ROUNDS,
) -> dict[UUID, float]:
    """Return the rank of each seed and each cube on an edge, divided by the highest: 0..1, empty without seeds.

    r ← (1 − d)·p + d·(Wᵀr + (Σ of r where no edge leaves)·p), where p is `seeds` made to sum to 1 and W the weights of
    the edges, each row made to sum to 1 (Page et al. 1999, §2.6; teleporting to a set of pages: Haveliwala 2002).
    seeds: weight above 0 of each start. Cost: rounds × (edges + members of groups).
    """
    if not seeds:
        return {}
    groups = [group for group in groups if len(group.members) > 1]
    ends = (end for edge in edges for end in (edge.first, edge.other))
    nodes = list(dict.fromkeys([*seeds, *ends, *(member for group in groups for member in group.members)]))
    place = {node: index for index, node in enumerate(nodes)}
    firsts = np.array([place[edge.first] for edge in edges], dtype=np.intp)
    others = np.array([place[edge.other] for edge in edges], dtype=np.intp)
    weights = np.array([edge.weight for edge in edges], dtype=np.float64)
    sources, targets = np.concatenate([firsts, others]), np.concatenate([others, firsts])
    weights = np.concatenate([weights, weights])
    members = np.array([place[member] for group in groups for member in group.members], dtype=np.intp)
    sizes = np.array([len(group.members) for group in groups], dtype=np.intp)
    group_of = np.repeat(np.arange(len(groups)), sizes)
    others_in = (sizes - 1)[group_of]
    leaving = np.bincount(sources, weights=weights, minlength=len(nodes))
    leaving = leaving + np.bincount(members, minlength=len(nodes))
    shares, passed = weights / leaving[sources], 1 / leaving[members]
    start = np.array([seeds.get(node, 0.0) for node in nodes], dtype=np.float64)
    start /= start.sum()
    rank = start
    for _ in range(rounds):
        walked = np.bincount(targets, weights=rank[sources] * shares, minlength=len(nodes))
        given = rank[members] * passed
        of_others = np.bincount(group_of, weights=given, minlength=len(groups))[group_of] - given
        walked = walked + np.bincount(members, weights=of_others / others_in, minlength=len(nodes))
        rank = (1 - damping) * start + damping * (walked + rank[leaving == 0].sum() * start)
    highest = float(rank.max())
    return {node: float(value) / highest for node, value in zip(nodes, rank, strict=True)}
