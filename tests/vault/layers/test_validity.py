"""The drawing of what was true when: bars that follow one another, and texts that fit them."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from vault.layers.validity import Validity, ValidityRow
from vault.web.validity import LEFT, MOST_MONTHS, RIGHT, WIDTH, Drawing, make_drawing

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ONE = UUID(int=1)


def draw_slot(*values: tuple[str, int, int | None], slot: str = "home") -> Drawing:
    """values: each with the days before now from which, and until which, it held."""
    rows = [
        Validity(value, NOW - timedelta(days=since), None if until is None else NOW - timedelta(days=until), ONE)
        for value, since, until in values
    ]
    drawing = make_drawing([ValidityRow(slot, tuple(rows))], NOW)
    assert drawing is not None
    return drawing


def test_nothing_is_drawn_of_nothing() -> None:
    assert make_drawing([], NOW) is None


def test_bars_follow_one_another_and_end_within_the_drawing() -> None:
    drawing = draw_slot(("Oslo", 300, 100), ("Lisbon", 100, None), ("Porto", -20, None))
    bars = drawing.rows[0].bars
    assert [bar.state for bar in bars] == ["is-past", "", "is-next"]
    assert bars[0].x == LEFT
    for item, other in pairwise(bars):
        assert item.x + item.width < other.x
    assert bars[-1].x + bars[-1].width <= WIDTH - RIGHT
    assert bars[1].x < drawing.now_x < bars[2].x


def test_text_is_cut_to_its_bar_and_named_whole() -> None:
    drawing = draw_slot(("Vegetarian, with fish when travelling", 300, 290), ("葡萄牙里斯本的老城区", 290, None))
    short, long = drawing.rows[0].bars
    assert (short.text, short.value) == ("", "Vegetarian, with fish when travelling")
    assert long.text == "葡萄牙里斯本的老城区"


@pytest.mark.parametrize("days", [1, 40, 400, 4_000])
def test_few_months_are_named_at_any_length(days: int) -> None:
    drawing = draw_slot(("Oslo", days, None))
    assert len(drawing.months) <= MOST_MONTHS
    places = [x for x, _, _ in drawing.months]
    assert places == sorted(set(places))
    assert all(LEFT <= x <= WIDTH for x in places)


def test_liking_is_named_in_words() -> None:
    drawing = draw_slot(("yes", 30, 10), ("no", 10, None), slot="likes badminton")
    assert drawing.rows[0].label == "Badminton"
    assert [bar.value for bar in drawing.rows[0].bars] == ["likes it", "does not like it"]
