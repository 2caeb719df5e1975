"""Positions of names in the picture of the graph."""

from itertools import combinations
from math import dist

from vault.web.graph_layout import MOST_NAMES, place_names

NAMES = [f"name {at}" for at in range(MOST_NAMES)]
GROUPS = [NAMES[at::4] for at in range(4)]  # of every fourth name, which a bare spiral puts far apart


def measure(groups: list[list[str]]) -> float:
    """Return the mean distance of two names of a group."""
    places = place_names(NAMES, groups)
    pairs = [pair for group in GROUPS for pair in combinations(group, 2)]
    return sum(dist(places[first], places[second]) for first, second in pairs) / len(pairs)


def test_names_of_a_memory_are_near_each_other_and_none_covers_another() -> None:
    assert measure(GROUPS) < 0.75 * measure([])
    places = place_names(NAMES, GROUPS)
    assert min(dist(first, second) for first, second in combinations(places.values(), 2)) > 40
    assert places == place_names(NAMES, GROUPS), "a picture is the same each time"


def test_first_name_is_in_the_middle_and_no_name_is_no_error() -> None:
    assert place_names(NAMES, GROUPS)[NAMES[0]] == (430.0, 280.0)
    assert place_names([], []) == {}
