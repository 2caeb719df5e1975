"""The similarity of two tool calls. Pure."""

from collections.abc import Mapping
from typing import Any

NEAR = 0.5  # similarity from which two calls of one tool are near


def similarity(first: Any, other: Any) -> float:
    """Return the similarity of two JSON values, 0..1: 1 for equal ones.

    Objects are compared by names, lists by position, numbers by ratio, and texts by words, ignoring case.
    """
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        return _compare_objects(first, other)
    if isinstance(first, list) and isinstance(other, list):
        return _compare_lists(first, other)
    if isinstance(first, bool) or isinstance(other, bool):
        return float(first is other)
    if isinstance(first, int | float) and isinstance(other, int | float):
        return _compare_numbers(first, other)
    if isinstance(first, str) and isinstance(other, str):
        return _compare_texts(first.casefold(), other.casefold())
    return float(first == other)


def _compare_objects(first: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    names = first.keys() | other.keys()
    both = first.keys() & other.keys()
    return sum(similarity(first[name], other[name]) for name in both) / len(names) if names else 1.0


def _compare_lists(first: list[Any], other: list[Any]) -> float:
    longest = max(len(first), len(other))
    return sum(map(similarity, first, other)) / longest if longest else 1.0


def _compare_numbers(first: float, other: float) -> float:
    largest = max(abs(first), abs(other))
    return 1.0 if largest == 0 else max(0.0, 1.0 - abs(first - other) / largest)


def _compare_texts(first: str, other: str) -> float:
    if first == other:
        return 1.0
    words, others = set(first.split()), set(other.split())
    return len(words & others) / len(words | others) if words | others else 0.0
