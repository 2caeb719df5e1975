"""A drawing of the validity of statements: one row per subject, one bar per value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from vault.layers.validity import Validity, ValidityRow

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 760, 136, 16, 26, 32, 24
CHARACTER, MARGIN = 7, 16  # pixels of a letter, and of both sides of a text in its bar
MOST_MONTHS = 7
AHEAD = 0.08  # of the time shown, after now
LEAST = timedelta(days=14)
FIELDS: dict[str, Promise] = {
    "name": _("Name"),
    "gender": _("Gender"),
    "birthday": _("Birthday"),
    "birth_year": _("Born"),
    "home": _("Home"),
    "origin": _("From"),
    "work": _("Work"),
    "age": _("Age"),
    "role": _("Role"),
    "character": _("Character"),
}
LIKES = "likes "


@dataclass(frozen=True)
class Bar:
    """One value as a bar. state: is-past, is-next or empty. text: the value, cut to fit; until: None while it is
    valid."""

    memory_id: UUID
    x: float
    width: float
    state: str
    text: str = field(repr=False)
    value: str = field(repr=False)
    since: datetime
    until: datetime | None

    @property
    def text_x(self) -> float:
        return self.x + MARGIN / 2


@dataclass(frozen=True)
class DrawnRow:
    label: str = field(repr=False)
    y: int
    bars: tuple[Bar, ...]

    @property
    def text_y(self) -> int:
        return self.y + 16


@dataclass(frozen=True)
class Drawing:
    """The drawing. months: (x of the line, x of the name, first day) of the months that are named."""

    rows: tuple[DrawnRow, ...]
    months: tuple[tuple[float, float, datetime], ...]
    now_x: float
    height: int


def make_drawing(rows: Sequence[ValidityRow], now: datetime) -> Drawing | None:
    """Return the drawing of the rows; None without rows."""
    if not rows:
        return None
    first = min(value.since for row in rows for value in row.values)
    last = max([now, *(value.since for row in rows for value in row.values)])
    span = max(last - first, LEAST)
    scale = _Scale(first, last + span * AHEAD)
    drawn = tuple(
        DrawnRow(_slot_label(row.slot), TOP + ROW * place, tuple(_make_bars(row, scale, now)))
        for place, row in enumerate(rows)
    )
    return Drawing(drawn, tuple(scale.months()), scale.x(now), TOP + ROW * len(rows))


@dataclass(frozen=True)
class _Scale:
    start: datetime
    end: datetime

    def x(self, moment: datetime) -> float:
        share = (min(max(moment, self.start), self.end) - self.start) / (self.end - self.start)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def months(self) -> Iterator[tuple[float, float, datetime]]:
        """Yield the first days of at most MOST_MONTHS evenly spaced months."""
        start, end = timezone.localtime(self.start), timezone.localtime(self.end)
        number = start.year * 12 + start.month  # of the month after the first, counted from 0
        count = end.year * 12 + end.month - number
        for month in range(number, number + count, -(-count // MOST_MONTHS) if count > 0 else 1):
            first = start.replace(
                year=month // 12, month=month % 12 + 1, day=1, hour=0, minute=0, second=0, microsecond=0
            )
            yield self.x(first), self.x(first) + 4, first


def _make_bars(row: ValidityRow, scale: _Scale, now: datetime) -> Iterator[Bar]:
    for place, value in enumerate(row.values):
        until = value.until
        if until is None and place + 1 < len(row.values):
            until = row.values[place + 1].since  # if both hold, the bar ends where the later one begins
        x = scale.x(value.since)
        width = max(round(scale.x(until or scale.end) - x - 2, 1), 2.0)
        shown = _value_words(row, value)
        yield Bar(
            value.cube_id,
            x,
            width,
            _bar_class(value, now),
            _shorten_to_width(shown, width),
            shown,
            value.since,
            value.until,
        )


def _bar_class(value: Validity, now: datetime) -> str:
    if value.since > now:
        return "is-next"
    return "is-past" if value.until is not None and value.until <= now else ""


def _value_words(row: ValidityRow, value: Validity) -> str:
    if not row.slot.startswith(LIKES):
        return value.value
    return gettext("likes it") if value.value == "yes" else gettext("does not like it")


def _slot_label(slot: str) -> str:
    if slot in FIELDS:
        return str(FIELDS[slot])
    name = slot.removeprefix(LIKES)
    return name[:1].upper() + name[1:]


def _shorten_to_width(text: str, width: float) -> str:
    """Return the text, cut to fit its bar; a Chinese character counts as 1.8 letters."""
    left = (width - MARGIN) / CHARACTER
    shown = ""
    for character in text:
        left -= 1 if character.isascii() else 1.8
        if left < 0:
            return shown[:-1].rstrip() + "…" if len(shown) > 1 else ""
        shown += character
    return shown
