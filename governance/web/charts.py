"""Charts as SVG shapes, computed on the server, which templates place in a viewBox. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, SPARK_HEIGHT, CHART_HEIGHT = 100.0, 32.0, 100.0
ROOM = 2.0  # above the highest point


@dataclass(frozen=True)
class Spark:
    """A line of values in a box of 100 by 32, and the area under it."""

    line: str
    area: str


@dataclass(frozen=True)
class Band:
    """One series of a stacked chart, in a box of 100 by 100. name: its CSS class, as in `fill-long`."""

    name: str
    line: str
    area: str


@dataclass(frozen=True)
class Chart:
    """A stacked chart. bands: from bottom to top; marks: the values at top, middle and bottom of the box."""

    bands: tuple[Band, ...]
    marks: tuple[float, float, float]


def spark_of(values: Sequence[float]) -> Spark:
    """Return the line of `values`; its paths are empty for fewer than two values."""
    if len(values) < 2:
        return Spark("", "")
    line = _line(values, max(*values, 1e-9), SPARK_HEIGHT, ROOM)
    return Spark(line, f"{line}L{WIDTH:g} {SPARK_HEIGHT:g}L0 {SPARK_HEIGHT:g}Z")


def chart_of(series: Sequence[tuple[str, Sequence[float]]]) -> Chart:
    """Stack series of equal length, given as (class, values), in their order; the scale begins at 0."""
    totals = [0.0] * (len(series[0][1]) if series else 0)
    stacked: list[tuple[str, list[float], list[float]]] = []
    for name, values in series:
        below = totals
        totals = [total + value for total, value in zip(below, values, strict=True)]
        stacked.append((name, below, totals))
    top = _round_up(max(totals, default=0.0))
    bands = tuple(_band(name, below, above, top) for name, below, above in stacked) if len(totals) > 1 else ()
    return Chart(bands, (top, top / 2, 0.0))


def _band(name: str, below: Sequence[float], above: Sequence[float], top: float) -> Band:
    line = _line(above, top, CHART_HEIGHT)
    back = _line(below, top, CHART_HEIGHT).removeprefix("M").split("L")[::-1]
    return Band(name, line, f"{line}L{'L'.join(back)}Z")


def _line(values: Sequence[float], top: float, height: float, room: float = 0.0) -> str:
    step = WIDTH / (len(values) - 1)
    points = (f"{at * step:.1f} {height - value / top * (height - room):.1f}" for at, value in enumerate(values))
    return f"M{'L'.join(points)}"


def _round_up(value: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, 50 … that is not less than `value`."""
    size = 1.0
    while size < value:
        for factor in (2.0, 5.0, 10.0):
            if size * factor >= value:
                return size * factor
        size *= 10.0
    return size


@dataclass(frozen=True)
class Bar:
    """A column in a box of 100 by 32. name: its CSS class, or empty."""

    x: float
    y: float
    width: float
    height: float
    name: str


def bars_of(values: Sequence[float], *, every: str = "", last: str = "") -> list[Bar]:
    """Return columns in a box of 100 by 32; a value of 0 gives a thin line. every: the class of columns with a value;
    last: the class of the last column.
    """
    step, top = WIDTH / max(len(values), 1), max([*values, 1e-9])
    bars = []
    for at, value in enumerate(values):
        height = round(max(value / top * (SPARK_HEIGHT - ROOM), 1.5), 1)
        name = (last if at == len(values) - 1 else "") or (every if value else "")
        bars.append(Bar(round(at * step, 1), round(SPARK_HEIGHT - height, 1), round(step * 0.7, 1), height, name))
    return bars


def stacked_bars_of(series: Sequence[tuple[str, Sequence[float]]]) -> list[Bar]:
    """Return columns in a box of 100 by 32 in which series of equal length, given as (class, values), are stacked; the
    first is at the bottom. A part with a value is at least half a unit high.
    """
    length = len(series[0][1]) if series else 0
    step = WIDTH / max(length, 1)
    top = max([sum(values[at] for _name, values in series) for at in range(length)] + [1e-9])
    bars = []
    for at in range(length):
        y = SPARK_HEIGHT
        for name, values in series:
            if values[at]:
                height = max(values[at] / top * (SPARK_HEIGHT - ROOM), 0.5)
                y -= height
                bars.append(Bar(round(at * step, 2), round(y, 2), round(step * 0.75, 2), round(height, 2), name))
    return bars


@dataclass(frozen=True)
class Share:
    """A segment of a bar that is 100 wide. name: its CSS class."""

    x: float
    width: float
    percent: int
    name: str


SHARES = ("fill-long", "fill-mid", "fill-short", "fill-cold")


def shares_of(counts: Sequence[tuple[str, int]]) -> list[tuple[str, Share]]:
    """Return (label, share of the whole) for the first four counts."""
    total, x = sum(count for _label, count in counts) or 1, 0.0
    found = []
    for (label, count), name in zip(counts, SHARES, strict=False):
        width = count / total * 100
        found.append((label, Share(round(x, 1), round(width, 1), round(width), name)))
        x += width
    return found
