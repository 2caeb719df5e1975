"""Numbers and times in metadata are compared by prefixes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault.index.value_order import LEVELS, STEP, cover_range, order_key

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
PLACES = st.integers(0, 2**64 - 1)


@given(NUMBERS, NUMBERS)
def test_places_are_ordered_as_numbers_are(first: float, other: float) -> None:
    (_, place), (_, beside) = order_key(first) or ("", 0), order_key(other) or ("", 0)
    assert (place < beside) == (float(first) < float(other))
    assert (place == beside) == (float(first) == float(other))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("1969-12-31", "1970-01-01T00:00:00.000001Z"),
        ("2026-05-01", "2026-05-01T00:00:01Z"),
        ("2026-05-01T23:00:00+02:00", "2026-05-01T22:00:00Z"),
        ("0001-01-01", "9999-12-31"),
    ],
)
def test_times_are_ordered_with_their_offsets(earlier: str, later: str) -> None:
    assert (order_key(earlier) or ("", 0)) < (order_key(later) or ("", 0))


@pytest.mark.parametrize(
    "value", [True, None, "4", "2026", "2026-13-01", "0001-01-01T00:00:00+25:00", 10**400, [1], {}]
)
def test_value_without_an_order_has_no_place(value: Any) -> None:
    assert order_key(value) is None


@given(PLACES, PLACES, PLACES)
def test_range_is_covered_by_few_prefixes(low: int, high: int, place: int) -> None:
    cover = list(cover_range(low, high))
    assert (any(place >> STEP * level == prefix for level, prefix in cover)) == (low <= place <= high)
    assert len(cover) <= 2 * LEVELS * (2**STEP - 1)
