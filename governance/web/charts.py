"""Charts as shapes of SVG, drawn on the server: a template only puts them into their box. Pure."""

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
    """One series of a chart in a box of 100 by 100, lying on those before it. name: its class, as in `fill-long`."""

    name: str
    line: str
    area: str


@dataclass(frozen=True)
class Chart:
    """bands: from below; marks: the values at the top, the middle and the bottom of the box."""

    bands: tuple[Band, ...]
    marks: tuple[float, float, float]


def spark_of(values: Sequence[float]) -> Spark:
    """Empty paths for less than two values."""
    if len(values) < 2:
        return Spark("", "")
    line = _line(values, max(*values, 1e-9), SPARK_HEIGHT, ROOM)
    return Spark(line, f"{line}L{WIDTH:g} {SPARK_HEIGHT:g}L0 {SPARK_HEIGHT:g}Z")


def chart_of(series: Sequence[tuple[str, Sequence[float]]]) -> Chart:
    """Series of equal length, as (class, values), stacked in their order; the scale begins at 0."""
    totals = [0.0] * (len(series[0][1]) if series else 0)
    stacked: list[tuple[str, list[float], list[float]]] = []
    for name, values in series:
        below = totals
        totals = [one + value for one, value in zip(below, values, strict=True)]
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
    """The next of 1, 2, 5, 10, 20, 50 … that is not less; at least 1."""
    size = 1.0
    while size < value:
        for factor in (2.0, 5.0, 10.0):
            if size * factor >= value:
                return size * factor
        size *= 10.0
    return size
